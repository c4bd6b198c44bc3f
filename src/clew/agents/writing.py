"""The last step of every agent: a model writes the answer over numbered evidence, code cites it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from clew.agents.base import Answer, Mode
from clew.agents.cite import cite_text
from clew.agents.confidence import names_answer
from clew.agents.evidence import EvidencePage
from clew.agents.messages import NOT_SAID, format_refusal, localise
from clew.agents.streaming import StreamingChat
from clew.agents.tools import Toolbox
from clew.context import AnswerDelta, Context
from clew.errors import ParseError
from clew.llm.chat import Chat
from clew.llm.fit_prompt import PromptInput
from clew.llm.json_repair import strip_thinking
from clew.llm.prompt import Prompt
from clew.types import Evidence

UNKNOWN = "unknown"
"""What prompts ask a model to write as the short answer where there is none."""
NO_NOTES = "(none)"
_MODE_RULES: dict[Mode, str] = {
    "open": (
        "Answer from the evidence. A fact that it lacks although you looked for it, and that you "
        "know for certain, you may take from your own knowledge; a sentence that rests on that has "
        "no number. `enough` says whether the evidence alone answers the question; where it does "
        "not, say in `missing` what is lacking, and still give the answer that you know."
    ),
    "reject": (
        "Answer from the evidence and from nothing else. Where it does not answer the question, "
        "set `enough` to false, leave `answer` empty and say in `missing` what is lacking."
    ),
}


class Written(BaseModel, title="Answer"):
    """What a model writes as its answer."""

    reasoning: str = Field(
        default="", description="think first: what is asked, what each item says of it"
    )
    enough: bool = Field(
        default=False, description="whether the evidence alone answers the question"
    )
    answer: str = Field(
        default="",
        description="complete sentences, behind each the numbers of its items, as [2] or [1][4]",
    )
    short: str = Field(
        default="",
        description="the answer in as few words as possible: a name, a date, a number, yes, no, a "
        f"list with commas; {UNKNOWN} where it cannot be told",
    )
    missing: str = Field(default="", description="what the evidence lacks, where it is not enough")


ANSWER = Prompt(
    "answer", Written, {"question", "evidence", "notes", "rules"}, documents={"evidence", "notes"}
)


@dataclass
class AnswerListener:
    """Passes the text of answers on while they are written; one for all turns of an agent."""

    ctx: Context
    _sent: list[str] = field(default_factory=list)

    @property
    def wrap(self) -> Callable[[Chat], Chat] | None:
        """What goes around the chat, or None where nobody listens."""
        emit = self.ctx.on_event
        return None if emit is None else lambda chat: StreamingChat(chat, emit, self._sent)

    def withdraw(self) -> None:
        """Say that what was passed on is no answer."""
        if self._sent and self.ctx.on_event is not None:
            self._sent.clear()
            self.ctx.on_event(AnswerDelta("\n", restart=True))


def mode_rules(ctx: Context, mode: Mode) -> str:
    """Say in a prompt what an answer may rest on, and how it is to be worded."""
    style = ctx.style.strip()
    return f"{_MODE_RULES[mode]}\nStyle of the answer: {style}" if style else _MODE_RULES[mode]


async def write_answer(
    ctx: Context, tools: Toolbox, page: EvidencePage, mode: Mode, notes: PromptInput = ""
) -> Answer:
    """Let the model answer the question over a page; `notes` are what an agent worked out before.

    Raises ModelError where the model fails or its reply cannot be read.
    """
    said = await ask_to_write(
        ctx,
        ANSWER,
        step="answer",
        evidence=page,
        question=ctx.question,
        notes=notes or NO_NOTES,
        rules=mode_rules(ctx, mode),
    )
    return finish(ctx, said, page, tools.evidence(), mode)


async def ask_to_write(ctx: Context, prompt: Prompt[Any], **how: Any) -> Any:
    """Ask a prompt whose reply is `Written`, streaming.

    Prose instead of that is the answer where every sentence of it stands in the evidence;
    otherwise it is a ParseError.
    """
    listener = how.pop("listener", None) or AnswerListener(ctx)
    try:
        return await ctx.ask(prompt, role="answer", wrap=listener.wrap, **how)
    except ParseError as error:
        page, prose = how.get("evidence"), strip_thinking(error.reply).strip()
        if prose and isinstance(page, EvidencePage) and cite_text(ctx, prose, page).located == 1:
            return prompt.out(enough=True, answer=prose)
        raise


def finish(
    ctx: Context, said: Written, page: EvidencePage, evidence: Evidence, mode: Mode
) -> Answer:
    """Make an answer of what a model wrote: cited by code, refused where the model refuses."""
    text, short = said.answer.strip(), said.short.strip().rstrip(".。")
    known = bool(text or short) and short.casefold() != UNKNOWN
    if not known or (mode == "reject" and not said.enough):
        return refuse(ctx, evidence, said.missing or NOT_SAID)
    cited = cite_text(ctx, text or short, page)
    signals = {"enough": float(said.enough), "located": cited.located, "overlap": cited.overlap}
    if not cited.citations:  # no quote has the answer, and none entails it
        signals |= {"named": 0.0, "verified": 0.0}
    if (named := names_answer(short, cited.citations)) is not None:
        signals["named"] = named
    lacking = (
        "" if said.enough else f"not all of it is in the documents: {said.missing}".rstrip(": ")
    )
    return Answer(
        *(ctx.question, "", cited.text, "answered", cited.citations, evidence),
        candidate=short,
        note=lacking,
        signals=signals,
    )


def refuse(ctx: Context, evidence: Evidence, missing: str) -> Answer:
    """Make a refusal that says what was missing."""
    reason = localise(ctx.question, missing.strip().rstrip("."))
    text = format_refusal(ctx.question, reason)
    return Answer(ctx.question, "", text, "refused", (), evidence, missing=reason)
