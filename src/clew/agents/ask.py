"""Entry point of every recipe: condense the conversation, run the agent, check the answer.

Code checks that the evidence mentions what the question is about: small models always say "enough".
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from clew.agents.answering.write import make_refusal
from clew.agents.baselines import ClosedBook
from clew.agents.citing.support import mentions_name
from clew.agents.conversation import ConversationTurn, condense_question
from clew.agents.core.messages import CANDIDATE_LABEL, CLOSEST_HEAD
from clew.agents.core.types import Agent, Answer, Mode
from clew.agents.rules.english_questions import ASKING_WORDS
from clew.agents.rules.question_analysis import find_names, find_subject_names
from clew.agents.tables.answer import answer_from_tables
from clew.context import Context, Event, EventListener
from clew.errors import ConfigError, suggest
from clew.index.view import View
from clew.layout import Modality
from clew.llm.budget import UNLIMITED, BudgetExceeded, UsageBudget, UsageLimits
from clew.llm.wrappers import UsageMeter
from clew.retrieve.step import Step
from clew.text.options import split_options
from clew.text.places import find_breadcrumbs, page_at
from clew.text.structure import CRUMB_SEPARATOR
from clew.types import Citation, Evidence

AnswerStream = AsyncGenerator[Event | Answer]
MAX_QUESTION_CHARS = 8_000  # longer questions are cut: planning by rules takes a second for these
# A question whose subject is a pronoun, or that ends in one.
_AUXILIARY = r"(?:is|was|are|were|did|does|do|has|have|had|will|would|can|could|should)"
_QUESTION_WORD = rf"(?:{ASKING_WORDS})\b"
_LONE_PRONOUN = re.compile(
    rf"\W*(?:(?:and|so|but|then|in|at|from|on|of|to|by)\s+)*(?:{_QUESTION_WORD}(?:\s+[a-z]+){{0,2}}?\s+)?"
    rf"{_AUXILIARY}\s+(?P<who>he|she|they|it|his|her|their|its)\b(?P<rest>.*)|"
    rf"\W*{_QUESTION_WORD}(?:\s+[a-z]+){{1,2}}?\s+(?P<whom>him|her|them|it)\W*|"
    r"\W*(?:请问|那么?)?[，,]?\s*(?P<zh>[他她它]们?)(?!们).*",
    re.IGNORECASE | re.DOTALL,
)
# "how do they make glass", "is it true that"
_VAGUE_PRONOUNS = frozenset("they it their its".split())


@dataclass(frozen=True)
class AskOptions:
    """Options of one question: its budget, a callback for trace events, and the earlier turns."""

    limits: UsageLimits = UNLIMITED
    on_event: EventListener | None = None
    history: Sequence[ConversationTurn] = ()
    evidence: Modality = "all"
    """What the model is shown: passages (text), everything else (graph), or all."""
    record_prompts: bool = False
    """Keep every prompt and reply in the answer."""
    meter: UsageMeter | None = None
    """Where usage is counted, also that of a question which is cancelled."""
    shared: UsageBudget | None = None
    """A budget that several questions have together."""
    style: str = ""
    """How answers that a model writes are to be worded; the rules about evidence stay."""

    def apply_to(self, ctx: Context) -> Context:
        """Return the context with this question's budget, meter and style."""
        meter = self.meter or UsageMeter()
        budget = UsageBudget(self.limits, parent=self.shared)
        return replace(ctx, budget=budget, meter=meter, style=self.style)


DEFAULT_OPTIONS = AskOptions()


async def answer_with(
    ctx: Context, agent: Agent, retrieve: Step, mode: Mode, history: Sequence[ConversationTurn] = ()
) -> Answer:
    """Run the agent on the condensed question; the answer keeps the question as it was asked."""
    try:
        inner = ctx.with_question(await condense_question(ctx, history)) if history else ctx
        by_code = None if isinstance(agent, ClosedBook) else await answer_from_tables(inner)
        if by_code is not None:
            answer = by_code
        elif mode == "reject" and (unclear := _explain_lone_pronoun(inner)):
            answer = make_refusal(ctx, Evidence(), unclear)
        else:
            answer = await agent(inner, retrieve, mode)
            check = _refuse_if_unmentioned if mode == "reject" else _mark_if_unmentioned
            answer = check(inner, answer)
    except BudgetExceeded as ended:
        answer = replace(make_refusal(ctx, Evidence(), str(ended)), complete=False)
    return replace(answer, question=ctx.question, citations=_place_citations(answer))


def _place_citations(answer: Answer) -> tuple[Citation, ...]:
    """Return the citations with their section, the term they define and their page."""
    passages = {passage.id: passage for passage in answer.evidence.chunks}
    found = []
    for cited in answer.citations:
        if (passage := passages.get(cited.chunk)) is not None and not cited.heading:
            at = max(0, cited.start - passage.start)
            crumbs = find_breadcrumbs(passage.doc, passage.text, at, passage.heading)
            page = page_at(passage.text, at, passage.page)
            cited = replace(cited, heading=CRUMB_SEPARATOR.join(crumbs), page=page)
        found.append(cited)
    return tuple(found)


async def stream_answer(
    work: Callable[[EventListener], Coroutine[Any, Any, Answer]],
) -> AnswerStream:
    """Yield trace events as they happen, then the answer; closing the iterator cancels the work."""
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    task = asyncio.ensure_future(work(events.put_nowait))
    task.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield await task
    finally:
        task.cancel()
        await asyncio.wait({task})  # it counts what it has used, with files still open


def find_lone_pronoun(view: View, question: str) -> str:
    """Return the pronoun a question is about when nothing in it says whom it means, else ""."""
    found = _LONE_PRONOUN.fullmatch(question)
    if found is None or find_names(view, question):
        return ""
    pronoun = found["who"] or found["whom"] or found["zh"]
    if pronoun.lower() in _VAGUE_PRONOUNS and found["who"] and len(found["rest"].split()) > 1:
        return ""
    return pronoun


def _explain_lone_pronoun(ctx: Context) -> str:
    """Return the reason if a question does not say whom it is about: "Where was she born?"."""
    pronoun = "" if ctx.given_entities else find_lone_pronoun(ctx.view, ctx.question)
    return pronoun and f"the question does not say whom or what “{pronoun}” means"


def _find_unmentioned_names(names: Sequence[str], answer: Answer) -> list[str]:
    """Return the names in the question that no passage mentions, if they are at least half.

    A long question names things in passing; its actual subject may well be there.
    """
    texts = [f"{passage.title} {passage.text}" for passage in answer.evidence.chunks]
    missing = [name for name in names if not any(mentions_name(name, text) for text in texts)]
    return missing if 2 * len(missing) >= len(names) else []


def _refuse_if_unmentioned(ctx: Context, answer: Answer) -> Answer:
    """Turn the answer into a refusal if the evidence never mentions the question's subject."""
    asked, _ = split_options(ctx.question)  # an option need not be in the documents
    missing = _find_unmentioned_names(find_subject_names(ctx.view, asked), answer)
    if not missing:
        return answer
    # Without evidence the agent's own reason stands.
    if answer.verdict == "refused" and (not answer.evidence.chunks or missing[0] in answer.missing):
        return answer
    about = make_refusal(ctx, answer.evidence, _explain_unmentioned(missing))
    return replace(about, complete=answer.complete, note=answer.note)


def _mark_if_unmentioned(ctx: Context, answer: Answer) -> Answer:
    """In open mode, mark quotes that never mention the question's subject as the nearest found.

    An answer by a model is left alone: it may know more than the documents and marks it itself.
    """
    if answer.verdict != "answered" or not answer.citations or ctx.chat("answer") is not None:
        return answer
    names = find_subject_names(ctx.view, ctx.question)
    missing = _find_unmentioned_names(names, answer)
    if missing and len(missing) == len(names):
        why = _explain_unmentioned(missing)
    elif not (why := _explain_lone_pronoun(ctx)):
        return answer
    lines = [line for line in answer.answer.splitlines() if not line.startswith(CANDIDATE_LABEL)]
    head = f"{why[0].upper()}{why[1:]}; {CLOSEST_HEAD}"
    return replace(answer, answer="\n".join([head, *lines]), candidate="")


def _explain_unmentioned(names: Sequence[str]) -> str:
    return f"the documents do not mention {', '.join(names[:3])}"


def truncation_note(question: str) -> str:
    """Say how much of a question that was too long is read, or ""."""
    size, most = len(question), MAX_QUESTION_CHARS
    return f"of {size:,} characters of the question the first {most:,} were read" * (size > most)


def check_question(question: str, k: int | None, mode: str = "open") -> None:
    """Raise for a question, a number of passages or a mode that cannot be meant."""
    if not isinstance(question, str):
        raise ConfigError(f"the question must be a text, and {question!r} is not")
    if not question.strip():
        raise ConfigError("the question is empty")
    if k is not None and (not isinstance(k, int) or k < 1):
        raise ConfigError(f"-k {k}: must be a whole number of at least 1")
    if mode not in get_args(Mode):
        choices = " or ".join(map(repr, get_args(Mode)))
        raise ConfigError(f"mode {mode!r}: must be {choices}{suggest(str(mode), get_args(Mode))}")
