"""The knowledge base: adding documents, searching, answering questions and maintenance."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.adapt.keep import adapted, remind
from clew.agents.answer import Answer, Mode, Results
from clew.agents.ask import PLAINLY, Manner, Streamed, answer_with, streamed
from clew.agents.gate import GATED, Relevance, relevance
from clew.agents.notebook import once
from clew.arrays import arrays_of
from clew.builder import Builder, silent
from clew.config import Settings
from clew.context import Context
from clew.errors import ConfigError
from clew.identity import Identity
from clew.ingest.build import Added, Extract, Progress, check_embedder
from clew.ingest.graphs.again import added_again, known_graphs
from clew.ingest.graphs.story import GraphImport, Imported
from clew.ingest.named import documents_named
from clew.ingest.places import read_into
from clew.ingest.plan import Plan
from clew.ingest.read import Item
from clew.llm.budget import Budget
from clew.llm.embed import Embed
from clew.llm.rerank import Rerank
from clew.llm.rerankers import reranker
from clew.model_settings import Role
from clew.models import Models
from clew.opening import embedding, opened
from clew.retrieve.pack import evidence
from clew.show import Shown, shown
from clew.store.protocol import Counts, Snapshot, Store, removal
from clew.store.sqlite import SqliteStore
from clew.types import Found, Kind
from clew.view import View

if TYPE_CHECKING:
    from clew.recipes import Asked

ANSWERING: tuple[Role, ...] = ("plan", "answer")  # roles whose models may answer a question
_LONGEST = 8_000  # longer questions are cut: the planning rules take a second for this many
_KINDS: tuple[Kind, ...] = ("chunk", "entity", "fact", "community")


@dataclass
class KnowledgeBase:
    """A store together with the embedder and models that read and write it."""

    store: Store
    settings: Settings
    embed: Embed | None
    _view: View | None = None

    @cached_property
    def models(self) -> Models:
        """The chat models, with their usage in this session."""
        return Models(self.settings.models, self.store)

    @cached_property
    def _rerank(self) -> Rerank | None:
        """The cross-encoder reranker, if the settings name one."""
        return reranker(self.settings.rerank)

    @cached_property
    def builder(self) -> Builder:
        """Runs adds, re-embedding and repair."""
        return Builder(self.store, self.settings, self.embed, self.models)

    @cached_property
    def identity(self) -> Identity:
        """Merges and splits entities."""
        return Identity(self.store)

    # -- adding

    async def add(
        self,
        paths: Sequence[Path | str],
        *,
        extractor: str | Extract | None = None,
        retry: bool = False,
        progress: Progress = silent,
    ) -> Added:
        """Read files and folders, and add what is new or changed.

        With `retry` and no paths, documents with failed chunks are extracted again from the
        knowledge base itself. A file that was imported as a graph is imported again.
        """
        graphs = await known_graphs(self.store, paths)
        results = [await self.import_graph(p, form=f, progress=progress) for p, f in graphs.items()]
        paths = [path for path in paths if path not in graphs]
        if results and not paths:
            return added_again(results)
        files = read_into(self.store, paths) if paths or not retry else None
        documents = files or self.builder.failed()
        added = await self.take(documents, extractor, retry=retry, progress=progress)
        return added_again(results, added) if results else added

    async def take(
        self,
        documents: AsyncIterator[Item],
        extractor: str | Extract | None = None,
        *,
        retry: bool = False,
        progress: Progress = silent,
    ) -> Added:
        """Add documents that the caller has already read."""
        added = await self.builder.take(documents, extractor, retry=retry, progress=progress)
        if self.models.configured and await self.identity.describe(self.models.chat("extract")):
            await self.models.book()
        return added

    async def plan(self, paths: Sequence[Path | str], *, extractor: str | None = None) -> Plan:
        """Estimate the cost of adding these paths; writes nothing and calls no model."""
        return await self.builder.plan(paths, extractor=extractor)

    async def import_graph(
        self,
        path: Path | str,
        *,
        form: str | None = None,
        strict: bool = False,
        embed: bool | None = None,
        progress: Progress = silent,
    ) -> Imported:
        """Import a graph file; if `embed` is None, the limit in the settings decides."""
        importer = GraphImport(
            self.store,
            self.settings.kb / "import",
            self.embed if embed is not False else None,
            None if embed else self.settings.embed.import_limit,
            strict,
            progress,
        )
        done = await importer(Path(path), form)
        if done.unchanged:
            return done
        return replace(done, counts=await self.builder.tended(progress) or done.counts)

    async def remove(self, names: Sequence[str]) -> Counts:
        """Remove documents by name; the name of a table, graph or folder removes all of it."""
        names = documents_named(names, await self.store.sources())
        counts = await self.store.write(removal(names), arrays_of)
        return await self.builder.tended() or counts

    async def reembed(self, progress: Progress = silent) -> str:
        """Embed everything with the configured embedder, then switch to it atomically."""
        return await self.builder.reembed(progress)

    async def repair(self, progress: Progress = silent) -> None:
        """Derive the arrays from the tables again, and embed elements without a vector."""
        await self.builder.repair(progress)

    # -- inspecting

    async def status(self) -> dict[str, Any]:
        """Counts, embedder, size and money spent, in the format of `clew status --json`."""
        counts = await self.store.counts()
        manifest = await self.store.recall("manifest", ["embedder", "spent"])
        return {
            "documents": counts.documents,
            "chunks": counts.chunks,
            "entities": counts.entities,
            "facts": counts.facts,
            "communities": counts.communities,
            "embedder": manifest.get("embedder", ""),
            "generation": counts.generation,
            "failed": counts.failed,
            "bytes": counts.bytes,
            "spent": float(manifest.get("spent", "0")),
        }

    async def show(self, name: str) -> Shown:
        """Details of the entities and the document with this name."""
        async with self.store.snapshot() as now:
            return await shown(name, now, await self.store.sources())

    # -- asking

    async def search(
        self,
        question: str,
        *,
        recipe: str | None = None,
        k: int = 10,
        entities: Sequence[str] = (),
    ) -> Results:
        """Run a recipe and return its evidence; needs no model.

        `entities` are names that graph recipes start from, instead of linking the question.
        """
        started = perf_counter()
        name = recipe or self.settings.recipe
        _check(question, k)
        async with self.store.snapshot() as snapshot:
            chain = _asked(name).retrieve
            ctx = await self._context(snapshot, question, chain.name)
            ctx = replace(ctx, given=tuple(entities))
            found = await chain(ctx, Found())
            gathered = await evidence(ctx, replace(found, chunks=found.chunks[:k]))
        seconds = perf_counter() - started
        return Results(question, name, gathered, tuple(ctx.trace), seconds, ctx.bill.total)

    async def ask(
        self,
        question: str,
        *,
        recipe: str | None = None,
        mode: Mode = "open",
        k: int | None = None,
        entities: Sequence[str] = (),
        manner: Manner = PLAINLY,
    ) -> Answer:
        """Answer a question from the evidence, every sentence cited."""
        started = perf_counter()
        _check(question, k)
        name, reason = (recipe, "") if recipe else await self._usual()
        loaded = _asked(name).as_trained(self.models.trained(), name).with_top(k)
        if manner.limits.money is not None:
            self.models.check_prices(ANSWERING)
        try:
            async with self.store.snapshot() as snapshot:
                ctx = replace(
                    await self._context(snapshot, question[:_LONGEST], loaded.retrieve.name),
                    given=tuple(entities),
                    budget=Budget(manner.limits),
                    tell=manner.tell,
                )
                answer = await answer_with(ctx, loaded.agent, loaded.retrieve, mode, manner.history)
        finally:
            await self.models.book()  # calls are paid for even if the answer failed
        return replace(
            answer,
            recipe=name,
            note="; ".join(filter(None, (answer.note, loaded.note, reason, _cut(question)))),
            trace=tuple(ctx.trace),
            seconds=perf_counter() - started,
            usage=ctx.bill.total,
        )

    async def _usual(self) -> tuple[str, str]:
        """The recipe for a question that names none, and why if it is not the configured one."""
        from clew.recipes.choosing import ON_GRAPHS, WHY, only_a_graph

        name = self.settings.recipe
        if self.settings.own_recipe or self.embed is None or any(map(self.models.has, ANSWERING)):
            return name, ""
        async with self.store.snapshot() as snapshot:
            view = await self._current(snapshot)
        return (ON_GRAPHS, WHY) if await only_a_graph(view, self.store) else (name, "")

    def forget_view(self) -> None:
        """Drop the cached view: something outside the generation's arrays has changed."""
        self._view = None

    async def context(self, snapshot: Snapshot, question: str) -> Context:
        """Return a context for running retrieval steps one by one."""
        return await self._context(snapshot, question)

    def stream(self, question: str, *, manner: Manner = PLAINLY, **how: Any) -> Streamed:
        """Answer a question as a stream of events; the last item is the answer."""
        return streamed(lambda tell: self.ask(question, manner=replace(manner, tell=tell), **how))

    async def relevance(self, question: str, *, recipe: str | None = None) -> Relevance:
        """How relevant the knowledge base is to a question, by the relevance gate of `recipe`."""
        from clew.recipes import gated

        _check(question, None)
        async with self.store.snapshot() as snapshot:
            chain = _asked(recipe or gated(self.settings.recipe)).retrieve
            ctx = await self._context(snapshot, question, chain.name)
            found = await chain(ctx, Found())
            top = replace(found, chunks=once(found.chunks)[:GATED], facts=(), paths=())
            return await relevance(ctx, await evidence(ctx, top))

    async def _context(self, snapshot: Snapshot, question: str, recipe: str = "") -> Context:
        view = await self._current(snapshot)
        embed = adapted(view, self.embed, recipe)
        return Context(
            question, view, snapshot, embed, self.models, self.store, rerank=self._rerank
        )

    async def _current(self, snapshot: Snapshot) -> View:
        """The snapshot's view, cached until the generation changes."""
        view = self._view
        if view is None or view.generation != snapshot.generation:
            await check_embedder(self.store, self.embed)
            matrices: dict[Kind, Any] = {}
            if self.embed is not None:
                for kind in _KINDS:
                    matrices[kind] = np.asarray(self.store.vectors(self.embed.name, kind).matrix())
            view = self._view = View(snapshot.arrays, matrices, snapshot.generation)
            await remind(view, self.store, self.embed)
        return view

    async def verify(self) -> list[str]:
        """Check consistency; return one sentence per problem."""
        return await self._folder().problems()

    async def backup(self, file: Path) -> int:
        """Copy the database to a file; return its size."""
        return await self._folder().backup(file)

    def _folder(self) -> SqliteStore:
        if not isinstance(self.store, SqliteStore):
            raise ConfigError("this knowledge base is not a folder; there is nothing to check")
        return self.store

    async def close(self) -> None:
        """Close files and release locks."""
        await self.store.close()

    @classmethod
    async def open(
        cls, settings: Settings, *, create: bool = False, embed: bool = True
    ) -> "KnowledgeBase":
        """Open the configured folder with the configured embedder."""
        store = await opened(settings, create=create)
        if not embed:
            return cls(store, settings, None)
        vectors, settings = await embedding(store, settings)
        return cls(store, settings, vectors)


def _cut(question: str) -> str:
    if len(question) <= _LONGEST:
        return ""
    return f"of the question's {len(question):,} characters the first {_LONGEST:,} were read"


def _check(question: str, k: int | None) -> None:
    if not question.strip():
        raise ConfigError("the question is empty; ask something")
    if k is not None and k < 1:
        raise ConfigError(f"-k {k}: ask for at least one passage")


def _asked(name: str) -> "Asked":
    """Load a recipe by name; importing all recipes is deferred until the first question."""
    from clew.recipes import asked_named

    return asked_named(name)
