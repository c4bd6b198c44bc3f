"""Extracts entity names and topic keywords from a question, by a model or by known names."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from clew.context import Context
from clew.llm.chat import UNUSABLE_REPLY, Request
from clew.llm.prompt import Prompt
from clew.retrieve.linking.link_names import link_names
from clew.retrieve.question import OPENING_WORDS, QUESTION_WORDS, remove_names
from clew.text.language import prompt_language
from clew.text.name_spans import find_capitalised_runs
from clew.text.names import Tokens, name_key, tokenize, tokenize_question
from clew.types import Found

_Reply = TypeVar("_Reply", bound=BaseModel)
_REQUEST = Request(max_tokens=300)
_MAX_NAMES = 20  # of a question; with more it is a pasted text, not a question
_MAX_QUESTION_CHARS = 4000  # characters of a question that a model is shown


class QuestionKeywords(BaseModel, title="Words"):
    """Low-level and high-level keywords."""

    names: list[str] = Field(default_factory=list)
    topics: list[str] = Field(default_factory=list)


class MoreKeywords(BaseModel, title="More"):
    """Further low-level keywords."""

    names: list[str] = Field(default_factory=list)


class QuestionEntityNames(BaseModel, title="Asked"):
    """The things a question names and the kinds of thing that would answer it."""

    entities: list[str] = Field(default_factory=list)
    answer_types: list[str] = Field(default_factory=list)


KEYWORDS_PROMPT = Prompt("keywords", QuestionKeywords, {"question"}, documents={"question"})
EXPAND_KEYWORDS_PROMPT = Prompt(
    "expand_keywords",
    MoreKeywords,
    {"question", "names", "topics"},
    documents={"question", "names", "topics"},
)
QUESTION_ENTITIES_PROMPT = Prompt(
    "question_entities", QuestionEntityNames, {"question"}, documents={"question"}
)


@dataclass(frozen=True)
class Keywords:
    """Sets `names` (low-level keywords) and `topics` (high-level keywords), as in LightRAG."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Ask the model, or split the question into known names and the rest."""
        plain, reply = _extract_by_rules(ctx, found), await _ask_model(ctx, KEYWORDS_PROMPT)
        if reply is None:
            return plain
        names, topics = _clean_keywords(reply.names), _clean_keywords(reply.topics)
        return replace(plain, names=names or plain.names, topics=topics or plain.topics)


@dataclass(frozen=True)
class ExpandKeywords:
    """Adds low-level keywords, as in ROGRAG: what is taken for a relation may name an entity."""

    most: int = 8
    """Keywords that are added at most."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Ask the model for further keywords, or take the phrases of the topics."""
        reply = await _ask_model(
            ctx,
            EXPAND_KEYWORDS_PROMPT,
            names=", ".join(found.names) or "-",
            topics=", ".join(found.topics) or "-",
        )
        added = _clean_keywords(reply.names if reply else [*_find_phrases(found.topics)])
        known = {name_key(name) for name in found.names}
        fresh = [name for name in added if name_key(name) not in known]
        return replace(found, names=(*found.names, *fresh[: self.most]))


@dataclass(frozen=True)
class QuestionEntities:
    """Sets `names` to the entities the question names, `topics` to the types of its answer."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Ask the model, or take the names known to the graph."""
        plain, reply = (
            _extract_by_rules(ctx, found),
            await _ask_model(ctx, QUESTION_ENTITIES_PROMPT),
        )
        if reply is None:
            return plain
        return replace(
            plain,
            names=_clean_keywords(reply.entities) or plain.names,
            topics=_clean_keywords(reply.answer_types),
        )


async def _ask_model(ctx: Context, prompt: Prompt[_Reply], **inputs: Any) -> _Reply | None:
    """Return the reply; None without a model, with given entities, or if it is unusable."""
    chat = ctx.chat("plan")
    if chat is None or ctx.given_entities:
        return None
    language, question = prompt_language(ctx.question), ctx.question[:_MAX_QUESTION_CHARS]
    try:
        return await prompt.ask(chat, language=language, like=_REQUEST, question=question, **inputs)
    except UNUSABLE_REPLY:
        return None


def _clean_keywords(words: list[str]) -> tuple[str, ...]:
    found = dict.fromkeys(word.strip() for word in words if word.strip())
    return tuple(found)[:_MAX_NAMES]


def _find_phrases(topics: tuple[str, ...]) -> Iterator[str]:
    """Yield the runs of content words of each topic, and the words of longer runs."""
    for topic in topics:
        t = tokenize(topic)
        breaks = [at for at, key in enumerate(t.keys) if key in QUESTION_WORDS]
        for a, b in pairwise([-1, *breaks, len(t)]):
            if b - a > 1:
                yield topic[t.starts[a + 1] : t.ends[b - 1]]
            if b - a > 2:
                yield from (topic[t.starts[at] : t.ends[at]] for at in range(a + 1, b))


def _extract_by_rules(ctx: Context, found: Found) -> Found:
    t = tokenize_question(ctx.question)
    linked = link_names(ctx.view, ctx.question, t)
    spans = [(link.first, link.last) for link in linked]
    rest = remove_names(ctx.question, t, spans)
    # Entities given by the caller take precedence.
    names = ctx.given_entities or _find_names(ctx.question, t, spans)
    return replace(found, names=names, topics=(rest,) if rest else (), rest=rest)


def _find_names(question: str, t: Tokens, known: list[tuple[int, int]]) -> tuple[str, ...]:
    taken = {at for first, last in known for at in range(first, last)}
    capitalised_runs = [
        (first, last)
        for first, last in (find_capitalised_runs(question, t, {0}) if any(t.upper[1:]) else ())
        if not taken & set(range(first, last))
        and not (last - first == 1 and first == 0 and t.keys[0] in OPENING_WORDS)
    ]
    spans = sorted([*known, *capitalised_runs])
    found = dict.fromkeys(question[t.starts[a] : t.ends[b - 1]] for a, b in spans)
    return tuple(found)[:_MAX_NAMES]
