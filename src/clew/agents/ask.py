"""Entry point of every recipe: condense the conversation, run the agent, check the answer.

Every answer gets one confidence, whatever agent gave it; `reject` is a threshold on it.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from clew.agents.answering.cite_bridge import cite_bridge
from clew.agents.answering.extractive import format_quotes
from clew.agents.answering.finish import mark_incomplete
from clew.agents.answering.parts import join_parts, split_questions
from clew.agents.answering.write import make_refusal
from clew.agents.baselines import ClosedBook
from clew.agents.citing.support import place_citations
from clew.agents.conversation import ConversationTurn, condense_question
from clew.agents.core.confidence import DEFAULT_THRESHOLD, HOPELESS
from clew.agents.core.messages import CLOSEST_HEAD, explain_no_model, localise
from clew.agents.core.types import Agent, Answer, Mode
from clew.agents.graph_reader import GraphReader
from clew.agents.judge import (
    explain_doubt,
    explain_hopeless,
    explain_unmentioned,
    judge_answer,
)
from clew.agents.quote_units import add_notes, drop_repeats
from clew.agents.relevance_gate import is_small_talk
from clew.agents.rules.question_analysis import find_names
from clew.agents.rules.question_context import say_plainly
from clew.agents.rules.table import table_for
from clew.agents.tables.answer import answer_from_tables
from clew.agents.tables.in_documents import compare_rows
from clew.agents.tables.quoted import judge_quoted_rows
from clew.arguments import check_confidence
from clew.context import Context, Event, EventListener, TraceStep
from clew.errors import ClewError, ConfigError, ModelError, suggest
from clew.index.view import View
from clew.ingest.arrivals import read_origins
from clew.layout import Modality
from clew.llm.budget import UNLIMITED, BudgetExceeded, UsageBudget, UsageLimits
from clew.llm.wrappers import UsageMeter
from clew.retrieve.step import Step
from clew.retrieve.wording import can_judge, judge
from clew.store.protocol import Snapshot, Store
from clew.text.origins import SAME, locate
from clew.text.sentences import sentence_spans
from clew.text.word_forms import name_language
from clew.tree.outline import NO_TREE
from clew.types import Citation, Evidence

AnswerStream = AsyncGenerator[Event | Answer]
_MARKS = ("?", "？")
WITHOUT_MODEL = "it is given without the model"
NO_DOCUMENTS = "there are no documents to answer from"
MAX_QUESTION_CHARS = 8_000  # longer questions are cut: planning by rules takes a second for these
SMALL_TALK = "this is small talk, not a question about the documents"
ORDER = "this orders something to be done; only questions about the documents are answered"
NOTHING_ASKED = "“$code” alone asks nothing; ask what it means, or does"
_BARE_CODE = re.compile(r"[^\w-]*(?P<code>(?=\S*[\d_]|-)[!-~]+?)\W*")
_ORDERED = 0.7  # least probability of an order: 73 of 120 held out, and 1 of 390 questions
# A question whose subject is a pronoun, or that ends in one.
_ASKING_WORDS = "who|whom|whose|what|which|where|when|why|how"
_AUXILIARY = r"(?:is|was|are|were|did|does|do|has|have|had|will|would|can|could|should)"
_QUESTION_WORD = rf"(?:{_ASKING_WORDS})\b"
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
    confidence: float | None = None
    """In `reject` mode the least confidence of an answer; None: as the settings say."""
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

    def require(self, confidence: float | None) -> "AskOptions":
        """Return the options with this least confidence, if one is given."""
        if confidence is None:
            return self
        return replace(self, confidence=check_confidence(confidence))

    def threshold(self, default: float) -> float:
        """Return the least confidence, by default that of the settings."""
        return default if self.confidence is None else self.confidence


DEFAULT_OPTIONS = AskOptions()


async def answer_with(
    ctx: Context,
    agent: Agent,
    retrieve: Step,
    mode: Mode,
    threshold: float = DEFAULT_THRESHOLD,
    history: Sequence[ConversationTurn] = (),
) -> Answer:
    """Run the agent on the condensed question; the answer keeps the question as it was asked."""
    if _has_nothing(ctx.view) and not isinstance(agent, ClosedBook):
        return make_refusal(ctx, Evidence(), NO_DOCUMENTS)  # a model would be paid for nothing
    asked = _Asked(agent, retrieve, mode, threshold, history)
    try:
        answer = await _answer(ctx, asked)
    except (BudgetExceeded, ModelError) as ended:
        answer = await _answer_after(ctx, asked, ended)
    answer = add_notes(drop_repeats(answer))
    placed = place_citations(answer.citations, answer.evidence.chunks)
    return replace(answer, question=ctx.question, citations=placed)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who answers a question, and how."""

    agent: Agent
    retrieve: Step
    mode: Mode
    threshold: float
    history: Sequence[ConversationTurn]


async def _answer_after(ctx: Context, asked: _Asked, ended: ClewError) -> Answer:
    """Answer without the model that failed, or whose budget is spent; raise if that cannot be."""
    failed = isinstance(ended, ModelError)
    configured = ctx.has("answer") or ctx.has("plan")
    if configured and (failed or isinstance(asked.agent, GraphReader)):
        try:
            answer = await _answer_without_model(ctx, asked, str(ended))
            return replace(answer, model_error=str(ended) if failed else "")
        except (ConfigError, ModelError):  # this recipe needs a model, or it was not a chat model
            if failed:
                raise ended from None
    if failed:
        raise ended
    return replace(make_refusal(ctx, Evidence(), str(ended)), complete=False)


async def _answer_without_model(ctx: Context, asked: _Asked, ended: str) -> Answer:
    """Answer exactly as where no model is configured; the note says why.

    The time that a slow model took is not taken from what needs no model.
    """
    bare = replace(ctx, models=None, budget=UsageBudget(spent=ctx.budget.spent))
    async with bare.step("answer without the model", ended) as step:
        answer = await _answer(step.ctx, asked)
        step.output = answer.candidate or answer.verdict
    how = answer.note.removeprefix(f"{explain_no_model(bare)}: ")
    return mark_incomplete(replace(answer, note=_join(WITHOUT_MODEL, how)), ended)


async def _answer(ctx: Context, asked: _Asked) -> Answer:
    """Answer by tables, refuse what is no question, or run the agent and judge its answer."""
    inner = await _condense(ctx, asked.history)
    by_code = None if isinstance(asked.agent, ClosedBook) else await answer_from_tables(inner)
    unclear, mode = _explain_lone_pronoun(inner), asked.mode
    if by_code is not None:
        answer = by_code
    elif mode == "reject" and unclear:
        answer = make_refusal(ctx, Evidence(), unclear)
    elif (other := await _explain_no_question(inner)) and (mode == "reject" or other == SMALL_TALK):
        answer = make_refusal(ctx, Evidence(), other)
    else:
        answer = await asked.agent(inner, asked.retrieve, mode)
        if not answer.signals and not answer.parts:  # some agents judge what they read
            answer = await judge_answer(inner, answer)
        plain = await _ask_plainly(inner)
        answer = await judge_quoted_rows(plain, answer)
        answer = cite_bridge(plain, await compare_rows(plain, answer))
        if mode == "open" and inner.chat("answer") is None:
            answer = _name_nothing_if_hopeless(inner, answer, other)
        if mode == "open" and answer.confidence < DEFAULT_THRESHOLD:
            answer = replace(answer, note=_join(_explain_unsure(inner, answer), answer.note))
        if unclear:
            answer = replace(answer, confidence=0.0, note=_join(unclear, answer.note))
    return _refuse_if_unsure(inner, answer, asked.threshold) if mode == "reject" else answer


async def _ask_plainly(ctx: Context) -> Context:
    """Return the context with the question as it was read, where it is one question."""
    parts = split_questions(await say_plainly(ctx))
    return replace(ctx, question=parts[0]) if len(parts) == 1 else ctx


async def _condense(ctx: Context, history: Sequence[ConversationTurn]) -> Context:
    return ctx.with_question(await condense_question(ctx, history)) if history else ctx


def _has_nothing(view: View) -> bool:
    return not any(view.count(kind) for kind in ("chunk", "entity", "fact"))


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


def find_missing_trees(trace: Sequence[TraceStep]) -> str:
    """Say which tree a step would have searched, if it was not built."""
    pending, found = list(trace), dict[str, None]()
    while pending:
        step = pending.pop()
        pending += step.steps
        if step.step == NO_TREE:
            found[f"no communities were searched: {step.output}"] = None
    return "; ".join(found)


def _join(*notes: str) -> str:
    return "; ".join(filter(None, notes))


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


async def _explain_no_question(ctx: Context) -> str:
    """Return the reason if nothing is asked, or something ordered that no document does, or "".

    With a model that is for the model to see.
    """
    if ctx.chat("answer") is not None:
        return ""
    if is_small_talk(ctx.question):
        return SMALL_TALK
    if (bare := _BARE_CODE.fullmatch(ctx.question)) is not None:
        return NOTHING_ASKED.replace("$code", bare["code"])
    asks = table_for(ctx.question).question_words.search(ctx.question)
    if asks or ctx.question.rstrip().endswith(_MARKS) or not can_judge(ctx):
        return ""
    [chance] = await judge(ctx, "command", [ctx.question])
    return ORDER if chance > _ORDERED else ""


def _refuse_if_unsure(ctx: Context, answer: Answer, threshold: float) -> Answer:
    """Turn an answer whose confidence is below the threshold into a refusal that says why."""
    if answer.parts:
        parts = [
            _refuse_if_unsure(ctx.with_question(part.question), part, threshold)
            for part in answer.parts
        ]
        return replace(join_parts(ctx.question, answer.evidence, parts), note=answer.note)
    unknown = explain_other_language(answer, ctx.question) or explain_unmentioned(ctx, answer)
    if answer.verdict == "refused":
        # What the documents do not mention at all explains more than that nothing was found.
        reason = unknown if answer.evidence.chunks else ""
    elif answer.confidence < threshold:
        reason = unknown or explain_doubt(answer, threshold)
    else:
        return answer
    if not reason:
        return answer
    refusal = make_refusal(ctx, answer.evidence, reason)
    return replace(
        refusal, complete=answer.complete, note=answer.note, confidence=answer.confidence
    )


def explain_other_language(answer: Answer, question: str) -> str:
    """Say that no passage that was found is in the language of the question; "" if one may be."""
    asked = name_language(question)
    read = list[str]()
    for passage in answer.evidence.chunks if asked else ():
        read.append(name_language(passage.text))
        if read[-1] in ("", asked):
            return ""
    if not read:
        return ""
    found = " and ".join(dict.fromkeys(read[:2]))
    return f"the question is in {asked}, the passages found are in {found}"


def _explain_unsure(ctx: Context, answer: Answer) -> str:
    """Say what makes an answer that is named unsure: its language, or names no document has."""
    foreign = explain_other_language(answer, ctx.question)
    if foreign or answer.verdict == "refused" or answer.parts:
        return foreign
    return localise(ctx.question, explain_unmentioned(ctx, answer))


def _name_nothing_if_hopeless(ctx: Context, answer: Answer, order: str = "") -> Answer:
    """Name no answer that is all but surely wrong, or to what is no question, as an `order`.

    It says why, and quotes what is nearest as such.
    """
    if order:
        return replace(_quote_closest(ctx, answer, order), confidence=0.0)
    if answer.parts:
        parts = [
            _name_nothing_if_hopeless(ctx.with_question(part.question), part)
            for part in answer.parts
        ]
        return replace(join_parts(ctx.question, answer.evidence, parts), note=answer.note)
    named = bool(answer.candidate) and answer.kind in ("", "span") and not answer.computed
    named = named or answer.kind == "account"
    unclear = answer.signals.get("understood") == 0
    if answer.verdict == "refused" or not named:
        return answer
    if answer.confidence >= HOPELESS and not unclear:
        return answer
    reason = explain_other_language(answer, ctx.question) or explain_unmentioned(ctx, answer)
    reason = reason or explain_hopeless(answer)
    return _quote_closest(ctx, answer, explain_hopeless(answer) if unclear else reason)


def _quote_closest(ctx: Context, answer: Answer, reason: str) -> Answer:
    """Return a refusal that quotes as the closest passages what an answer quoted."""
    refusal = make_refusal(ctx, answer.evidence, reason)
    head = localise(ctx.question, CLOSEST_HEAD)
    quotes = f"\n{head}\n{format_quotes(answer.citations)}" if answer.citations else ""
    return replace(
        refusal,
        answer=f"{refusal.answer}{quotes}",
        citations=answer.citations,
        complete=answer.complete,
        note=answer.note,
        confidence=answer.confidence,
    )


def cut_question(question: str) -> tuple[str, str]:
    """Return what is read of a question that may be too long, and a note that says so, or "".

    That is its beginning, and what is asked behind it; this alone, if the beginning asks nothing.
    """
    size, most = len(question), MAX_QUESTION_CHARS
    if size <= most:
        return question, ""
    head = question[:most]
    spans = sentence_spans(question[most:])
    later = [question[most + a : most + b] for a, b in spans[1:]]
    asking = " ".join(dict.fromkeys(one for one in later if one.endswith(_MARKS)))[:most]
    if asking and not any(mark in head for mark in _MARKS):
        return asking, f"of {size:,} characters of the question only what asks was read"
    note = f"of {size:,} characters of the question the first {most:,} were read"
    if asking:
        both = f"{head[: most - len(asking)]} {asking}"
        return both, f"{note}; so was what is asked behind them"
    if not any(mark in head for mark in _MARKS):
        half = most // 2
        cut = f"{question[:half]} {question[-half + 1 :]}"
        said = f"of {size:,} characters of the question the first and the last {half:,} were read"
        return cut, said
    return head, note


def check_question(question: str, k: int | None, mode: str = "open") -> None:
    """Raise for a question, a number of passages or a mode that cannot be meant."""
    if not isinstance(question, str):
        raise ConfigError(f"the question must be a text, and {question!r} is not")
    if not question.strip():
        raise ConfigError("the question is empty")
    if isinstance(k, str):
        raise ConfigError(f"k={k!r} is a text; give a whole number of at least 1, without quotes")
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise ConfigError(f"-k {k}: must be a whole number of at least 1")
    if mode not in get_args(Mode):
        choices = " or ".join(map(repr, get_args(Mode)))
        raise ConfigError(f"mode {mode!r}: must be {choices}{suggest(str(mode), get_args(Mode))}")


async def place_in_files(answer: Answer, now: Snapshot, store: Store) -> Answer:
    """Return the answer with the lines and spans of its citations in files, where known.

    What is stored is the text as it was read; its origin leads from there to the file.
    """
    names = {one.doc for one in answer.citations}
    sources = await store.sources(names)
    origins = await read_origins(store, {name: held.document for name, held in sources.items()})
    same = {name: sources[name].document for name, origin in origins.items() if origin == SAME}
    documents = await now.documents(list(same.values()))
    texts = {name: documents[id].text for name, id in same.items() if id in documents}
    return replace(answer, citations=tuple(_place(one, origins, texts) for one in answer.citations))


def _place(one: Citation, origins: Mapping[str, str], texts: Mapping[str, str]) -> Citation:
    origin = origins.get(one.doc, "")
    if origin == SAME and one.doc not in texts:
        return one
    found = locate(origin, texts.get(one.doc, ""), one.start, one.end)
    if found is None:
        return one
    lines = replace(one, line=found.line, end_line=found.end_line)
    return replace(lines, file_start=found.start, file_end=found.end)
