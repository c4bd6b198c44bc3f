"""Lets a language model choose from a numbered list; without a usable reply nothing is chosen."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field

from clew.context import Context
from clew.llm.chat import UNUSABLE_REPLY, Request
from clew.llm.prompt import Prompt
from clew.text.language import prompt_language

ChoiceKind = Literal["entities", "relations", "facts", "paths"]
MAX_CHOICES = 128  # items in one list
_MAX_REPLY_TOKENS = 400  # tokens of a reply
_MAX_QUESTION_CHARS = 2000  # characters of a question that a model is shown
_MAX_ITEM_CHARS = 300  # characters of one item
# Characters of a list, some 1,500 tokens: small models read 4,096 in all, and badly.
_MAX_LIST_CHARS = 6000
_KIND_NOUNS = {
    "en": {"entities": "entities", "relations": "relations", "facts": "facts", "paths": "paths"},
    "zh": {"entities": "实体", "relations": "关系", "facts": "事实", "paths": "路径"},
}
ScoringModel = Literal["eem", "llm"]


class ChosenItems(BaseModel, title="Chosen"):
    """The numbers of the items to keep, best first."""

    keep: list[int] = Field(default_factory=list)


class Enough(BaseModel):
    """Whether what was found answers the question."""

    enough: bool = False


CHOOSE_PROMPT = Prompt(
    "choose_parts",
    ChosenItems,
    {"question", "kind", "keep", "items"},
    documents={"question", "items"},
)


ENOUGH_PROMPT = Prompt(
    "enough_paths", Enough, {"question", "paths"}, documents={"question", "paths"}
)


async def choose_items(
    ctx: Context, kind: ChoiceKind, items: Sequence[str], keep: int
) -> list[int]:
    """Return the indices of the items a model picks, best first; empty without a usable reply."""
    chat = ctx.chat("plan")
    if chat is None or not items:
        return []
    language = prompt_language(ctx.question)
    shown = fit_into_prompt(items)
    try:
        reply = await CHOOSE_PROMPT.ask(
            chat,
            language=language,
            like=Request(max_tokens=_MAX_REPLY_TOKENS),
            question=ctx.question[:_MAX_QUESTION_CHARS],
            kind=_KIND_NOUNS.get(language, _KIND_NOUNS["en"])[kind],
            keep=str(keep),
            items=format_numbered_list(shown),
        )
    except UNUSABLE_REPLY:
        return []  # no usable reply: the caller keeps its own order
    picked = dict.fromkeys(number - 1 for number in reply.keep if 1 <= number <= len(shown))
    return list(picked)[:keep]


async def are_paths_sufficient(ctx: Context, paths: Sequence[str]) -> bool:
    """Ask a model whether these paths answer the question; False without a usable reply."""
    chat = ctx.chat("plan")
    if chat is None or not paths:
        return False
    try:
        reply = await ENOUGH_PROMPT.ask(
            chat,
            language=prompt_language(ctx.question),
            like=Request(max_tokens=_MAX_REPLY_TOKENS),
            question=ctx.question[:_MAX_QUESTION_CHARS],
            paths=format_numbered_list(fit_into_prompt(paths)),
        )
    except UNUSABLE_REPLY:
        return False
    return reply.enough


def fit_into_prompt(items: Sequence[str]) -> Sequence[str]:
    """Return the leading items that fit into one prompt, at least one."""
    left = _MAX_LIST_CHARS
    for count, item in enumerate(items[:MAX_CHOICES]):
        left -= min(len(item), _MAX_ITEM_CHARS)
        if left < 0 and count:
            return items[:count]
    return items[:MAX_CHOICES]


def format_numbered_list(items: Sequence[str]) -> str:
    """Format items as a numbered list, one per line."""
    return "\n".join(f"[{n}] {item[:_MAX_ITEM_CHARS]}" for n, item in enumerate(items, start=1))
