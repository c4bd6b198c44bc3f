"""Manages the community trees of a knowledge base: build, update, describe, store."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError
from clew.graph.community_tree import (
    FIRST_CHUNK_TREE,
    TREES,
    CommunityForest,
    forest_from_arrays,
    forest_to_arrays,
    format_marks,
    merge_forests,
    remove_tree,
    select_tree,
)
from clew.graph.csr import Floats, Ints
from clew.index.derive import derive_arrays
from clew.index.view import View
from clew.llm.embed import Embedder, check_meaning
from clew.models import Models
from clew.out_of_core import UNBOUNDED, WorkingMemory
from clew.store.protocol import Change, Snapshot, Store, Tables
from clew.text.unicode import digest, hash64
from clew.tree.build import PassageInfo, TreeInput, build_tree, update_tree
from clew.tree.describe import SummaryWriter
from clew.tree.summaries import MODEL, QUOTED, CommunitySummary, load_summaries, save_summaries
from clew.tree.summary_source import SummarySource
from clew.types import Kind

Progress = Callable[[str, int, int], None]
_BATCH_SIZE = 256  # communities described, or summaries embedded, between two writes
_MIN_MEMBERS = 2  # members below which no model is called: a single entity needs no summary
_TREES_KEY = "trees"  # manifest key: names of the trees
_WRITER_KEY = "tree"  # manifest key: who writes the summaries
_STATES_KEY = "tree_states"  # manifest key: from which elements each was built and updated
_KINDS: tuple[Kind, ...] = ("chunk", "entity", "fact")


@dataclass(frozen=True)
class TreeReport:
    """Report of a tree build or update."""

    trees: dict[str, dict[str, Any]]
    written: int = 0
    quoted: int = 0
    kept: int = 0
    lost: int = 0
    """Communities without a usable model reply: they are quoted."""


@dataclass(frozen=True)
class TreeManager:
    """Builds, updates and stores the trees of one knowledge base."""

    store: Store
    embed: Embedder | None = None
    models: Models | None = None
    progress: Progress = lambda stage, done, total: None
    memory: WorkingMemory = UNBOUNDED

    async def build(self, trees: Sequence[str], *, write: bool = False) -> TreeReport:
        """Build these trees from scratch; summaries of unchanged communities are kept."""
        for tree in trees:
            if tree not in TREES:
                raise ConfigError(f"no tree {tree!r}; available: {', '.join(TREES)}")
        return await self._write_trees(trees, rebuild=True, write=write)

    async def update(self) -> TreeReport | None:
        """Update every tree after a change; None when nothing is to be done."""
        async with self.store.snapshot() as snapshot:
            forest = forest_from_arrays(snapshot.arrays)
            view = View(snapshot.arrays, {})
            states = await self.states(snapshot)
            lost = [name for name, state in states.items() if state == "missing"]
            if not view.count("chunk") or (
                not lost
                and "stale" not in states.values()
                and await self._is_up_to_date(view, forest)
                and not await self._lacks_vectors(forest)
            ):
                return None
        stored = await self.store.get("manifest", [_WRITER_KEY])
        has_model = self.models is not None and self.models.can_extract
        write = has_model and stored.get(_WRITER_KEY) == MODEL
        if lost:  # the arrays were derived again from the tables
            await self._write_trees(lost, rebuild=True, write=write)
        kept = [name for name in forest.tree_names() if name not in lost]
        return await self._write_trees(kept, write=write)

    async def states(self, snapshot: Snapshot) -> dict[str, str]:
        """Return how each tree relates to the elements there are now.

        `fresh`: equal to one built now; `updated`: extended since it was built; `stale`: elements
        have changed that it does not know of; `missing`: to be built again.
        """
        stored = await self.store.get("manifest", [_TREES_KEY, _STATES_KEY])
        marks = json.loads(stored.get(_STATES_KEY) or "{}")
        present = forest_from_arrays(snapshot.arrays).tree_names()
        names = dict.fromkeys((*_split_names(stored.get(_TREES_KEY, "")), *present))
        now = _hash_elements(snapshot) if names else ""
        found = {}
        for name in names:
            built, updated = marks.get(name, ("", now))  # version 0.1 recorded nothing
            found[name] = "fresh" if built == now else "updated" if updated == now else "stale"
            if name not in present:
                found[name] = "missing"
        if not len(View(snapshot.arrays, {}).keys("chunk")):
            return {}  # nothing to build trees of
        return found

    async def _is_up_to_date(self, view: View, forest: CommunityForest) -> bool:
        """Tell whether every element is in its tree and every community has a valid summary."""
        entities = np.flatnonzero(~view.arrays["entity_literal"])
        for name in forest.tree_names():
            single = select_tree(forest, name)
            if TREES.index(name) >= FIRST_CHUNK_TREE:
                if len(np.unique(single.chunks.columns)) < view.count("chunk"):
                    return False
            elif (single.leaf_communities(name, view.count("entity"))[entities] < 0).any():
                return False
        marks = format_marks(forest, np.arange(len(forest)))
        return len(_filter_valid(view, await load_summaries(self.store, marks))) == len(set(marks))

    async def _lacks_vectors(self, forest: CommunityForest) -> bool:
        """Tell whether summaries lack vectors that this embedder could compute."""
        if self.embed is None or (forest.rows >= 0).all():
            return False
        stored = await self.store.get("manifest", ["embedder"])
        return stored.get("embedder") == self.embed.name

    async def describe(self) -> TreeReport:
        """Let the model write names and summaries where they are missing or quoted."""
        async with self.store.snapshot() as now:
            names = forest_from_arrays(now.arrays).tree_names()
        if not names:
            raise ConfigError("there is no tree to describe; build one with `clew tree --grow`")
        if self.models is None or not self.models.can_extract:
            raise ConfigError(
                "no model is configured to write summaries; set [models] in clew.toml, or keep the "
                "quoted summaries"
            )
        await self.store.set("manifest", {_WRITER_KEY: MODEL})
        return await self._write_trees((), write=True)

    async def tree_names(self) -> list[str]:
        """Return the trees built here, as recorded in the manifest."""
        stored = (await self.store.get("manifest", [_TREES_KEY])).get(_TREES_KEY, "")
        return _split_names(stored)

    async def embed_summaries(self) -> None:
        """Recompute the summaries' vectors after a change of embedder."""
        async with self.store.snapshot() as now:
            has_trees = len(forest_from_arrays(now.arrays)) > 0
        if has_trees:
            await self._write_trees(())

    async def _write_trees(
        self, trees: Sequence[str], *, rebuild: bool = False, write: bool = False
    ) -> TreeReport:
        async with self.store.write_lock(), self.store.snapshot() as snapshot:
            embedder = (await self.store.get("manifest", ["embedder"])).get("embedder", "")
            view = self.make_view(snapshot, embedder)
            forest, figures = await self._build_structure(view, snapshot, trees, rebuild)
            summaries, counts = await self._write_summaries(view, snapshot, forest, write, rebuild)
            forest = replace(forest, rows=await self._find_vector_rows(embedder, summaries))
            await self.store.write(Change(), _derive_with_trees(forest))
            await self._save_states(snapshot, forest.tree_names(), trees, rebuild)
        for name in forest.tree_names():
            figures.setdefault(name, {}).update(_summarize_shape(forest, name))
        return TreeReport(figures, **counts)

    async def _save_states(
        self, snapshot: Snapshot, names: Sequence[str], changed: Sequence[str], rebuild: bool
    ) -> None:
        """Record the trees, and from which elements the changed ones were made."""
        stored = (await self.store.get("manifest", [_STATES_KEY])).get(_STATES_KEY) or "{}"
        now = _hash_elements(snapshot)
        marks = {name: mark for name, mark in json.loads(stored).items() if name in names}
        for name in changed:
            is_fresh = rebuild or marks.get(name, ("",))[0] == now
            marks[name] = (now if is_fresh else "", now)
        await self.store.set(
            "manifest", {_TREES_KEY: ",".join(names), _STATES_KEY: json.dumps(marks)}
        )

    def make_view(self, now: Snapshot, embedder: str) -> View:
        """Return a view of a generation with the vectors of its embedder."""
        matrices: dict[Kind, Any] = {}
        for kind in _KINDS if embedder else ():
            matrices[kind] = self.store.vectors(embedder, kind).matrix()
        return View(now.arrays, matrices, now.generation)

    # -- structure

    async def _build_structure(
        self, view: View, snapshot: Snapshot, trees: Sequence[str], rebuild: bool
    ) -> tuple[CommunityForest, dict[str, dict[str, Any]]]:
        forest = forest_from_arrays(snapshot.arrays)
        inputs = TreeInput(view, await self.embed_relations(view, snapshot), self.memory)
        passages = None
        if any(TREES.index(tree) >= FIRST_CHUNK_TREE for tree in trees):
            passages = await _load_passages(view, snapshot)
        figures: dict[str, dict[str, Any]] = {}
        for at, tree in enumerate(trees):
            self.progress("grow", at, len(trees))
            began = perf_counter()
            if rebuild:
                built = await asyncio.to_thread(build_tree, inputs, tree, passages)
            else:
                built = await asyncio.to_thread(update_tree, inputs, tree, forest, passages)
            forest = merge_forests([remove_tree(forest, tree), built])
            figures[tree] = {"seconds": round(perf_counter() - began, 2)}
        self.progress("grow", len(trees), len(trees))
        return forest, figures

    async def embed_relations(self, view: View, now: Snapshot) -> Floats | None:
        """Return the vectors of relation labels, where facts have none of their own."""
        matrix = view.matrices.get("fact")
        examples = view.arrays.get("relation_fact", ())
        if self.embed is None or not len(examples) or (matrix is not None and len(matrix)):
            return None
        keys = [int(view.keys("fact")[at]) for at in examples]
        facts = await now.facts(keys)
        texts = [" ".join(facts[key].relation.replace("_", " ").split()) for key in keys]
        hashes = [digest(text) for text in texts]
        table = self.store.vectors(self.embed.name, "relation")
        missing = {
            hashes[at]: texts[at] for at in np.flatnonzero(table.find_rows(hashes) < 0).tolist()
        }
        if missing:
            wanted = list(missing.values())
            vectors = await self.embed(wanted)
            table.append(list(missing), check_meaning(self.embed.name, wanted, vectors))
        found: Floats = np.asarray(table.matrix()[table.find_rows(hashes)], np.float32)
        return found

    # -- texts

    async def _write_summaries(
        self, view: View, snapshot: Snapshot, forest: CommunityForest, write: bool, rebuild: bool
    ) -> tuple[dict[int, CommunitySummary], dict[str, int]]:
        """Return a summary for every community, written bottom-up, and counts by origin.

        For a tree that is built anew all is quoted again: what else is stored may say more now.
        """
        source = SummarySource(view, snapshot, forest)
        marks = format_marks(forest, np.arange(len(forest)))
        known = _filter_valid(view, await load_summaries(self.store, marks))
        writer = SummaryWriter(self.models.chat("extract")) if write and self.models else None
        sizes = source.sizes
        summaries: dict[int, CommunitySummary] = {}
        counts = {"written": 0, "quoted": 0, "kept": 0}
        for block in _order_bottom_up(forest):
            missing = []
            for at in block.tolist():
                stored = known.get(marks[at])
                rewrite = writer is not None and sizes[at] >= _MIN_MEMBERS
                if stored is None or (stored.by == QUOTED and (rewrite or rebuild)):
                    missing.append(at)
                else:
                    summaries[at], counts["kept"] = stored, counts["kept"] + 1
            added = await self._describe_communities(
                source, np.array(missing, np.int64), summaries, writer
            )
            summaries |= added
            new = {at: one for at, one in added.items() if known.get(marks[at]) != one}
            await save_summaries(self.store, {marks[at]: summary for at, summary in new.items()})
            written = sum(summary.by == MODEL for summary in new.values())
            counts["written"] += written
            counts["quoted"] += len(new) - written
            counts["kept"] += len(added) - len(new)
            self.progress("describe", len(summaries), len(forest))
        return summaries, counts | {"lost": len(writer.failed) if writer else 0}

    async def _describe_communities(
        self,
        source: SummarySource,
        communities: Ints,
        summaries: Mapping[int, CommunitySummary],
        writer: SummaryWriter | None,
    ) -> dict[int, CommunitySummary]:
        if not len(communities):
            return {}
        materials = await source.collect(communities, summaries)
        large = {at: m for at, m in materials.items() if source.sizes[at] >= _MIN_MEMBERS}
        found = await writer(large) if writer is not None else {}
        return {
            at: found[at] if at in found else m.to_quoted_summary() for at, m in materials.items()
        }

    # -- vectors

    async def _find_vector_rows(
        self, embedder: str, summaries: Mapping[int, CommunitySummary]
    ) -> Ints:
        """Return each summary's vector row; without an embedder only existing ones, else -1."""
        if not embedder or not summaries:
            return np.full(len(summaries), -1)
        table = self.store.vectors(embedder, "community")
        texts = [summaries[at].text for at in range(len(summaries))]
        hashes = [digest(text) for text in texts]
        row = table.find_rows(hashes)
        if self.embed is None or self.embed.name != embedder:
            return row
        missing = {hashes[at]: texts[at] for at in np.flatnonzero(row < 0).tolist()}
        # Longest first: texts of similar length share a batch without padding.
        wanted = sorted(missing, key=lambda key: -len(missing[key]))
        for first in range(0, len(wanted), _BATCH_SIZE):
            block = wanted[first : first + _BATCH_SIZE]
            part = [missing[key] for key in block]
            vectors = await self.embed(part)
            table.append(block, check_meaning(embedder, part, vectors))
            self.progress("embed", first + len(block), len(wanted))
        return table.find_rows(hashes)


def _split_names(stored: str) -> list[str]:
    return [name for name in stored.split(",") if name in TREES]


def _hash_elements(snapshot: Snapshot) -> str:
    """Hash of all elements, which changes whenever a tree might."""
    view, found = View(snapshot.arrays, {}), hashlib.blake2b(digest_size=8)
    for kind in _KINDS:
        found.update(view.keys(kind).tobytes())
    found.update(snapshot.arrays.get("merged", np.zeros(0, np.int64)).tobytes())
    return found.hexdigest()


def _derive_with_trees(forest: CommunityForest) -> Callable[[Tables], Mapping[str, NDArray[Any]]]:
    def publish(tables: Tables) -> Mapping[str, NDArray[Any]]:
        old = tables.previous
        if "layout" not in old:
            return derive_arrays(tables) | forest_to_arrays(forest)
        # Only the trees changed: the other arrays are kept as they are.
        return {n: old[n] for n in old if not n.startswith("raw_")} | forest_to_arrays(forest)

    return publish


def _filter_valid(
    view: View, summaries: Mapping[str, CommunitySummary]
) -> dict[str, CommunitySummary]:
    keys = view.keys("fact")
    return {mark: summary for mark, summary in summaries.items() if summary.is_valid_for(keys)}


def _order_bottom_up(forest: CommunityForest) -> list[Ints]:
    blocks = []
    for level in range(int(forest.level.max(initial=0)), -1, -1):
        here = np.flatnonzero(forest.level == level)
        blocks += [here[first : first + _BATCH_SIZE] for first in range(0, len(here), _BATCH_SIZE)]
    return blocks


def _summarize_shape(forest: CommunityForest, tree: str) -> dict[str, Any]:
    communities = forest.communities(tree)
    levels = np.bincount(forest.level[communities]).tolist()
    return {"communities": len(communities), "levels": levels}


async def _load_passages(view: View, snapshot: Snapshot) -> PassageInfo:
    keys = view.keys("chunk").tolist()
    chunks = await snapshot.chunks(keys)
    codes = np.array([hash64(chunks[key].id) for key in keys], np.uint64)
    return PassageInfo([chunks[key].document for key in keys], codes)
