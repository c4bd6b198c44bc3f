"""Build a knowledge base: choose chunker and extractor, estimate and record the cost."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

from clew.config import Price, Settings
from clew.errors import ConfigError, ModelError
from clew.extract.model_calls import Gleaning
from clew.extract.model_extractors import MODEL_EXTRACTORS, DocumentExtractor, with_limits
from clew.extract.propositions import OFFLINE_EXTRACTORS
from clew.extract.rules import Offline, find_installed_model
from clew.extract.wrappers import WithFallback, WithTableRows
from clew.graph.parts import HERE
from clew.index.derive import derive_arrays
from clew.ingest.build import AddResult, Chunker, IngestPipeline
from clew.ingest.chunk import CHUNKERS, ByHeadings
from clew.ingest.cost import BuildCosts, CostEstimate, CostRates, DryRunChat, estimate_cost
from clew.ingest.details import DetailEmbedder, mark_new
from clew.ingest.document_names import read_for_store
from clew.ingest.embedding import (
    EMBEDDED_KINDS,
    ProgressCallback,
    StoredPassages,
    check_embedder,
    embed_texts,
    list_passages,
    load_deferred,
    repair_vectors,
    uses_quotes,
)
from clew.ingest.extract_processes import (
    ProcessExtractor,
    choose_processes,
    extract_in_processes,
)
from clew.ingest.files import ReadItem
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile
from clew.ingest.remote import RemoteEmbedder, RemoteExtractor, RemoteParser, TaskRunner
from clew.ingest.saved_extractions import SavedExtractions
from clew.ingest.schema_store import SchemaGrowthRun, SchemaStore
from clew.ingest.unused_vectors import erase_unused_vectors
from clew.llm.chat import Chat
from clew.llm.embed import Embedder, can_quote
from clew.llm.limits import FailFastChat
from clew.llm.wrappers import ResampledChat
from clew.models import Models
from clew.out_of_core import WorkingMemory
from clew.recipes.chunking import (
    ChosenChunking,
    describe_mixture,
    load_chunking,
    save_chunking,
)
from clew.store.merge import embedded_text
from clew.store.protocol import (
    DEFERRED,
    MADE_LATER,
    PARTLY_EMBEDDED,
    QUOTED,
    Addition,
    Arrays,
    Change,
    Counts,
    Store,
    Tables,
)
from clew.store.resolved_entities import load_all_names
from clew.tree.manage import TreeManager
from clew.types import LITERAL_TYPES, Chunking, Document, Kind, Usage
from clew.version import pip_install_command

_MANY_CHARACTERS = 200_000  # less is built before an estimate would be made
_PROBED = 16  # chunks at most that a probe asks a model about, all at once


def ignore_progress(stage: str, done: int, total: int) -> None:
    """Progress callback that does nothing."""


@dataclass(frozen=True)
class Builder:
    """Runs adds, re-embedding and repair with the configured chunker, extractor and models."""

    store: Store
    settings: Settings
    embed: Embedder | None
    models: Models
    runner: TaskRunner | None = None
    """If given, documents are extracted from and embedded elsewhere."""
    on_estimate: Callable[[CostEstimate], None] | None = None
    """If given, told what many documents will cost, before they are extracted from."""

    def read(self, paths: Sequence[Path | str | SourceFile]) -> AsyncIterator[ReadItem]:
        """Read files under their stored names; a runner parses them where it does its tasks."""
        budget = ReadBudget(**self.settings.read.model_dump())
        elsewhere = RemoteParser(self.runner) if self.runner else None
        return read_for_store(self.store, paths, budget=budget, elsewhere=elsewhere)

    async def add(
        self,
        documents: AsyncIterator[ReadItem],
        extractor: str | DocumentExtractor | None = None,
        *,
        retry: bool = False,
        progress: ProgressCallback = ignore_progress,
        chunk: ChosenChunking | None = None,
    ) -> AddResult:
        """Add documents, record rates and spending, grow the schema, and update the trees.

        `chunk` is how a recipe wants them to be split, if one does.
        """
        await self._embed_earlier_documents(progress)
        chosen, note = await self._choose_chunking(chunk)
        await mark_new(self.store)
        growth = await self._start_schema_growth(extractor)
        extract = self._with_fallback(self.make_extractor(extractor, growth))
        extract = self._run_elsewhere(extract, extractor, growth)
        pipeline = IngestPipeline(
            self.store,
            _make_chunker(chosen.chunking),
            WithTableRows(extract),
            RemoteEmbedder(self.embed, self.runner) if self.embed and self.runner else self.embed,
            self._with_fallback(await self._make_retry_extractor(extractor)) if retry else None,
            progress,
            await self._choose_kinds(),
            self.runner.parts if self.runner is not None else HERE,
            self.settings.memory,
        )
        if self.on_estimate is not None and self.runner is None and not callable(extractor):
            tell = await self._estimate_before(self._extractor_name(extractor), pipeline.chunk)
            pipeline = replace(pipeline, before_write=tell)
        before, began = self.models.meter.total, perf_counter()
        try:
            added, said = await self._add_in_processes(pipeline, documents, extract, extractor)
            note = " ".join(filter(None, (note, said)))
            if added.added or added.updated:
                await save_chunking(self.store, chosen)
            await self._save_rates(before, perf_counter() - began, added.characters)
            if growth:
                await growth.apply_proposals(self.embed)
            counts = await self.embed_details(progress) or added.counts
            return replace(
                added,
                note=note,
                counts=await self.update_trees(progress) or counts,
                usage=self.models.meter.total - before,
                dropped=_count_dropped(pipeline.extract) + _count_dropped(pipeline.retry_extract),
            )
        finally:
            await self.models.record_spending()

    async def _estimate_before(
        self, name: str, split: Chunker
    ) -> Callable[[Sequence[Document]], Awaitable[None]]:
        """Return what estimates the costs of many documents before they are extracted from."""
        counting, costs = await self._make_costs(name, split)

        async def tell(documents: Sequence[Document]) -> None:
            many = sum(len(one.text) for one in documents) >= _MANY_CHARACTERS
            if many and self.on_estimate is not None:
                self.on_estimate(await costs.estimate(counting, documents))

        return tell

    async def _add_in_processes(
        self,
        pipeline: IngestPipeline,
        documents: AsyncIterator[ReadItem],
        extract: DocumentExtractor,
        wanted: str | DocumentExtractor | None,
    ) -> tuple[AddResult, str]:
        """Add documents; rules may extract in several processes. Return a note of them, too."""
        name = "" if callable(wanted) or self.runner else self._extractor_name(wanted)
        count = choose_processes(self.settings.extract.processes, self.embed)
        async with extract_in_processes(extract, name, find_installed_model(), count) as shared:
            pipeline = replace(pipeline, extract=WithTableRows(shared))
            folder = getattr(self.store, "folder", None)  # a store in memory has none
            if name in OFFLINE_EXTRACTORS and folder is not None:
                saved = SavedExtractions(shared, folder / "extracted.jsonl")
                pipeline = replace(pipeline, extract=WithTableRows(saved), after_write=saved.forget)
            added = await pipeline.add(documents)
            return added, shared.note if isinstance(shared, ProcessExtractor) else ""

    async def _embed_earlier_documents(self, progress: ProgressCallback) -> None:
        """Embed documents added without an embedder; refuse if the embedder is now missing."""
        manifest = await self.store.get("manifest", ["embedder", PARTLY_EMBEDDED])
        held = manifest.get("embedder", "")
        if self.embed is None and held:
            raise ConfigError(
                f"this knowledge base was embedded with {held!r}, but there is no embedder; run "
                f"`{pip_install_command('local')}`, or set [embed] in clew.toml"
            )
        if self.embed is None or held or manifest.get(PARTLY_EMBEDDED):
            return
        if (await self.store.counts()).documents:
            await self.repair(progress)

    async def _choose_kinds(self) -> list[Kind]:
        """Return what is embedded of new documents: what the settings say, and what others have."""
        deferred = [kind for kind in EMBEDDED_KINDS if kind not in self.settings.embed.kinds]
        if (await self.store.counts()).documents:
            held = await load_deferred(self.store)
            for kind in held:
                if kind not in deferred and self.embed is not None:
                    await self.embed_deferred(kind)
            deferred = [kind for kind in deferred if kind in held]
        await self.store.set("manifest", {DEFERRED: " ".join(deferred)})
        return [kind for kind in EMBEDDED_KINDS if kind not in deferred]

    async def embed_deferred(self, kind: str, progress: ProgressCallback = ignore_progress) -> None:
        """Make the vectors of a kind that was left for its first use, unless they are there."""
        async with self.store.write_lock():
            deferred = await load_deferred(self.store)
            if kind in deferred:
                await self.reembed(progress, only=[one for one in EMBEDDED_KINDS if one == kind])
                # Last: a run that is killed before this finds its vectors and goes on.
                left = " ".join(one for one in deferred if one != kind)
                made = (await self.store.get("manifest", [MADE_LATER])).get(MADE_LATER, "")
                done = {DEFERRED: left, MADE_LATER: f"{made} {kind}".strip()}
                await self.store.set("manifest", done)

    async def embed_details(
        self,
        progress: ProgressCallback = ignore_progress,
        *,
        recheck_long: bool = False,
        limit: int | None = None,
    ) -> Counts | None:
        """Embed new and changed descriptions, keywords and attributes; None if there are none.

        Without the embedder of the knowledge base those that were embedded before are found again.
        """
        stored = (await self.store.get("manifest", ["embedder"])).get("embedder")
        if not stored:
            return None  # names and texts are found as before
        own = self.embed if self.embed is not None and self.embed.name == stored else None
        embed_pending = DetailEmbedder(self.store, own, stored, progress, limit)
        return await embed_pending(recheck_long=recheck_long and own is not None)

    def make_tree_manager(self, progress: ProgressCallback = ignore_progress) -> TreeManager:
        """Return the manager that builds and updates knowledge trees."""
        memory = WorkingMemory(self.settings.memory, self.settings.folder)
        return TreeManager(self.store, self.embed, self.models, progress, memory)

    async def update_trees(self, progress: ProgressCallback = ignore_progress) -> Counts | None:
        """Update trees if the settings say so; return the new counts if anything changed."""
        if (
            self.settings.tree.grow == "never"
            or await self.make_tree_manager(progress).update() is None
        ):
            return None
        return await self.store.counts()

    async def follow_decisions(self) -> Counts | None:
        """After names were merged or split: embed merged descriptions, and update the trees."""
        embedded = await self.embed_details()
        return await self.update_trees() or embedded

    async def _choose_chunking(self, wanted: ChosenChunking | None) -> tuple[ChosenChunking, str]:
        """Return how to split, and a note if earlier documents were split otherwise.

        A recipe's wish comes first, then the user's settings, then how a recipe had the earlier
        documents split, then the default.
        """
        options = self.settings.chunk
        usual = ChosenChunking(Chunking(options.size, options.overlap, options.by))
        held = await load_chunking(self.store)
        if wanted is None:
            own = bool(options.model_fields_set)
            return (held if held and held.recipe and not own else usual), ""
        other = held is None or held.chunking != wanted.chunking
        mixed = other and (await self.store.counts()).chunks > 0
        return wanted, describe_mixture(held, wanted) if mixed else ""

    async def plan(
        self,
        paths: Sequence[Path | str | SourceFile] = (),
        *,
        extractor: str | None = None,
        chunk: ChosenChunking | None = None,
        documents: AsyncIterator[ReadItem] | None = None,
        probe: bool = False,
    ) -> CostEstimate:
        """Estimate the cost of adding paths or documents; writes no document.

        No model is called, except for one chunk with `probe`, whose reply is kept.
        """
        split = _make_chunker((await self._choose_chunking(chunk))[0].chunking)
        pipeline, costs = await self._make_costs(self._extractor_name(extractor), split)
        budget = ReadBudget(**self.settings.read.model_dump())
        found = documents or read_for_store(self.store, paths, keep=False, budget=budget)
        timed = self._time_some_calls if probe and costs.dry_run is not None else None
        return await estimate_cost(pipeline, found, costs, timed)

    async def _make_costs(self, name: str, split: Chunker) -> tuple[IngestPipeline, BuildCosts]:
        """Return a pipeline that calls no model, and what estimates costs.

        As much is taken to be extracted by a model as by rules.
        """
        dry_run, price = None, Price()
        rules: DocumentExtractor = Offline(spacy=find_installed_model())
        if name in MODEL_EXTRACTORS:
            dry_run = DryRunChat(self.models.chat("extract"), self.models.reply_cache)
            price = self.models.price("extract")
            chosen = self._apply_limits(MODEL_EXTRACTORS[name](dry_run))
        else:
            chosen = rules = self.make_extractor(name)
        kinds = [kind for kind in EMBEDDED_KINDS if kind in self.settings.embed.kinds]

        def make(store: Store) -> IngestPipeline:
            return IngestPipeline(store, split, WithTableRows(rules), self.embed, kinds=kinds)

        counting = IngestPipeline(self.store, split, WithTableRows(chosen), self.embed)
        return counting, BuildCosts(make, dry_run, price, await self._load_rates())

    async def _time_some_calls(self, additions: Sequence[Addition]) -> CostRates:
        """Extract from as many chunks as are asked about at once; return what that took."""
        pairs = [(one.document, chunk) for one in additions for chunk in one.chunks]
        count = min(len(pairs), self.settings.models.concurrency, _PROBED)
        chosen = pairs[:: max(1, len(pairs) // count)][:count]
        before, began = self.models.meter.total, perf_counter()
        extract = self.make_extractor()
        found = await asyncio.gather(*(extract(document, [chunk]) for document, chunk in chosen))
        seconds, used = perf_counter() - began, self.models.meter.total - before
        await self.models.record_spending()
        failed = next((one.failed for [one] in found if one.failed), "")
        if failed and not used.calls + used.cached_calls:
            raise ModelError(f"the probe call failed: {failed}")
        # A reply that cannot be read took as long as any other.
        note = f"the probe's reply could not be used: {failed}" if failed else ""
        tokens = used.completion_tokens + used.cached_completion_tokens
        rate = tokens / max(1, sum(len(chunk.text) for _, chunk in chosen))
        calls = max(1, used.calls)
        return CostRates(rate, seconds / calls, calls=calls, note=note)

    async def _start_schema_growth(
        self, wanted: str | DocumentExtractor | None
    ) -> SchemaGrowthRun | None:
        """Load the growing schema if extraction is bounded by one."""
        if callable(wanted) or self._extractor_name(wanted) != "schema":
            return None
        schema_store = SchemaStore(self.store, self.settings.schema_file)
        return SchemaGrowthRun(schema_store, await schema_store.load_history())

    async def _save_rates(self, before: Usage, seconds: float, characters: int) -> None:
        """Store the observed token and latency rates for the next estimate."""
        now = self.models.meter.total
        calls = now.calls - before.calls
        if calls and characters:
            uncached = calls / (calls + now.cached_calls - before.cached_calls)
            written = now.completion_tokens - before.completion_tokens
            # As if one after the other, at the pace of this run, whatever ran at once.
            rates = CostRates(written / (characters * uncached), seconds / calls, calls=calls)
            await self.store.set("manifest", {"rates": json.dumps(asdict(rates))})

    async def _load_rates(self) -> CostRates:
        """Load the rates observed by earlier adds to this knowledge base."""
        held = (await self.store.get("manifest", ["rates"])).get("rates")
        return CostRates(**json.loads(held)) if held else CostRates()

    async def _make_retry_extractor(
        self, wanted: str | DocumentExtractor | None
    ) -> DocumentExtractor:
        """Return the extractor with a new sample number: cached replies are not reused."""
        if callable(wanted) or (name := self._extractor_name(wanted)) not in MODEL_EXTRACTORS:
            return self.make_extractor(wanted)
        held = (await self.store.get("manifest", ["retries"])).get("retries", "0")
        sample = int(held) + 1
        await self.store.set("manifest", {"retries": str(sample)})
        chat = ResampledChat(self._extraction_chat(), sample)
        return self._apply_limits(MODEL_EXTRACTORS[name](chat))

    async def iter_failed_documents(self) -> AsyncIterator[Document | Skipped]:
        """Yield the documents with at least one failed chunk."""
        ids = list(dict.fromkeys(failure.document for failure in await self.store.failures()))
        async with self.store.snapshot() as now:
            documents = await now.documents(ids)
        for document in documents.values():
            yield document

    def make_extractor(
        self,
        wanted: str | DocumentExtractor | None = None,
        growth: SchemaGrowthRun | None = None,
    ) -> DocumentExtractor:
        """Return the wanted extractor; by default a model's if one is configured, else rules."""
        if callable(wanted):
            return wanted
        name = self._extractor_name(wanted)
        if name in OFFLINE_EXTRACTORS:
            return OFFLINE_EXTRACTORS[name](Offline(spacy=find_installed_model()))
        if not self.models.can_extract:
            by_rules = f"{name}-offline" if f"{name}-offline" in OFFLINE_EXTRACTORS else "offline"
            raise ConfigError(
                "no model is set for 'extract': set CLEW_MODEL, or model under [models] in "
                f"clew.toml; `--extractor {by_rules}` needs none"
            )
        create = growth.make_extractor if growth else MODEL_EXTRACTORS[name]
        return self._apply_limits(create(self._extraction_chat()))

    def make_task_extractor(self, name: str) -> DocumentExtractor:
        """Return the extractor that a build elsewhere asks for by name."""
        return self._with_fallback(self.make_extractor(name))

    def _run_elsewhere(
        self,
        extract: DocumentExtractor,
        wanted: str | DocumentExtractor | None,
        growth: SchemaGrowthRun | None,
    ) -> DocumentExtractor:
        """Let a runner extract; not what grows a schema, or an extractor without a name."""
        if self.runner is None or growth is not None or callable(wanted):
            return extract
        return RemoteExtractor(
            extract, self._extractor_name(wanted), self.runner, self.models.meter
        )

    def _with_fallback(self, extract: DocumentExtractor) -> DocumentExtractor:
        """Let rules extract what a model fails on, if the settings say so."""
        if self.settings.extract.fallback != "offline":
            return extract
        return WithFallback(extract, Offline(spacy=find_installed_model()))

    def _extraction_chat(self) -> Chat:
        """Return the extraction chat, which aborts the add if its endpoint was never reachable."""
        return FailFastChat(self.models.chat("extract"))

    def _apply_limits(self, extract: DocumentExtractor) -> DocumentExtractor:
        """Apply the gleaning and token limits from the settings."""
        limits = self.settings.extract
        return with_limits(extract, Gleaning(limits.gleaning, limits.rounds), limits.max_tokens)

    def _extractor_name(self, wanted: str | None) -> str:
        chosen = wanted or self.settings.extractor
        if chosen == "auto":
            return "triples" if self.models.can_extract else "offline"
        if chosen not in OFFLINE_EXTRACTORS and chosen not in MODEL_EXTRACTORS:
            known = ", ".join([*OFFLINE_EXTRACTORS, *MODEL_EXTRACTORS])
            raise ConfigError(f"unknown extractor {chosen!r}; choose one of auto, {known}")
        return chosen

    async def reembed(
        self, progress: ProgressCallback = ignore_progress, only: Collection[Kind] | None = None
    ) -> str:
        """Embed everything (or some kinds) again, then switch to the new vectors atomically."""
        if self.embed is None:
            raise ConfigError(
                f"there is no embedder; run `{pip_install_command('local')}`, or set [embed] in "
                "clew.toml"
            )
        async with self.store.write_lock():
            held = (await self.store.get("manifest", ["embedder"])).get("embedder")
            quoted = can_quote(self.embed)
            if only is not None and held == self.embed.name:
                quoted = await uses_quotes(self.store, self.embed)
            await self._embed_everything(self.embed, progress, quoted, only)
            # How facts are embedded is as before where only others are embedded.
            facts = only is None or "fact" in only
            mode = {"manifest": {QUOTED: "fact" if quoted else ""}} if facts else {}
            # Community summaries have no vectors of this embedder yet; old rows would be wrong.
            same = only if only is not None and held == self.embed.name else ()
            change = Change(embedder=self.embed.name, kinds=same, values=mode)
            await self.store.write(change, _derive_without_community_vectors)
            await self.embed_details(progress)
            await self.make_tree_manager(progress).embed_summaries()
        return self.embed.name

    async def repair(self, progress: ProgressCallback = ignore_progress) -> None:
        """Derive all arrays again, embed what has no vector, and erase what was removed."""
        async with self.store.write_lock():
            held = (await self.store.get("manifest", ["embedder"])).get("embedder", "")
            change = Change(rebuild=True, embedder=held if self.embed is None else "")
            if self.embed is not None:
                await check_embedder(self.store, self.embed, claim=True)
                repair_vectors(self.store, self.embed.name)
            # What is to be embedded is read through the arrays: these first, with lost vectors.
            await self.store.write(change, derive_arrays)
            if self.embed is not None:
                quoted = await uses_quotes(self.store, self.embed)
                await self._embed_everything(self.embed, progress, quoted)
                change = replace(change, embedder=self.embed.name)
            await self.store.write(change, derive_arrays)  # with it the arrays before go
            await self.embed_details(progress)
            if names := await self.make_tree_manager().tree_names():
                await self.make_tree_manager(progress).build(names)
            await erase_unused_vectors(self.store, least=0)

    async def _embed_everything(
        self,
        embed: Embedder,
        progress: ProgressCallback,
        quoted: bool,
        only: Collection[Kind] | None = None,
    ) -> None:
        repair_vectors(self.store, embed.name)
        deferred = await load_deferred(self.store)
        kinds = [
            kind for kind in EMBEDDED_KINDS if (kind in only if only else kind not in deferred)
        ]
        async with self.store.snapshot() as now:
            # Merged names too: a split makes entities of them again.
            names = await load_all_names(now) if "entity" in kinds else []
            passages = StoredPassages([], [], {})
            if "chunk" in kinds or "fact" in kinds:  # reading all of them takes long
                passages = await list_passages(now, quoted and "fact" in kinds)
        texts: dict[Kind, Sequence[str]] = {
            "chunk": passages.texts,
            "entity": [embedded_text(e) for e in names if e.type not in LITERAL_TYPES],
            "fact": passages.facts,
        }
        await embed_texts(
            self.store, embed, {kind: texts[kind] for kind in kinds}, progress, passages.quotes
        )
        if only is None:
            await self.store.set("manifest", {PARTLY_EMBEDDED: ""})


def _make_chunker(options: Chunking) -> Chunker:
    chosen = CHUNKERS[options.by]
    if isinstance(chosen, ByHeadings):
        return replace(chosen, size=options.size)
    return replace(chosen, size=options.size, overlap=options.overlap)


def _derive_without_community_vectors(tables: Tables) -> Arrays:
    arrays = derive_arrays(tables)
    if "community_rows" in arrays:
        arrays["community_rows"] = np.full_like(arrays["community_rows"], -1)
        arrays["tree_middles"] = np.zeros((len(arrays["community_rows"]), 0), np.float32)
    return arrays


def _count_dropped(extract: DocumentExtractor | None) -> Counter[str]:
    """Count what an extractor dropped from model answers, by reason."""
    return Counter(getattr(extract, "dropped", None) or {})
