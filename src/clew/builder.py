"""Build a knowledge base: choose chunker and extractor, estimate and record the cost."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

from clew.arrays import arrays_of
from clew.config import Settings
from clew.errors import ConfigError
from clew.extract.gleaning import Gleaning
from clew.extract.offline import Offline
from clew.extract.spacy_names import installed
from clew.extract.with_models import MODEL_EXTRACTORS, tuned
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
from clew.ingest.embedding import mend_vectors
from clew.ingest.places import read_into
from clew.ingest.plan import Plan, Pretence, Rates, planned
from clew.ingest.reached import Reached
from clew.ingest.read import Item, Skipped
from clew.ingest.schema_room import Growing, SchemaRoom
from clew.llm.chat import Chat
from clew.llm.embed import Embed
from clew.llm.wrap import Resampled
from clew.model_settings import Price
from clew.models import Models, Replies
from clew.store.check import PARTLY
from clew.store.merge import embedded_text
from clew.store.protocol import Arrays, Change, Counts, Store, Tables
from clew.tree.room import TreeRoom
from clew.types import LITERALS, Document, Kind, Usage
from clew.version import pip_install
from clew.view import View


def silent(stage: str, done: int, total: int) -> None:
    """Progress callback that does nothing."""


@dataclass(frozen=True)
class Builder:
    """Runs adds, re-embedding and repair with the configured chunker, extractor and models."""

    store: Store
    settings: Settings
    embed: Embed | None
    models: Models

    async def take(
        self,
        documents: AsyncIterator[Item],
        extractor: str | Extract | None = None,
        *,
        retry: bool = False,
        progress: Progress = silent,
    ) -> Added:
        """Add documents that the caller has already read."""
        await self._catch_up(progress)
        growing = await self._growing(extractor)
        chosen = self._tuned(growing.extractor(self._chat())) if growing else extractor
        build = Build(
            self.store,
            self._chunker(),
            self.extractor(chosen),
            self.embed,
            await self._second_chance(extractor) if retry else None,
            progress,
        )
        before, began = self.models.meter.total, perf_counter()
        try:
            added = await build.add(documents)
            await self._learn(before, perf_counter() - began, added.characters)
            if growing:
                await growing.settle(self.embed)
            return replace(
                added,
                counts=await self.tended(progress) or added.counts,
                usage=self.models.meter.total - before,
                dropped=_dropped(build.extract) + _dropped(build.again),
            )
        finally:
            await self.models.book()

    async def _catch_up(self, progress: Progress) -> None:
        """Embed documents added without an embedder; refuse if the embedder is now missing."""
        manifest = await self.store.recall("manifest", ["embedder", PARTLY])
        held = manifest.get("embedder", "")
        if self.embed is None and held:
            raise ConfigError(
                f"this knowledge base was embedded with {held!r} and there is no embedder to go on "
                f"with; `{pip_install('local')}`, or set [embed] in clew.toml"
            )
        if self.embed is None or held or manifest.get(PARTLY):  # skipped on purpose
            return
        if (await self.store.counts()).documents:
            await self.repair(progress)

    def trees(self, progress: Progress = silent) -> TreeRoom:
        """Return the manager that builds and updates knowledge trees."""
        return TreeRoom(self.store, self.embed, self.models, progress)

    async def tended(self, progress: Progress = silent) -> Counts | None:
        """Update trees if the settings say so; return the new counts if anything changed."""
        if self.settings.tree.grow == "never" or await self.trees(progress).tend() is None:
            return None
        return await self.store.counts()

    async def plan(self, paths: Sequence[Path | str], *, extractor: str | None = None) -> Plan:
        """Estimate the cost of adding these paths; writes nothing and calls no model."""
        name = self._extractor_name(extractor)
        dry_run, price = None, Price()
        if name in MODEL_EXTRACTORS:
            dry_run = Pretence(self.models.chat("extract"), Replies(self.store))
            price = self.models.price("extract")
        chosen = self._by_model(name, dry_run) if dry_run else self.extractor(name)
        build = Build(self.store, self._chunker(), chosen, self.embed)
        found = read_into(self.store, paths, keep=False)
        rates = await self._rates()
        return await planned(build, found, dry_run, price, rates, self.settings.models.concurrency)

    async def _growing(self, wanted: str | Extract | None) -> Growing | None:
        """Load the growing schema if extraction is bounded by one."""
        name = self._extractor_name(wanted) if wanted is None or isinstance(wanted, str) else ""
        if name != "schema":
            return None
        schema_store = SchemaRoom(self.store, self.settings.schema_file)
        return Growing(schema_store, await schema_store.history())

    async def _learn(self, before: Usage, seconds: float, characters: int) -> None:
        """Store the observed token and latency rates for the next estimate."""
        now = self.models.meter.total
        calls = now.calls - before.calls
        if calls and characters:
            uncached = calls / (calls + now.cached_calls - before.cached_calls)
            written = now.completion_tokens - before.completion_tokens
            parallel = min(calls, self.settings.models.concurrency)
            rates = Rates(written / (characters * uncached), seconds * parallel / calls, calls)
            await self.store.remember("manifest", {"rates": json.dumps(asdict(rates))})

    async def _rates(self) -> Rates:
        """Load the rates observed by earlier adds to this knowledge base."""
        held = (await self.store.recall("manifest", ["rates"])).get("rates")
        return Rates(**json.loads(held)) if held else Rates()

    def _chunker(self) -> Chunker:
        options = self.settings.chunk
        chosen = CHUNKERS[options.by]
        if isinstance(chosen, ByHeadings):
            return replace(chosen, size=options.size)
        return replace(chosen, size=options.size, overlap=options.overlap)

    async def _second_chance(self, wanted: str | Extract | None) -> Extract:
        """Return the extractor with a new sample number: cached replies are not reused."""
        name = self._extractor_name(wanted) if not callable(wanted) else ""
        if name not in MODEL_EXTRACTORS:
            return self.extractor(wanted)
        held = (await self.store.recall("manifest", ["retries"])).get("retries", "0")
        sample = int(held) + 1
        await self.store.remember("manifest", {"retries": str(sample)})
        return self._by_model(name, Resampled(self._chat(), sample))

    async def failed(self) -> AsyncIterator[Document | Skipped]:
        """Yield the documents with at least one failed chunk."""
        ids = list(dict.fromkeys(failure.document for failure in await self.store.failures()))
        async with self.store.snapshot() as now:
            documents = await now.documents(ids)
        for document in documents.values():
            yield document

    def extractor(self, wanted: str | Extract | None = None) -> Extract:
        """Return the wanted extractor; by default a model's if one is configured, else rules."""
        if wanted is not None and not isinstance(wanted, str):
            return wanted
        chosen = self._extractor_name(wanted)
        if chosen == "offline":
            return Offline(spacy=installed())
        return self._by_model(chosen, self._chat())

    def _chat(self) -> Chat:
        """Return the extraction chat, which aborts the add if its endpoint was never reachable."""
        return Reached(self.models.chat("extract"))

    def _by_model(self, name: str, chat: Chat) -> Extract:
        return self._tuned(MODEL_EXTRACTORS[name](chat))

    def _tuned(self, extract: Extract) -> Extract:
        """Apply the gleaning and token limits from the settings."""
        limits = self.settings.extract
        return tuned(extract, Gleaning(limits.gleaning, limits.rounds), limits.max_tokens)

    def _extractor_name(self, wanted: str | None) -> str:
        chosen = wanted or self.settings.extractor
        if chosen == "auto":
            return "triples" if self.models.configured else "offline"
        if chosen != "offline" and chosen not in MODEL_EXTRACTORS:
            known = ", ".join(["offline", *MODEL_EXTRACTORS])
            raise ConfigError(f"no extractor {chosen!r}; have {known}")
        return chosen

    async def reembed(
        self, progress: Progress = silent, only: Collection[Kind] | None = None
    ) -> str:
        """Embed everything (or some kinds) again, then switch to the new vectors atomically."""
        if self.embed is None:
            raise ConfigError(
                f"there is no embedder; `{pip_install('local')}`, or set [embed] in clew.toml"
            )
        async with self.store.writing():
            await self._embed_everything(progress, only)
            # Community summaries have no vectors of this embedder yet; old rows would be wrong.
            await self.store.write(Change(embedder=self.embed.name), _without_community_vectors)
            await self.trees(progress).embed_texts()
        return self.embed.name

    async def repair(self, progress: Progress = silent) -> None:
        """Derive the arrays from the tables again, and embed elements without a vector."""
        async with self.store.writing():
            if self.embed is not None:
                await check_embedder(self.store, self.embed, claim=True)
                await self._embed_everything(progress)
            await self.store.write(Change(afresh=True), arrays_of)
            if names := await self.trees().names():
                await self.trees(progress).grow(names)

    async def _embed_everything(
        self, progress: Progress, only: Collection[Kind] | None = None
    ) -> None:
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
            mend_vectors(self.store, self.embed.name)
        if self.embed is not None and only is not None:
            some = {kind: wanted for kind, wanted in texts.items() if kind in only}
            await embed_texts(self.store, self.embed, some, progress)
        elif self.embed is not None:
            await embed_texts(self.store, self.embed, texts, progress)
            await self.store.remember("manifest", {PARTLY: ""})


def _without_community_vectors(tables: Tables) -> Arrays:
    arrays = arrays_of(tables)
    if "community_rows" in arrays:
        arrays["community_rows"] = np.full_like(arrays["community_rows"], -1)
        arrays["tree_middles"] = np.zeros((len(arrays["community_rows"]), 0), np.float32)
    return arrays


def _dropped(extract: Extract | None) -> Counter[str]:
    """Count what an extractor dropped from model answers, by reason."""
    return Counter(getattr(extract, "dropped", None) or {})


def _all(view: View, kind: Kind) -> list[int]:
    found: list[int] = view.keys(kind).tolist()
    return found
