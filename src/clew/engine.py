"""The two stories, top to bottom: add() and ask(). Everything else here is a short errand."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from clew.agents.answer import Answer, Mode, Results
from clew.agents.extractive import extractive_answer
from clew.arrays import arrays_of, up_to_date
from clew.config import Settings
from clew.context import Context
from clew.errors import ConfigError, StoreError
from clew.extract.offline import Offline
from clew.extract.spacy_names import installed
from clew.extract.with_models import MODEL_EXTRACTORS
from clew.ingest.build import (
    Added,
    Build,
    Chunker,
    Extract,
    Progress,
    check_embedder,
    embed_texts,
)
from clew.ingest.chunk import CHUNKERS, ByHeadings
from clew.ingest.plan import Plan, Pretence, Rates, planned
from clew.ingest.read import Skipped, read
from clew.llm.embed import Embed
from clew.llm.embedders import embedder
from clew.llm.wrap import Resampled
from clew.model_settings import Price
from clew.models import Models, Replies
from clew.recipes import recipe_named
from clew.retrieve.pack import evidence
from clew.show import Shown, shown
from clew.store.merge import embedded_text
from clew.store.protocol import Change, Counts, Snapshot, Store
from clew.store.sqlite import SqliteStore
from clew.types import LITERALS, Document, Found, Kind, Usage
from clew.view import View

_KINDS: tuple[Kind, ...] = ("chunk", "entity", "fact")


def _silent(stage: str, done: int, total: int) -> None:
    """Progress for nobody."""


@dataclass
class KnowledgeBase:
    """A store and the models that read and write it."""

    store: Store
    settings: Settings
    embed: Embed | None
    _view: View | None = None
    _booked: float = 0.0

    @cached_property
    def models(self) -> Models:
        """The chat models, with what they cost in this session."""
        return Models(self.settings.models, self.store)

    # -- the add story

    async def add(
        self,
        paths: Sequence[Path | str],
        *,
        extractor: str | Extract | None = None,
        retry: bool = False,
        progress: Progress = _silent,
    ) -> Added:
        """Read files and folders, and take in what is new or changed.

        With `retry` and no paths, documents with failed chunks are taken up again from the
        knowledge base itself.
        """
        found = read([Path(path) for path in paths]) if paths or not retry else self._failed()
        return await self.take(found, extractor, retry=retry, progress=progress)

    async def take(
        self,
        documents: AsyncIterator[Document | Skipped],
        extractor: str | Extract | None = None,
        *,
        retry: bool = False,
        progress: Progress = _silent,
    ) -> Added:
        """Take in documents that were read elsewhere."""
        build = Build(
            self.store,
            self._chunker(),
            self.extractor(extractor),
            self.embed,
            await self._second_chance(extractor) if retry else None,
            progress,
        )
        before, began = self.models.meter.total, perf_counter()
        try:
            added = await build.add(documents)
            await self._learn(before, perf_counter() - began, added.characters)
            return added
        finally:
            await self._book()

    async def plan(self, paths: Sequence[Path | str], *, extractor: str | None = None) -> Plan:
        """What an add of these paths would cost; nothing is written and no model is asked."""
        wanted = self._extractor_name(extractor)
        pretence, price = None, Price()
        if wanted in MODEL_EXTRACTORS:
            pretence = Pretence(self.models.chat("extract"), Replies(self.store))
            price = self.models.price("extract")
        chosen = MODEL_EXTRACTORS[wanted](pretence) if pretence else self.extractor(wanted)
        build = Build(self.store, self._chunker(), chosen, self.embed)
        found = read([Path(path) for path in paths])
        rates = await self._rates()
        return await planned(build, found, pretence, price, rates, self.settings.models.concurrency)

    async def _learn(self, before: Usage, seconds: float, characters: int) -> None:
        """Remember how this model answered, for the next estimate."""
        now = self.models.meter.total
        calls = now.calls - before.calls
        if calls and characters:
            paid = calls / (calls + now.cached_calls - before.cached_calls)
            written = now.completion_tokens - before.completion_tokens
            at_once = min(calls, self.settings.models.concurrency)
            rates = Rates(written / (characters * paid), seconds * at_once / calls, calls)
            await self.store.remember("manifest", {"rates": json.dumps(asdict(rates))})

    async def _rates(self) -> Rates:
        """What earlier runs into this knowledge base showed."""
        held = (await self.store.recall("manifest", ["rates"])).get("rates")
        return Rates(**json.loads(held)) if held else Rates()

    def _chunker(self) -> Chunker:
        cut = self.settings.chunk
        chosen = CHUNKERS[cut.by]
        if isinstance(chosen, ByHeadings):
            return replace(chosen, size=cut.size)
        return replace(chosen, size=cut.size, overlap=cut.overlap)

    async def _second_chance(self, wanted: str | Extract | None) -> Extract:
        """The same extractor asking for other samples: the remembered replies were no good."""
        name = self._extractor_name(wanted) if not callable(wanted) else ""
        if name not in MODEL_EXTRACTORS:
            return self.extractor(wanted)
        held = (await self.store.recall("manifest", ["retries"])).get("retries", "0")
        sample = int(held) + 1
        await self.store.remember("manifest", {"retries": str(sample)})
        return MODEL_EXTRACTORS[name](Resampled(self.models.chat("extract"), sample))

    async def _failed(self) -> AsyncIterator[Document | Skipped]:
        """The documents of which some chunk failed."""
        ids = list(dict.fromkeys(failure.document for failure in await self.store.failures()))
        async with self.store.snapshot() as now:
            documents = await now.documents(ids)
        for document in documents.values():
            yield document

    async def _book(self) -> None:
        """Add what the models cost since the last time to the knowledge base's account."""
        total = self.models.meter.total
        due = replace(total, money=total.money - self._booked)
        if due.money > 0:
            held = (await self.store.recall("manifest", ["spent"])).get("spent", "0")
            spent = float(held) + due.money
            await self.store.remember("manifest", {"spent": repr(round(spent, 9))})
            self._booked = total.money

    def extractor(self, wanted: str | Extract | None = None) -> Extract:
        """The extractor asked for; by default a model's when one is set, else the rules'."""
        if wanted is not None and not isinstance(wanted, str):
            return wanted
        chosen = self._extractor_name(wanted)
        if chosen == "offline":
            return Offline(spacy=installed())
        return MODEL_EXTRACTORS[chosen](self.models.chat("extract"))

    def _extractor_name(self, wanted: str | None) -> str:
        chosen = wanted or self.settings.extractor
        if chosen == "auto":
            return "triples" if self.models.configured else "offline"
        if chosen != "offline" and chosen not in MODEL_EXTRACTORS:
            known = ", ".join(["offline", *MODEL_EXTRACTORS])
            raise ConfigError(f"no extractor {chosen!r}; have {known}")
        return chosen

    async def remove(self, names: Sequence[str]) -> Counts:
        """Remove documents by name."""
        known = await self.store.sources()
        missing = [name for name in names if name not in known]
        if missing:
            raise StoreError(
                f"no document named {missing[0]!r}; `clew status --documents` lists them"
            )
        return await self.store.write(Change(remove=names), arrays_of)

    async def reembed(self, progress: Progress = _silent) -> str:
        """Make all vectors with the settings' embedder, then switch to them in one step."""
        if self.embed is None:
            raise ConfigError("no embedder is configured; set [embed] in clew.toml")
        async with self.store.writing():
            await self._embed_everything(progress)
            await self.store.write(Change(embedder=self.embed.name), arrays_of)
        return self.embed.name

    async def repair(self, progress: Progress = _silent) -> None:
        """Derive arrays from the truth anew, and embed what lacks a vector."""
        async with self.store.writing():
            if self.embed is not None:
                await check_embedder(self.store, self.embed, claim=True)
                await self._embed_everything(progress)
            await self.store.write(Change(afresh=True), arrays_of)

    async def _embed_everything(self, progress: Progress) -> None:
        async with self.store.snapshot() as now:
            view = View(now.arrays, {})
            texts: dict[Kind, list[str]] = {
                "chunk": [
                    embedded_text(c) for c in (await now.chunks(_all(view, "chunk"))).values()
                ],
                "entity": [
                    embedded_text(e)
                    for e in (await now.entities(_all(view, "entity"))).values()
                    if e.type not in LITERALS
                ],
                "fact": [embedded_text(f) for f in (await now.facts(_all(view, "fact"))).values()],
            }
        if self.embed is not None:
            await embed_texts(self.store, self.embed, texts, progress)

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
            answer = await extractive_answer(ctx, await evidence(ctx, found), found, mode)
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
        ctx = Context(question, await self._current(snapshot), snapshot, self.embed)
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


def _all(view: View, kind: Kind) -> list[int]:
    found: list[int] = view.keys(kind).tolist()
    return found
