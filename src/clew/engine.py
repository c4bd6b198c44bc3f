"""The two stories, top to bottom: add() and ask(). Everything else here is a short errand."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from clew.agents.answer import Answer, Mode, Results
from clew.agents.extractive import extractive_answer
from clew.agents.written import written_answer
from clew.arrays import arrays_of, up_to_date
from clew.builder import Builder, silent
from clew.config import Settings
from clew.context import Context
from clew.errors import ConfigError, StoreError
from clew.ingest.build import Added, Extract, Progress, check_embedder
from clew.ingest.plan import Plan
from clew.ingest.read import Skipped, read
from clew.llm.embed import Embed
from clew.llm.embedders import embedder
from clew.models import Models
from clew.recipes import recipe_named
from clew.retrieve.pack import evidence
from clew.show import Shown, shown
from clew.store.protocol import Change, Counts, Snapshot, Store
from clew.store.sqlite import SqliteStore
from clew.types import Document, Found, Kind
from clew.view import View

_KINDS: tuple[Kind, ...] = ("chunk", "entity", "fact")


@dataclass
class KnowledgeBase:
    """A store and the models that read and write it."""

    store: Store
    settings: Settings
    embed: Embed | None
    _view: View | None = None

    @cached_property
    def models(self) -> Models:
        """The chat models, with what they cost in this session."""
        return Models(self.settings.models, self.store)

    @cached_property
    def builder(self) -> Builder:
        """How this knowledge base is made."""
        return Builder(self.store, self.settings, self.embed, self.models)

    # -- the add story

    async def add(
        self,
        paths: Sequence[Path | str],
        *,
        extractor: str | Extract | None = None,
        retry: bool = False,
        progress: Progress = silent,
    ) -> Added:
        """Read files and folders, and take in what is new or changed.

        With `retry` and no paths, documents with failed chunks are taken up again from the
        knowledge base itself.
        """
        files = read([Path(path) for path in paths]) if paths or not retry else None
        found = files or self.builder.failed()
        return await self.take(found, extractor, retry=retry, progress=progress)

    async def take(
        self,
        documents: AsyncIterator[Document | Skipped],
        extractor: str | Extract | None = None,
        *,
        retry: bool = False,
        progress: Progress = silent,
    ) -> Added:
        """Take in documents that were read elsewhere."""
        return await self.builder.take(documents, extractor, retry=retry, progress=progress)

    async def plan(self, paths: Sequence[Path | str], *, extractor: str | None = None) -> Plan:
        """What an add of these paths would cost; nothing is written and no model is asked."""
        return await self.builder.plan(paths, extractor=extractor)

    async def remove(self, names: Sequence[str]) -> Counts:
        """Remove documents by name."""
        known = await self.store.sources()
        missing = [name for name in names if name not in known]
        if missing:
            raise StoreError(
                f"no document named {missing[0]!r}; `clew status --documents` lists them"
            )
        return await self.store.write(Change(remove=names), arrays_of)

    async def reembed(self, progress: Progress = silent) -> str:
        """Make all vectors with the settings' embedder, then switch to them in one step."""
        return await self.builder.reembed(progress)

    async def repair(self, progress: Progress = silent) -> None:
        """Derive arrays from the truth anew, and embed what lacks a vector."""
        await self.builder.repair(progress)

    # -- looking

    async def status(self) -> dict[str, Any]:
        """How much there is, as `clew status --json` promises."""
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
        """What is held on one entity or document."""
        async with self.store.snapshot() as now:
            return await shown(name, now, await self.store.sources())

    # -- the ask story

    async def search(self, question: str, *, recipe: str | None = None, k: int = 10) -> Results:
        """Run a recipe and return its evidence; needs no model."""
        started = perf_counter()
        async with self.store.snapshot() as snapshot:
            ctx, found = await self._find(snapshot, question, recipe, k)
            gathered = await evidence(ctx, found)
        name = recipe or self.settings.recipe
        return Results(question, name, gathered, tuple(ctx.trace), perf_counter() - started)

    async def ask(
        self, question: str, *, recipe: str | None = None, mode: Mode = "open", k: int = 10
    ) -> Answer:
        """Answer a question from the evidence, every sentence cited."""
        started = perf_counter()
        async with self.store.snapshot() as snapshot:
            ctx, found = await self._find(snapshot, question, recipe, k)
            gathered = await evidence(ctx, found)
            if self.models.answers:
                answer = await written_answer(ctx, self.models.chat("answer"), gathered, mode)
            else:
                answer = await extractive_answer(ctx, gathered, found, mode)
        await self.models.book()
        name = recipe or self.settings.recipe
        return replace(
            answer, recipe=name, trace=tuple(ctx.trace), seconds=perf_counter() - started
        )

    async def _find(
        self, snapshot: Snapshot, question: str, recipe: str | None, k: int
    ) -> tuple[Context, Found]:
        if not question.strip():
            raise ConfigError("the question is empty; ask something")
        if k < 1:
            raise ConfigError(f"-k {k}: ask for at least one passage")
        chain = recipe_named(recipe or self.settings.recipe)
        ctx = Context(
            question,
            await self._current(snapshot),
            snapshot,
            self.embed,
            self.models,
            self.store,
        )
        found = await chain(ctx, Found())
        return ctx, replace(found, chunks=found.chunks[:k])

    async def _current(self, snapshot: Snapshot) -> View:
        """The snapshot's view, kept until the generation changes."""
        view = self._view
        if view is None or view.generation != snapshot.generation:
            await check_embedder(self.store, self.embed)
            matrices: dict[Kind, Any] = {}
            if self.embed is not None:
                for kind in _KINDS:
                    matrices[kind] = np.asarray(self.store.vectors(self.embed.name, kind).matrix())
            view = self._view = View(snapshot.arrays, matrices, snapshot.generation)
        return view

    async def verify(self) -> list[str]:
        """What is wrong, one sentence each."""
        return await self._folder().problems()

    async def backup(self, file: Path) -> int:
        """Copy the truth to a file; return its size."""
        return await self._folder().backup(file)

    def _folder(self) -> SqliteStore:
        if not isinstance(self.store, SqliteStore):
            raise ConfigError("this knowledge base is not a folder; there is nothing to check")
        return self.store

    async def close(self) -> None:
        """Let go of files and locks."""
        await self.store.close()

    @classmethod
    async def open(
        cls, settings: Settings, *, create: bool = False, embed: bool = True
    ) -> "KnowledgeBase":
        """Open the folder the settings name, with the embedder they name."""
        store = SqliteStore(settings.kb, create=create, patience=settings.wait)
        async with store.snapshot() as now:
            stale = now.generation > 0 and not up_to_date(now.arrays)
        if stale:
            # Made by another version of Clew: the truth is fine, what is derived from it is not.
            await store.write(Change(afresh=True), arrays_of)
        return cls(store, settings, embedder(settings.embed, settings.cache) if embed else None)
