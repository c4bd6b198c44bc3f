"""What every step may touch while it works on one question."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError
from clew.llm.budget import Budget, Budgeted
from clew.llm.chat import Chat
from clew.llm.embed import Embed, check_same_width
from clew.llm.rerank import Rerank
from clew.llm.wrap import Meter
from clew.model_settings import Role
from clew.models import Models
from clew.store.protocol import Memory, Snapshot
from clew.types import Kind, Usage
from clew.version import pip_install
from clew.view import View

_MOST_NEAR = 8  # vectors whose cosines with all elements are kept for one question


@dataclass(frozen=True, slots=True)
class TraceStep:
    """What one step was given, what it left behind, and what that cost."""

    step: str
    input: str
    output: str
    seconds: float
    usage: Usage = Usage()
    steps: tuple["TraceStep", ...] = ()
    """What it did within, in the order in which that ended."""


@dataclass(frozen=True, slots=True)
class Began:
    """A step begins, so deep in the tree."""

    step: str
    input: str
    depth: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A step is over; what it left is in the trace."""

    step: TraceStep
    depth: int


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of the answer as it is written; unchecked until the answer is whole."""

    text: str


Event = Began | Ended | Said
Tell = Callable[[Event], None]


@dataclass(frozen=True)
class Context:
    """One question, the knowledge base and the models it may use, and the trace so far."""

    question: str
    view: View
    snapshot: Snapshot
    embed: Embed | None = None
    models: Models | None = None
    memory: Memory | None = None
    """What the knowledge base remembers by key beside its graph: communities' texts, for one."""
    trace: list[TraceStep] = field(default_factory=list)
    _vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    bill: Meter = field(default_factory=Meter)
    """What the model calls of this step, and of those within it, have cost."""
    tell: Tell | None = None
    depth: int = 0
    given: tuple[str, ...] = ()
    """Names of the entities the question is about, where whoever asks gives them."""
    rerank: Rerank | None = None
    _near: dict[tuple[Kind, bytes], NDArray[np.float32]] = field(default_factory=dict)

    def has(self, role: Role) -> bool:
        """Whether a model is set that does this."""
        return self.models is not None and self.models.has(role)

    def chat(self, role: Role) -> Chat | None:
        """The model that does this, or none: a step then takes its variant without a model."""
        if self.models is None or not self.models.has(role):
            return None
        return Budgeted(self.models.chat(role), self.budget, self.bill)

    def asking(self, question: str) -> "Context":
        """The same knowledge base, models, budget and trace, for another question."""
        given = self.given if question == self.question else ()
        return replace(self, question=question, given=given)

    @asynccontextmanager
    async def step(self, name: str, given: str = "") -> AsyncIterator["Opened"]:
        """A step of the trace: what happens within, through the yielded context, nests in it."""
        inner = replace(self, trace=[], bill=Meter(), depth=self.depth + 1)
        opened = Opened(inner)
        started = perf_counter()
        if self.tell is not None:
            self.tell(Began(name, given, self.depth))
        try:
            yield opened
        except Exception as error:
            opened.left = f"failed: {error}"
            raise
        finally:
            usage = inner.bill.total
            self.bill.add(usage)
            seconds = perf_counter() - started
            done = TraceStep(name, given, opened.left, seconds, usage, tuple(inner.trace))
            self.trace.append(done)
            if self.tell is not None:
                self.tell(Ended(done, self.depth))

    async def vector(self, text: str | None = None) -> NDArray[np.float32]:
        """The question's vector (or another text's), embedded once however often it is asked."""
        return (await self.vectors([self.question if text is None else text]))[0]

    async def vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """The vectors of several texts; what is not known yet is embedded in one batch."""
        lacking = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if lacking:
            if self.embed is None:
                raise ConfigError(
                    f"this recipe needs an embedder; `{pip_install('local')}`, set [embed] in "
                    "clew.toml, or use --recipe bm25"
                )
            made = await self.embed(lacking, role="query")
            for held in self.view.matrices.values():
                if len(held):
                    check_same_width(self.embed.name, held.shape[1], made.shape[1])
            self._vectors.update(zip(lacking, made, strict=True))
        return [self._vectors[text] for text in texts]

    def similar(
        self, kind: Kind, vector: NDArray[np.float32], at: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Cosine of every element (or those at `at`) with a vector; of all it is worked out once.

        What comes back for all is shared and cannot be written to.
        """
        key = kind, vector.tobytes()
        if at is not None:
            known = self._near.get(key)
            return self.view.similar(kind, vector, at) if known is None else known[at]
        if key not in self._near:
            if len(self._near) >= _MOST_NEAR:
                self._near.clear()
            near = self.view.similar(kind, vector)
            near.flags.writeable = False
            self._near[key] = near
        return self._near[key]


@dataclass
class Opened:
    """A step under way: the context for what is done within, and what it leaves behind."""

    ctx: Context
    left: str = ""
