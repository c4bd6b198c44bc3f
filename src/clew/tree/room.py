"""Manages the community trees of a knowledge base: build, update, describe, store."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.arrays import arrays_of
from clew.errors import ConfigError
from clew.graph.forest import (
    FIRST_OF_CHUNKS,
    TREES,
    Forest,
    alone,
    forest_arrays,
    forest_of,
    joined,
    mark_names,
    with_rows,
    without,
)
from clew.llm.embed import Embed
from clew.models import Models
from clew.store.protocol import Change, Snapshot, Store, Tables
from clew.text import digest, hash64
from clew.tree.describe import Writer
from clew.tree.ground import Ground
from clew.tree.grow import Passages, plant, tend
from clew.tree.material import Quarry
from clew.tree.told import MODEL, QUOTED, Told, recalled, remember
from clew.types import Kind
from clew.view import View

Progress = Callable[[str, int, int], None]
_BLOCK = 256  # communities described, or summaries embedded, between two writes
_LEAST = 2  # members below which no model is called: a single entity needs no summary
_NAMES = "trees"  # manifest key: names of the trees
_WRITTEN = "tree"  # manifest key: who writes the summaries
_KINDS: tuple[Kind, ...] = ("chunk", "entity", "fact")


@dataclass(frozen=True)
class Grown:
    """Report of a tree build or update."""

    trees: dict[str, dict[str, Any]]
    written: int = 0
    quoted: int = 0
    kept: int = 0
    lost: int = 0
    """Communities without a usable model reply: they are quoted."""


@dataclass(frozen=True)
class TreeRoom:
    """Builds, updates and stores the trees of one knowledge base."""

    store: Store
    embed: Embed | None = None
    models: Models | None = None
    progress: Progress = lambda stage, done, total: None

    async def grow(self, trees: Sequence[str], *, write: bool = False) -> Grown:
        """Build these trees from scratch; summaries of unchanged communities are kept."""
        for tree in trees:
            if tree not in TREES:
                raise ConfigError(f"no tree {tree!r}; have {', '.join(TREES)}")
        return await self._change(trees, afresh=True, write=write)

    async def tend(self) -> Grown | None:
        """Update every tree after a change; None when nothing is to be done."""
        async with self.store.snapshot() as snapshot:
            forest = forest_of(snapshot.arrays)
            if not len(forest) or (
                await self._up_to_date(View(snapshot.arrays, {}), forest)
                and not await self._lacks_vectors(forest)
            ):
                return None
        stored = await self.store.recall("manifest", [_WRITTEN])
        has_model = self.models is not None and self.models.configured
        return await self._change(forest.names(), write=has_model and stored.get(_WRITTEN) == MODEL)

    async def _up_to_date(self, view: View, forest: Forest) -> bool:
        """Tell whether every element is in its tree and every community has a valid summary."""
        entities = np.flatnonzero(~view.arrays["entity_literal"])
        for name in forest.names():
            single = alone(forest, name)
            if TREES.index(name) >= FIRST_OF_CHUNKS:
                if len(np.unique(single.chunks.columns)) < view.count("chunk"):
                    return False
            elif (single.homes(name, view.count("entity"))[entities] < 0).any():
                return False
        marks = mark_names(forest, np.arange(len(forest)))
        return len(_still_true(view, await recalled(self.store, marks))) == len(set(marks))

    async def _lacks_vectors(self, forest: Forest) -> bool:
        """Tell whether summaries lack vectors that this embedder could compute."""
        if self.embed is None or (forest.rows >= 0).all():
            return False
        stored = await self.store.recall("manifest", ["embedder"])
        return stored.get("embedder") == self.embed.name

    async def describe(self) -> Grown:
        """Let the model write names and summaries where they are missing or quoted."""
        async with self.store.snapshot() as now:
            names = forest_of(now.arrays).names()
        if not names:
            raise ConfigError("there is no tree to describe; `clew tree --grow` grows one")
        if self.models is None or not self.models.configured:
            raise ConfigError(
                "describing needs a model; set [models] in clew.toml, or leave the quoted summaries"
            )
        await self.store.remember("manifest", {_WRITTEN: MODEL})
        return await self._change((), write=True)

    async def names(self) -> list[str]:
        """Return the trees built here, as recorded in the manifest."""
        stored = (await self.store.recall("manifest", [_NAMES])).get(_NAMES, "")
        return [name for name in stored.split(",") if name in TREES]

    async def embed_texts(self) -> None:
        """Recompute the summaries' vectors after a change of embedder."""
        async with self.store.snapshot() as now:
            has_trees = len(forest_of(now.arrays)) > 0
        if has_trees:
            await self._change(())

    async def _change(
        self, trees: Sequence[str], *, afresh: bool = False, write: bool = False
    ) -> Grown:
        async with self.store.writing(), self.store.snapshot() as snapshot:
            embedder = (await self.store.recall("manifest", ["embedder"])).get("embedder", "")
            view = self.view(snapshot, embedder)
            forest, figures = await self._planted(view, snapshot, trees, afresh)
            summaries, counts = await self._told(view, snapshot, forest, write)
            forest = with_rows(forest, await self._rows(embedder, summaries))
            await self.store.write(Change(), _published(forest))
            await self.store.remember("manifest", {_NAMES: ",".join(forest.names())})
        for name in forest.names():
            figures.setdefault(name, {}).update(_shape(forest, name))
        return Grown(figures, **counts)

    def view(self, now: Snapshot, embedder: str) -> View:
        """Return a view of a generation with the vectors of its embedder."""
        matrices: dict[Kind, Any] = {}
        for kind in _KINDS if embedder else ():
            matrices[kind] = np.asarray(self.store.vectors(embedder, kind).matrix())
        return View(now.arrays, matrices, now.generation)

    # -- structure

    async def _planted(
        self, view: View, snapshot: Snapshot, trees: Sequence[str], afresh: bool
    ) -> tuple[Forest, dict[str, dict[str, Any]]]:
        forest = forest_of(snapshot.arrays)
        inputs = Ground(view, await self.relations(view, snapshot))
        passages = None
        if any(TREES.index(tree) >= FIRST_OF_CHUNKS for tree in trees):
            passages = await _passages(view, snapshot)
        figures: dict[str, dict[str, Any]] = {}
        for at, tree in enumerate(trees):
            self.progress("grow", at, len(trees))
            began = perf_counter()
            if afresh:
                built = await asyncio.to_thread(plant, inputs, tree, passages)
            else:
                built = await asyncio.to_thread(tend, inputs, tree, forest, passages)
            forest = joined([without(forest, tree), built])
            figures[tree] = {"seconds": round(perf_counter() - began, 2)}
        self.progress("grow", len(trees), len(trees))
        return forest, figures

    async def relations(self, view: View, now: Snapshot) -> NDArray[np.float32] | None:
        """Return the vectors of relation labels, where facts have none of their own."""
        matrix = view.matrices.get("fact")
        bearers = view.arrays.get("relation_fact", ())
        if self.embed is None or not len(bearers) or (matrix is not None and len(matrix)):
            return None
        keys = [int(view.keys("fact")[at]) for at in bearers]
        facts = await now.facts(keys)
        texts = [" ".join(facts[key].relation.replace("_", " ").split()) for key in keys]
        hashes = [digest(text) for text in texts]
        table = self.store.vectors(self.embed.name, "relation")
        missing = {hashes[at]: texts[at] for at in np.flatnonzero(table.rows(hashes) < 0).tolist()}
        if missing:
            table.append(list(missing), await self.embed(list(missing.values())))
        found: NDArray[np.float32] = np.asarray(table.matrix())[table.rows(hashes)]
        return found

    # -- texts

    async def _told(
        self, view: View, snapshot: Snapshot, forest: Forest, write: bool
    ) -> tuple[dict[int, Told], dict[str, int]]:
        """Return a summary for every community, written bottom-up, and counts by origin."""
        source = Quarry(view, snapshot, forest)
        marks = mark_names(forest, np.arange(len(forest)))
        known = _still_true(view, await recalled(self.store, marks))
        writer = Writer(self.models.chat("extract")) if write and self.models else None
        sizes = source.sizes
        summaries: dict[int, Told] = {}
        counts = {"written": 0, "quoted": 0, "kept": 0}
        for block in _bottom_up(forest):
            missing = []
            for at in block.tolist():
                stored = known.get(marks[at])
                rewrite = writer is not None and sizes[at] >= _LEAST
                if stored is None or (rewrite and stored.by == QUOTED):
                    missing.append(at)
                else:
                    summaries[at], counts["kept"] = stored, counts["kept"] + 1
            added = await self._described(source, np.array(missing, np.int64), summaries, writer)
            await remember(self.store, {marks[at]: summary for at, summary in added.items()})
            summaries |= added
            written = sum(summary.by == MODEL for summary in added.values())
            counts["written"] += written
            counts["quoted"] += len(added) - written
            self.progress("describe", len(summaries), len(forest))
        return summaries, counts | {"lost": len(writer.lost) if writer else 0}

    async def _described(
        self,
        source: Quarry,
        communities: NDArray[np.int64],
        summaries: Mapping[int, Told],
        writer: Writer | None,
    ) -> dict[int, Told]:
        if not len(communities):
            return {}
        materials = await source.of(communities, summaries)
        large = {at: m for at, m in materials.items() if source.sizes[at] >= _LEAST}
        found = await writer(large) if writer is not None else {}
        return {at: found[at] if at in found else m.quoted() for at, m in materials.items()}

    # -- vectors

    async def _rows(self, embedder: str, summaries: Mapping[int, Told]) -> NDArray[np.int64]:
        """Return each summary's vector row; without an embedder only existing ones, else -1."""
        if not embedder or not summaries:
            return np.full(len(summaries), -1)
        table = self.store.vectors(embedder, "community")
        texts = [summaries[at].text for at in range(len(summaries))]
        hashes = [digest(text) for text in texts]
        row = table.rows(hashes)
        if self.embed is None or self.embed.name != embedder:
            return row
        missing = {hashes[at]: texts[at] for at in np.flatnonzero(row < 0).tolist()}
        # Longest first: texts of similar length share a batch without padding.
        wanted = sorted(missing, key=lambda key: -len(missing[key]))
        for first in range(0, len(wanted), _BLOCK):
            block = wanted[first : first + _BLOCK]
            table.append(block, await self.embed([missing[key] for key in block]))
            self.progress("embed", first + len(block), len(wanted))
        return table.rows(hashes)


def _published(forest: Forest) -> Callable[[Tables], Mapping[str, NDArray[Any]]]:
    def publish(tables: Tables) -> Mapping[str, NDArray[Any]]:
        old = tables.previous
        if "layout" not in old:
            return arrays_of(tables) | forest_arrays(forest)
        # Only the trees changed: the other arrays are kept as they are.
        return {n: old[n] for n in old if not n.startswith("raw_")} | forest_arrays(forest)

    return publish


def _still_true(view: View, summaries: Mapping[str, Told]) -> dict[str, Told]:
    """Keep the summaries whose facts all still exist."""
    keys = view.keys("fact")
    return {mark: summary for mark, summary in summaries.items() if summary.holds(keys)}


def _bottom_up(forest: Forest) -> list[NDArray[np.int64]]:
    blocks = []
    for level in range(int(forest.level.max(initial=0)), -1, -1):
        here = np.flatnonzero(forest.level == level)
        blocks += [here[first : first + _BLOCK] for first in range(0, len(here), _BLOCK)]
    return blocks


def _shape(forest: Forest, tree: str) -> dict[str, Any]:
    communities = forest.of(tree)
    levels = np.bincount(forest.level[communities]).tolist()
    return {"communities": len(communities), "levels": levels}


async def _passages(view: View, snapshot: Snapshot) -> Passages:
    keys = view.keys("chunk").tolist()
    chunks = await snapshot.chunks(keys)
    codes = np.array([hash64(chunks[key].id) for key in keys], np.uint64)
    return Passages([chunks[key].document for key in keys], codes)
