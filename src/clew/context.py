"""Per-question context: knowledge base, models, budget, cached vectors and trace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clew.config import Role
from clew.errors import ConfigError, ParseError
from clew.index.estimates import Estimates
from clew.index.nearest import select_best
from clew.layout import ASSUMED_WINDOW, PASSAGES, Layout, Modality
from clew.llm.budget import BudgetedChat, UsageBudget
from clew.llm.chat import Chat, Message, Reply, Request, TextCallback
from clew.llm.embed import Embedder, check_same_dim, measure_known
from clew.llm.fit_prompt import WindowedChat
from clew.llm.limits import ModelWait
from clew.llm.parse import Out
from clew.llm.prompt import Prompt
from clew.llm.tools import ToolSpec
from clew.llm.wrappers import UsageMeter
from clew.types import Kind, Route, Usage
from clew.version import pip_install_command

if TYPE_CHECKING:  # what it only holds
    from clew.index.view import View
    from clew.llm.rerank import Reranker
    from clew.models import Models
    from clew.reader.span_reader import ReadSpan
    from clew.store.protocol import DocumentSource, KeyValueStore, Snapshot

MAX_COMPARED = 2000  # of very many elements, those compared with a vector at once
_MAX_SHOWN = 400  # characters of a reply in the trace
_MAX_CACHED_COSINES = 8  # query vectors whose cosines with all elements are cached per question


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One traced step: its input, output, duration and model usage."""

    step: str
    input: str
    output: str
    seconds: float
    usage: Usage = Usage()
    steps: tuple[TraceStep, ...] = ()
    """Nested steps, in the order in which they ended."""
    docs: tuple[str, ...] = ()
    """Documents that a retrieval found, best first."""


@dataclass(frozen=True, slots=True)
class StepStarted:
    """Event: a step started at this nesting depth."""

    step: str
    input: str
    depth: int


@dataclass(frozen=True, slots=True)
class StepEnded:
    """Event: a step ended; its result is in the trace."""

    step: TraceStep
    depth: int
    walked: tuple[Route, ...] = ()
    """The best paths of the graph that a retrieval followed."""


@dataclass(frozen=True, slots=True)
class AnswerDelta:
    """Event: a piece of streamed answer text, not yet checked against the evidence."""

    text: str
    restart: bool = False
    """Whether the model writes anew: what was streamed before is void."""


@dataclass(frozen=True, slots=True)
class ShownPrompt:
    """One model call: exactly the messages that were sent, and the reply."""

    role: Role
    messages: tuple[Message, ...]
    reply: str


@dataclass(frozen=True, eq=False)
class PromptRecorder:
    """Chat wrapper that records every call."""

    inner: Chat
    role: Role
    shown: list[ShownPrompt]

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Send the request and record it with its reply."""
        reply = await self.inner(request, on_text)
        self.shown.append(ShownPrompt(self.role, request.messages, reply.text))
        return reply


class PassageReader(Protocol):
    """Finds answers as spans of passages, each with a score against no answer."""

    def reads(self, question: str) -> bool:
        """Whether it knows the script and the words of a question."""
        ...

    def read(
        self,
        question: str,
        passages: Sequence[str],
        *,
        titles: Sequence[str] | None = None,
        most: int = 5,
    ) -> list[ReadSpan]:
        """Read each passage alone and return the best spans of all."""
        ...


Event = StepStarted | StepEnded | AnswerDelta | ModelWait
EventListener = Callable[[Event], None]


@dataclass(frozen=True)
class Context:
    """One question, the knowledge base and models it may use, and the trace so far."""

    question: str
    view: View
    snapshot: Snapshot
    embed: Embedder | None = None
    models: Models | None = None
    key_values: KeyValueStore | None = None
    """Key-value store of the knowledge base, for example for community summaries."""
    sources: Callable[[Collection[str] | None], Awaitable[Mapping[str, DocumentSource]]] | None = (
        None
    )
    """Looks documents up by the names they were added under."""
    trace: list[TraceStep] = field(default_factory=list)
    _vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    budget: UsageBudget = field(default_factory=UsageBudget)
    meter: UsageMeter = field(default_factory=UsageMeter)
    """Model usage of this step and its nested steps."""
    on_event: EventListener | None = None
    depth: int = 0
    given_entities: tuple[str, ...] = ()
    """Names of the entities the question is about, if the caller gives them."""
    rerank: Reranker | None = None
    reader: PassageReader | None = None
    """Reads answers as spans; None where its weights or packages are missing."""
    hints: bool = False
    """Whether what code reads or computes is shown to the model, marked as such."""
    layout: Layout = PASSAGES
    """What the recipe shows to the model."""
    modality: Modality = "all"
    """Which kinds of evidence the caller wants to be shown."""
    prompts: list[ShownPrompt] | None = None
    """Every model call so far, if they are recorded."""
    style: str = ""
    """How the caller wants answers to be worded; it changes no rule about evidence."""
    _cosines_by_vector: dict[tuple[Kind, bytes], NDArray[np.float32]] = field(default_factory=dict)
    _estimates_by_vector: dict[tuple[Kind, bool, int, bytes], Estimates] = field(
        default_factory=dict
    )
    _meaning_by_text: dict[str, float] = field(default_factory=dict)

    def meaning(self, text: str = "") -> float:
        """How far vectors tell what a text (or the question) means: 0 in an unknown script."""
        if self.embed is None:
            return 0.0
        text = text or self.question
        if text not in self._meaning_by_text:
            self._meaning_by_text[text] = measure_known(self.embed, text)
        return self._meaning_by_text[text]

    def has(self, role: Role) -> bool:
        """Whether a model is configured for this role."""
        return self.models is not None and self.models.has(role)

    def chat(self, role: Role) -> Chat | None:
        """The chat model for this role, or None: a step then uses its variant without a model."""
        if self.models is None or not self.models.has(role):
            return None
        price = self.models.price(role)
        chat: Chat = BudgetedChat(self.models.chat(role), self.budget, self.meter, price)
        chat = WindowedChat(chat, partial(self.models.prompt_room, role), self.note_cut)
        return chat if self.prompts is None else PromptRecorder(chat, role, self.prompts)

    @property
    def has_model(self) -> bool:
        """Whether any model may plan or answer."""
        return self.has("plan") or self.has("answer")

    def model(self, role: Role) -> Chat:
        """The model of this role, or the other of the two that answer; ConfigError without any."""
        chat = self.chat(role) or self.chat("answer") or self.chat("plan")
        if chat is None:
            raise ConfigError("no model is configured: set CLEW_MODEL, or model under [models]")
        return chat

    async def ask(
        self,
        prompt: Prompt[Out],
        /,
        *,
        role: Role = "plan",
        step: str = "",
        tools: Sequence[ToolSpec] = (),
        otherwise: Out | None = None,
        wrap: Callable[[Chat], Chat] | None = None,
        **inputs: Any,
    ) -> Out:
        """Ask a model as one traced step; `wrap` goes around the chat, for example to stream.

        Raises ModelError where the model fails. A reply that cannot be read is a ParseError, unless
        `otherwise` says what to go on with.
        """
        async with self.step(step or prompt.name, self.question) as traced:
            chat = traced.ctx.model(role)
            try:
                asked = wrap(chat) if wrap else chat
                reply = await prompt.ask(asked, tools=tools, **inputs)
            except ParseError as error:
                traced.output = f"unusable reply: {error}"[:_MAX_SHOWN]
                if otherwise is None:
                    raise
                return otherwise
            traced.output = reply.model_dump_json(exclude_defaults=True)[:_MAX_SHOWN]
            return reply

    def note_cut(self, what: str) -> None:
        """Note in the trace that a prompt was cut to the model's window."""
        self.trace.append(TraceStep("cut prompt", "the model's window is too small", what, 0.0))

    async def room(self, role: Role, reply: int = 0) -> int:
        """The tokens, as estimated, that a prompt of this role's model may have beside a reply."""
        if self.models is None or not self.has_model:
            return ASSUMED_WINDOW - reply
        if not self.models.has(role):
            role = "answer" if self.models.has("answer") else "plan"
        return (await self.models.prompt_room(role)).beside(reply)

    def with_question(self, question: str) -> Context:
        """Return a context for another question that shares everything else."""
        given = self.given_entities if question == self.question else ()
        return replace(self, question=question, given_entities=given)

    @asynccontextmanager
    async def step(self, name: str, given: str = "") -> AsyncIterator[OpenStep]:
        """Trace a step; steps run with the yielded context are nested in it."""
        inner = replace(self, trace=[], meter=UsageMeter(), depth=self.depth + 1)
        opened = OpenStep(inner)
        started = perf_counter()
        if self.on_event is not None:
            self.on_event(StepStarted(name, given, self.depth))
        try:
            yield opened
        except Exception as error:
            opened.output = f"failed: {error}"
            raise
        finally:
            usage = inner.meter.total
            self.meter.add(usage)
            seconds = perf_counter() - started
            nested = tuple(inner.trace)
            done = TraceStep(name, given, opened.output, seconds, usage, nested, opened.docs)
            self.trace.append(done)
            if self.on_event is not None:
                self.on_event(StepEnded(done, self.depth, opened.walked))

    async def vector(self, text: str | None = None) -> NDArray[np.float32]:
        """The vector of the question or of another text, embedded once per question."""
        return (await self.vectors([self.question if text is None else text]))[0]

    async def vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """The vectors of several texts; those not cached yet are embedded in one batch."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing:
            if self.embed is None:
                raise ConfigError(
                    f"this recipe needs an embedder; `{pip_install_command('local')}`, "
                    "set [embed] in clew.toml, or use --recipe bm25"
                )
            embedded = await self.embed(missing, role="query")
            self._check_dimensions(embedded.shape[1])
            self._vectors.update(zip(missing, embedded, strict=True))
        return [self._vectors[text] for text in texts]

    def _check_dimensions(self, given: int) -> None:
        """Raise if the vectors held have other dimensions; the first kind with vectors tells."""
        held = (self.view.matrices.get(kind) for kind in self.view.matrices)
        first = next((matrix for matrix in held if matrix is not None and len(matrix)), None)
        if first is not None and self.embed is not None:
            check_same_dim(self.embed.name, first.shape[1], given)

    def cosines(
        self, kind: Kind, vector: NDArray[np.float32], at: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Cosine of every element (or those at `at`) with a vector, cached for all elements.

        The array for all elements is shared and read-only.
        """
        key = kind, vector.tobytes()
        if at is not None:
            known = self._cosines_by_vector.get(key)
            return self.view.cosines(kind, vector, at) if known is None else known[at]
        if key not in self._cosines_by_vector:
            if len(self._cosines_by_vector) >= _MAX_CACHED_COSINES:
                self._cosines_by_vector.clear()
            cosines = self.view.cosines(kind, vector)
            cosines.flags.writeable = False
            self._cosines_by_vector[key] = cosines
        return self._cosines_by_vector[key]

    def compare_together(
        self, kind: Kind, vectors: Sequence[NDArray[np.float32]], most: int | None = None
    ) -> None:
        """Compare every element with several vectors at once; `cosines` then has them.

        Of very many only about `most` are compared, and `estimates` has them.
        """
        most = MAX_COMPARED if most is None else most
        asked = {vector.tobytes(): vector for vector in vectors}
        if self.view.is_estimated(kind):
            new = {(kind, True, most, raw): one for raw, one in asked.items()}
            if not any(key in self._estimates_by_vector for key in new):
                together = self.view.estimates_with(kind, [*new.values()], most)
                estimated = zip(new, together, strict=True)
                self._estimates_by_vector.update({key: one for key, one in estimated if one})
            return
        if any((kind, raw) in self._cosines_by_vector for raw in asked):
            return
        compared = self.view.cosines_with(kind, list(asked.values()))
        for raw, found in zip(asked, compared, strict=True):
            found.flags.writeable = False
            self._cosines_by_vector[kind, raw] = found

    def estimates(
        self,
        kind: Kind,
        vector: NDArray[np.float32],
        *,
        others: bool = True,
        most: int | None = None,
    ) -> Estimates:
        """Cosine of every element with a vector; of very many exact for the nearest, on demand.

        About `most` are compared. Without `others` those that are not known count as if they had no
        vector.
        """
        most = MAX_COMPARED if most is None else most
        key = kind, others, most, vector.tobytes()
        if key not in self._estimates_by_vector:
            if len(self._estimates_by_vector) >= _MAX_CACHED_COSINES:
                self._estimates_by_vector.clear()
            found = self.view.estimates(kind, vector, most, others=others)
            self._estimates_by_vector[key] = found or Estimates(self.cosines(kind, vector))
        return self._estimates_by_vector[key]

    def nearest(
        self, kind: Kind, vector: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The `k` elements nearest to a vector, best first, and their cosines."""
        known = self._cosines_by_vector.get((kind, vector.tobytes()))
        if known is None or kind == "attribute":
            return self.view.nearest(kind, vector, k)
        at = select_best(known, self.view.codes("entity" if kind == "description" else kind), k)
        return at, known[at]


@dataclass
class OpenStep:
    """A running step: the context for nested steps, and the output to trace."""

    ctx: Context
    output: str = ""
    docs: tuple[str, ...] = ()
    walked: tuple[Route, ...] = ()
