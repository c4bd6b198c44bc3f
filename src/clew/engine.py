"""The knowledge base: open its folder, add documents, search, answer questions, maintain it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from clew.adapters import adapt_embedder, attach_tuning
from clew.agents.ask import (
    DEFAULT_OPTIONS,
    AnswerStream,
    Asking,
    AskOptions,
    answer_with,
    check_question,
    cut_question,
    find_missing_trees,
    place_in_files,
    stream_answer,
)
from clew.agents.base import Answer, Mode, Results
from clew.agents.tools import Toolbox
from clew.arguments import list_arguments
from clew.builder import Builder, ignore_progress
from clew.config import Role, Settings
from clew.context import Context, PassageReader
from clew.entities.editor import EntityEditor
from clew.errors import ConfigError
from clew.extract.model_extractors import DocumentExtractor
from clew.index.derive import derive_arrays
from clew.index.view import View
from clew.ingest.build import TABLES_KEY, AddResult, mark_tables_changed
from clew.ingest.cost import CostEstimate
from clew.ingest.details import count_pending, derive_stale_arrays, mark_new
from clew.ingest.document_names import resolve_document_names
from clew.ingest.embedding import (
    ProgressCallback,
    check_backup_embedder,
    check_embedder,
    embed_on_first_use,
    load_view,
)
from clew.ingest.files import ReadItem
from clew.ingest.graphs.import_graph import (
    GraphImport,
    ImportResult,
    combine_results,
    find_imported_graphs,
)
from clew.ingest.readers.source import SourceFile
from clew.ingest.unused_vectors import erase_unused_vectors
from clew.labels import DocumentLabeller, check_labels
from clew.llm.embed import Embedder
from clew.llm.factory import create_reranker, find_embedder
from clew.llm.limits import tell_waits
from clew.llm.rerank import Reranker
from clew.models import Models
from clew.reader.span_reader import find_reader
from clew.recipes.chunking import ChosenChunking, find_shared_chunking
from clew.retrieve.pack import fetch_evidence
from clew.retrieve.signals import run_recipe
from clew.show import NameDetails, find_details
from clew.store.protocol import Counts, Snapshot, Store, make_removal
from clew.stores.opening import open_located_store, read_backup_embedder, restore_backup
from clew.types import Chunking, Evidence

if TYPE_CHECKING:
    from clew.recipes.registry import RecipeSet, ResolvedRecipe

_LEXICAL_RECIPE = "keywords"  # used instead of the default when there is no embedder
_COUNTED = ("documents", "chunks", "entities", "facts", "communities")
ANSWERING_ROLES: tuple[Role, ...] = ("plan", "answer")  # roles whose models may answer a question


async def open_store(
    settings: Settings, *, create: bool, check: bool = True, restoring: bool = False
) -> Store:
    """Open the configured store; rebuild its arrays if they are missing or outdated."""
    store = await asyncio.to_thread(
        open_located_store, settings, create=create, check=check, restoring=restoring
    )
    if check or not await store.find_losses():  # the arrays of what was lost are the evidence
        await derive_stale_arrays(store, required=check)
    return store


async def choose_embedder(store: Store, settings: Settings) -> tuple[Embedder | None, Settings]:
    """The configured embedder and settings; without one, settings with the lexical recipe."""
    held = (await store.get("manifest", ["embedder"])).get("embedder", "")
    embed = find_embedder(settings, held)
    if embed is None:
        recipe = settings.recipe if settings.own_recipe else _LEXICAL_RECIPE
        return None, settings.model_copy(update={"recipe": recipe})
    return embed, settings


@dataclass
class KnowledgeBase:
    """A store together with the embedder and models that read and write it."""

    store: Store
    settings: Settings
    embed: Embedder | None
    _view: View | None = None
    progress: ProgressCallback = ignore_progress
    """Told of vectors that a question is the first to need."""
    spread: Callable[[View, Snapshot], Awaitable[View]] | None = None
    """Spreads each generation over shards, if it is served from several."""

    @cached_property
    def models(self) -> Models:
        """The chat models, with their usage in this session."""
        models = Models(self.settings.models, self.store)
        models.meter_embedder(self.embed)
        return models

    @cached_property
    def rerank(self) -> Reranker | None:
        """The cross-encoder reranker, if the settings name one."""
        return create_reranker(self.settings.rerank)

    @cached_property
    def reader(self) -> PassageReader | None:
        """The span reader, if its weights and packages are here."""
        return find_reader(self.settings.spans.file)

    @cached_property
    def builder(self) -> Builder:
        """Runs adds, re-embedding and repair."""
        return Builder(self.store, self.settings, self.embed, self.models)

    @cached_property
    def identity(self) -> EntityEditor:
        """Merges and splits entities."""
        return EntityEditor(self.store, self.builder.follow_decisions)

    @cached_property
    def recipes(self) -> "RecipeSet":
        """All recipes by name, with those of the settings; imported at the first question."""
        from clew.recipes.configure import add_own_recipes

        return add_own_recipes(self.settings.recipes, self.settings.file)

    async def add(
        self,
        paths: Sequence[Path | str | SourceFile] | Path | str,
        *,
        extractor: str | DocumentExtractor | None = None,
        retry: bool = False,
        labels: Sequence[str] = (),
        progress: ProgressCallback = ignore_progress,
        recipe: str | None = None,
    ) -> AddResult:
        """Read files and folders, and add what is new or changed, split as `recipe` wants it.

        With `retry` and no paths, documents with failed chunks are extracted again from the
        knowledge base itself. A file that was imported as a graph is imported again. Documents get
        the given labels, such as `team=legal`; without any they keep those that they have.
        """
        paths = list_arguments(paths, "paths", (str, Path, SourceFile))
        chunk = self._preset(recipe)
        graphs = await find_imported_graphs(self.store, paths)
        results = [await self.import_graph(p, form=f, progress=progress) for p, f in graphs.items()]
        paths = [path for path in paths if path not in graphs]
        if results and not paths:
            return combine_results(results)
        files = self.builder.read(paths) if paths or not retry else None
        documents = files or self.builder.iter_failed_documents()
        labeller = DocumentLabeller(self.store)
        labelled = labeller.attach(documents, check_labels(labels))
        added = await self.take(labelled, extractor, retry=retry, progress=progress, chunk=chunk)
        await labeller.settle()
        return combine_results(results, added) if results else added

    async def take(
        self,
        documents: AsyncIterator[ReadItem],
        extractor: str | DocumentExtractor | None = None,
        *,
        retry: bool = False,
        progress: ProgressCallback = ignore_progress,
        chunk: ChosenChunking | None = None,
    ) -> AddResult:
        """Add documents that the caller has already read."""
        added = await self.builder.add(
            documents, extractor, retry=retry, progress=progress, chunk=chunk
        )
        if self.models.can_extract and await self.identity.summarize_descriptions(
            self.models.chat("extract")
        ):
            await self.models.record_spending()
            counts = await self.builder.embed_details(progress, recheck_long=True)
            added = replace(added, counts=counts or added.counts)
        return added

    async def plan(
        self,
        paths: Sequence[Path | str | SourceFile],
        *,
        extractor: str | None = None,
        recipe: str | None = None,
        probe: bool = False,
    ) -> CostEstimate:
        """Estimate the cost of adding these paths; `probe` times one call to the model."""
        chunk = self._preset(recipe)
        return await self.builder.plan(paths, extractor=extractor, chunk=chunk, probe=probe)

    def chunk_presets(self, names: Sequence[str]) -> dict[str, Chunking | None]:
        """Return how each of these recipes wants documents to be split, if it does."""
        return {name: self._load_recipe(name).chunk for name in names}

    def _preset(self, recipe: str | None) -> ChosenChunking | None:
        return find_shared_chunking(self.chunk_presets([recipe])) if recipe else None

    async def import_graph(
        self,
        path: Path | str,
        *,
        form: str | None = None,
        strict: bool = False,
        embed: bool | None = None,
        progress: ProgressCallback = ignore_progress,
    ) -> ImportResult:
        """Import a graph file; if `embed` is None, the limit in the settings decides."""
        importer = GraphImport(
            self.store,
            self.settings.folder / "import",
            self.embed if embed is not False else None,
            None if embed else self.settings.embed.import_limit,
            strict,
            progress,
        )
        await mark_new(self.store)
        done = await importer(Path(path), form)
        counts = done.counts
        # Both also if nothing changed: an earlier import may have been stopped before this.
        if importer.embed is not None:
            most = importer.max_embedded
            counts = await self.builder.embed_details(progress, limit=most) or counts
        return replace(done, counts=await self.builder.update_trees(progress) or counts)

    async def remove(self, names: Sequence[str] | str) -> Counts:
        """Remove documents by name; the name of a table, graph or folder removes all of it."""
        await self.builder.embed_details()  # of a removal that was stopped before this
        listed = list_arguments(names, "names of documents", str)
        found = await resolve_document_names(self.store, listed)
        if (await self.store.get("manifest", [TABLES_KEY])).get(TABLES_KEY):
            await mark_tables_changed(self.store, *found)
        counts = await self.store.write(make_removal(found), derive_arrays)
        counts = await self.builder.embed_details() or counts
        await erase_unused_vectors(self.store)
        return await self.builder.update_trees() or counts

    async def reembed(self, progress: ProgressCallback = ignore_progress) -> str:
        """Embed everything with the configured embedder, then switch to it atomically."""
        return await self.builder.reembed(progress)

    async def repair(self, progress: ProgressCallback = ignore_progress) -> None:
        """Derive the arrays from the tables again, and embed elements without a vector."""
        await self.builder.repair(progress)

    async def status(self) -> dict[str, Any]:
        """Counts, embedder, size and money spent, in the format of `clew status --json`."""
        counts = await self.store.counts()
        manifest = await self.store.get("manifest", ["embedder", "spent", "calls", "tokens"])
        async with self.store.snapshot() as snapshot:
            trees = await self.builder.make_tree_manager().states(snapshot)
            pending = await count_pending(self.store, snapshot.arrays)
        by_rules = sum(one.by_rules for one in await self.store.failures())
        return {name: getattr(counts, name) for name in _COUNTED} | {
            "trees": trees,
            "embedder": manifest.get("embedder", ""),
            "generation": counts.generation,
            "failed": counts.failed - by_rules,
            "by_rules": by_rules,
            "pending": pending,
            "bytes": counts.bytes,
            "spent": float(manifest.get("spent", "0")),
            **{one: round(float(manifest.get(one, "0"))) for one in ("calls", "tokens")},
        }

    async def show(self, name: str) -> NameDetails:
        """Details of the entities and the document with this name."""
        async with self.store.snapshot() as now:
            return await find_details(name, now, await self.store.sources())

    @embed_on_first_use
    async def search(
        self,
        question: str,
        *,
        recipe: str | None = None,
        k: int = 10,
        entities: Sequence[str] = (),
        manner: AskOptions = DEFAULT_OPTIONS,
    ) -> Results:
        """Run a recipe and return its evidence; needs no model.

        `entities` are names that graph recipes start from, instead of linking the question. Of
        `manner` the limits and the meter are used.
        """
        started = perf_counter()
        check_question(question, k)
        name, reason = (recipe, "") if recipe else await self._choose_recipe()
        async with self.store.snapshot() as snapshot:
            chain = self._load_recipe(name).retrieve
            ctx = await self.context(snapshot, question, chain.name, reads=False)
            ctx = replace(manner.apply_to(ctx), given_entities=tuple(entities))
            found = await run_recipe(chain, ctx, self._load_recipe("hybrid").retrieve)
            gathered = await fetch_evidence(ctx, replace(found, chunks=found.chunks[:k]))
        seconds = perf_counter() - started
        note, used = reason or find_missing_trees(ctx.trace), ctx.meter.total
        return Results(question, name, gathered, tuple(ctx.trace), seconds, used, note)

    @embed_on_first_use
    async def ask(
        self,
        question: str,
        *,
        recipe: str | None = None,
        mode: Mode = "open",
        k: int | None = None,
        entities: Sequence[str] = (),
        manner: AskOptions = DEFAULT_OPTIONS,
    ) -> Answer:
        """Answer a question from the evidence, every sentence cited."""
        started = perf_counter()
        check_question(question, k, mode)
        cut, long = cut_question(question)
        name, reason = (recipe, "") if recipe else await self._choose_recipe()
        training = self.models.planner_training()
        loaded = self._load_recipe(name).with_trained_model(training, name)
        if manner.limits.money is not None:
            self.models.check_prices(ANSWERING_ROLES)
        try:
            async with self.store.snapshot() as snapshot:
                ctx = replace(
                    manner.apply_to(await self.context(snapshot, cut, loaded.retrieve.name)),
                    given_entities=tuple(entities),
                    on_event=manner.on_event,
                    hints=self.settings.answer.hints,
                    sources=self.store.sources,
                    layout=loaded.retrieve.layout.select(manner.evidence),
                    modality=manner.evidence,
                    prompts=[] if manner.record_prompts else None,
                )
                how = self.settings.answer
                asking = Asking(
                    *(loaded.agent, loaded.retrieve, mode, manner.threshold(how.confidence)),
                    history=manner.history,
                    top_k=k,
                    verify=how.verify,
                )
                given = await answer_with(ctx, asking)
                answer = await place_in_files(given, snapshot, self.store)
        finally:
            await self.models.record_spending()  # calls are paid for even if the answer failed
        why = (reason, find_missing_trees(ctx.trace), long)
        return replace(
            answer,
            recipe=name,
            note="; ".join(filter(None, (answer.note, loaded.note, *why))),
            trace=tuple(ctx.trace),
            seconds=perf_counter() - started,
            usage=ctx.meter.total,
            prompts=tuple(ctx.prompts or ()),
        )

    @embed_on_first_use
    async def use_tool(
        self, name: str, arguments: Mapping[str, Any], *, recipe: str | None = None
    ) -> Evidence:
        """Call a tool that agents have; what is wrong with the arguments is said in a finding."""
        loaded = self._load_recipe(recipe or self.settings.recipe)
        async with self.store.snapshot() as snapshot:
            ctx = await self.context(snapshot, "", loaded.retrieve.name)
            ctx = replace(ctx, layout=loaded.retrieve.layout, sources=self.store.sources)
            return await Toolbox(ctx, loaded.retrieve).call(name, arguments)

    async def _choose_recipe(self) -> tuple[str, str]:
        """The recipe for a question without one, and a note if it is not the configured one."""
        from clew.recipes.default import GRAPH_RECIPE, GRAPH_RECIPE_NOTE, is_only_graph

        answers = any(map(self.models.has, ANSWERING_ROLES))
        if not (self.settings.own_recipe or self.embed is None or answers):
            async with self.store.snapshot() as snapshot:
                view = await self._load_view(snapshot)
            if await is_only_graph(view, self.store):
                return GRAPH_RECIPE, GRAPH_RECIPE_NOTE
        return self.settings.recipe, ""

    def _load_recipe(self, name: str) -> "ResolvedRecipe":
        from clew.recipes.registry import resolve_recipe

        if not isinstance(name, str):
            raise ConfigError(f"recipe={name!r}: must be the name of a recipe")
        return resolve_recipe(name, self.recipes)

    def forget_view(self) -> None:
        """Drop the cached view: something outside the generation's arrays has changed."""
        self._view = None

    async def context(
        self, snapshot: Snapshot, question: str, recipe: str = "", *, reads: bool = True
    ) -> Context:
        """Return a context for running the steps of a recipe, with the reader if it `reads`."""
        view = await self._load_view(snapshot)
        embed = adapt_embedder(view, self.embed, recipe)
        given = (question, view, snapshot, embed, self.models, self.store)
        return Context(*given, rerank=self.rerank, reader=self.reader if reads else None)

    def stream(
        self, question: str, *, manner: AskOptions = DEFAULT_OPTIONS, **how: Any
    ) -> AnswerStream:
        """Answer a question as a stream of events; the last item is the answer."""
        return stream_answer(
            lambda emit: tell_waits(
                emit, self.ask(question, manner=replace(manner, on_event=emit), **how)
            )
        )

    async def _load_view(self, snapshot: Snapshot) -> View:
        """The snapshot's view, cached until the generation changes."""
        view = self._view
        if view is None or view.generation != snapshot.generation:
            await check_embedder(self.store, self.embed)
            embedder, how = (self.embed.name if self.embed else ""), self.settings.index
            view = await load_view(self.store, embedder, snapshot, **how.model_dump())
            if self.spread is not None:
                view = await self.spread(view, snapshot)
            await attach_tuning(view, self.store, self.embed)
            self._view = view
        return view

    async def count_pending(self) -> int:
        """Return how many elements have descriptions or attributes without a vector."""
        async with self.store.snapshot() as snapshot:
            return await count_pending(self.store, snapshot.arrays)

    async def verify(self) -> list[str]:
        """Check consistency; return one sentence per problem."""
        if found := await self.store.find_problems():
            return found
        async with self.store.snapshot() as snapshot:
            states = await self.builder.make_tree_manager().states(snapshot)
            pending = await count_pending(self.store, snapshot.arrays)
        found = [f"the {name} tree is missing" for name, one in states.items() if one == "missing"]
        if pending:
            found.append(f"descriptions or attributes of {pending} elements have no vector yet")
        return found

    async def backup(self, file: Path) -> int:
        """Copy the database to a file; return its size."""
        return await self.store.backup(file)

    @classmethod
    async def restore(
        cls, settings: Settings, file: Path, progress: ProgressCallback = ignore_progress
    ) -> Counts:
        """Replace the configured knowledge base by a backup; derive and embed what it lacks."""
        held = await asyncio.to_thread(read_backup_embedder, file)
        embed = find_embedder(settings, held)
        check_backup_embedder(file, held, embed)
        await restore_backup(settings, file)
        base = await cls.open(settings, check=False)
        try:
            await base.repair(progress)
            return await base.store.counts()
        finally:
            await base.close()

    async def close(self) -> None:
        """Close files and release locks."""
        await self.store.close()

    @classmethod
    async def open(
        cls,
        settings: Settings,
        *,
        create: bool = False,
        embed: bool = True,
        check: bool = True,
        restoring: bool = False,
    ) -> "KnowledgeBase":
        """Open the configured store with the configured embedder; checks as in `SqliteStore`."""
        store = await open_store(settings, create=create, check=check, restoring=restoring)
        if not embed:
            return cls(store, settings, None)
        vectors, settings = await choose_embedder(store, settings)
        return cls(store, settings, vectors)
