"""The one way in: condense the question, let the agent answer, judge how sure that is.

Nothing answers before the agent, and nothing replaces what it says.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from pydantic import BaseModel

from clew.agents.base import Agent, Answer, Mode
from clew.agents.baselines import ClosedBook
from clew.agents.confidence import DEFAULT_THRESHOLD, judge, load_model, refuse_unsure
from clew.agents.conversation import ConversationTurn, condense_question
from clew.agents.messages import NO_DOCUMENTS, strip_marks
from clew.agents.quick import Quick
from clew.agents.tools import Toolbox
from clew.agents.writing import refuse
from clew.arguments import check_confidence
from clew.context import Context, Event, EventListener, TraceStep
from clew.errors import ConfigError, ModelError, suggest
from clew.ingest.arrivals import read_origins
from clew.layout import Modality
from clew.llm.budget import UNLIMITED, BudgetExceeded, UsageBudget, UsageLimits
from clew.llm.prompt import Prompt
from clew.llm.wrappers import UsageMeter
from clew.retrieve.step import Step
from clew.store.protocol import Snapshot, Store
from clew.text.origins import SAME, locate
from clew.text.places import find_breadcrumbs, page_at
from clew.text.structure import CRUMB_SEPARATOR
from clew.tree.outline import NO_TREE
from clew.types import Citation, Evidence, Finding, Passage

AnswerStream = AsyncGenerator[Event | Answer]
WITHOUT_MODEL = "given without the model"
NO_MODEL = "no language model is configured"
MAX_QUESTION_CHARS = 8_000
_ELLIPSIS = " … "


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


class Entailed(BaseModel):
    """Whether the cited passages say what was answered."""

    reasoning: str = ""
    entailed: bool = False


VERIFY_CITED = Prompt(
    "verify_cited", Entailed, {"question", "answer", "quotes"}, documents={"answer", "quotes"}
)


@dataclass(frozen=True)
class Asking:
    """How one question is answered: by which agent, over which retriever, in which mode."""

    agent: Agent
    retrieve: Step
    mode: Mode = "open"
    threshold: float = DEFAULT_THRESHOLD
    """In `reject`, the least confidence of an answer that its quotes do not say."""
    history: Sequence[ConversationTurn] = ()
    top_k: int | None = None
    """The caller's number of passages for each search."""
    verify: bool = False
    """Whether a model is asked if the quotes entail the answer."""


async def answer_with(ctx: Context, asking: Asking) -> Answer:
    """Answer the context's question; without a model, or where it fails, `Quick` answers.

    What the failing model was asked for is in `model_error`; a spent budget leaves the answer
    incomplete.
    """
    empty = not any(ctx.view.count(kind) for kind in ("chunk", "entity", "fact"))
    if empty and not isinstance(asking.agent, ClosedBook):
        return refuse(ctx, Evidence(), NO_DOCUMENTS)
    try:
        condensed = await _condense(ctx, asking.history)
        answer = await _run(condensed, asking)
        if not ctx.has_model and answer.missing != NO_MODEL:
            answer = answer.noting(NO_MODEL)
    except (ModelError, BudgetExceeded) as ended:
        if not ctx.has_model:
            raise
        try:
            answer = await _answer_without_model(ctx, asking, ended)
        except (ConfigError, ModelError):  # this recipe needs a model, or the embedder failed
            raise ended from None
    placed = place_citations(answer.citations, answer.evidence.chunks)
    return replace(answer, question=ctx.question, citations=placed)


async def _condense(ctx: Context, history: Sequence[ConversationTurn]) -> Context:
    return ctx.with_question(await condense_question(ctx, history)) if history else ctx


async def _run(ctx: Context, asking: Asking) -> Answer:
    """Run the agent and judge its answer; without a model `Quick` takes its place."""
    if not ctx.has_model and isinstance(asking.agent, ClosedBook):
        return refuse(ctx, Evidence(), NO_MODEL)
    tools = Toolbox(ctx, asking.retrieve, asking.top_k)
    agent: Agent = asking.agent if ctx.has_model else Quick()
    if ctx.hints and ctx.has_model:
        tools = replace(tools, hint=await read_hint(ctx, tools))
    answer = await agent(ctx, tools, asking.mode)
    if asking.verify and ctx.has_model and answer.citations:
        answer = await _verify(ctx, answer)
    judged = judge(answer, await load_model(ctx.key_values))
    return refuse_unsure(judged, asking.mode, asking.threshold)


async def read_hint(ctx: Context, tools: Toolbox) -> Evidence:
    """Return what is read without a model, as a finding for the model to weigh; or nothing."""
    bare = replace(tools, ctx=replace(ctx, models=None), found=[])
    read = await Quick()(bare.ctx, bare, "open")
    if not read.candidate:
        return Evidence()
    chance = judge(read, await load_model(ctx.key_values)).confidence
    cited = {one.chunk for one in read.citations}
    sources = tuple(one for one in read.evidence.chunks if one.id in cited)
    said = " ".join(" ".join(one.quote.split()) for one in read.citations)
    text = f"a guess made without a language model, right with a chance of {chance:.0%}: "
    return Evidence(
        findings=(Finding(f"{text}“{read.candidate}”, from: {said}", "reader", sources),)
    )


async def _verify(ctx: Context, answer: Answer) -> Answer:
    """Ask a model whether the quotes entail the answer: one more signal, and a note where not.

    A model that fails here takes nothing away from the answer.
    """
    quotes = "\n".join(f"[{n}] {c.quote}" for n, c in enumerate(answer.citations, start=1))
    text = strip_marks(answer.answer)
    try:
        said = await ctx.ask(
            VERIFY_CITED, step="verify", question=ctx.question, answer=text, quotes=quotes
        )
    except (ModelError, BudgetExceeded) as error:
        return answer.noting(f"not verified: {error}")
    signals = {**answer.signals, "verified": float(said.entailed)}
    note = "" if said.entailed else "the quotes do not say all of this"
    return replace(answer, signals=signals).noting(note)


async def _answer_without_model(
    ctx: Context, asking: Asking, ended: ModelError | BudgetExceeded
) -> Answer:
    """Answer as where no model is configured; the answer says that, and why."""
    bare = replace(ctx, models=None, budget=UsageBudget(spent=ctx.budget.spent))
    async with bare.step("answer without the model", str(ended)) as step:
        answer = await _run(await _condense(step.ctx, asking.history), asking)
        step.output = answer.candidate or answer.verdict
    error = str(ended) if isinstance(ended, ModelError) else ""
    answer = replace(answer, complete=False, model_error=error)
    return answer.noting(f"{WITHOUT_MODEL}: {ended}")


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


def cut_question(question: str) -> tuple[str, str]:
    """Return a question without its middle where it is too long, and a note that says so, or ""."""
    most = MAX_QUESTION_CHARS
    if len(question) <= most:
        return question, ""
    half = (most - len(_ELLIPSIS)) // 2
    note = f"of {len(question):,} characters of the question the first and last {half:,} were read"
    return f"{question[:half]}{_ELLIPSIS}{question[-half:]}", note


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


def place_citations(
    citations: Sequence[Citation], passages: Sequence[Passage]
) -> tuple[Citation, ...]:
    """Return the citations with the sections and the page on which they stand."""
    homes = {passage.id: passage for passage in passages}
    placed = []
    for cited in citations:
        if (passage := homes.get(cited.chunk)) is not None and not cited.heading:
            at = max(0, cited.start - passage.start)
            crumbs = find_breadcrumbs(passage.doc, passage.text, at, passage.heading)
            page = page_at(passage.text, at, passage.page)
            cited = replace(cited, heading=CRUMB_SEPARATOR.join(crumbs), page=page)
        placed.append(cited)
    return tuple(placed)


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
