"""The trees of one knowledge base: grown, described and published in one step."""

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
_BLOCK = 256  # communities described, or texts embedded, between two writes
_LEAST = 2  # members below which no model is asked: one entity's facts speak for themselves
_NAMES = "trees"  # manifest: which there are
_WRITTEN = "tree"  # manifest: who writes this knowledge base's summaries
_KINDS: tuple[Kind, ...] = ("chunk", "entity", "fact")


@dataclass(frozen=True)
class Grown:
    """What growing did."""

    trees: dict[str, dict[str, Any]]
    written: int = 0
    quoted: int = 0
    kept: int = 0
    lost: int = 0
    """Communities a model was asked for and gave nothing usable: they are quoted."""


@dataclass(frozen=True)
class TreeRoom:
    """Grows trees and keeps them."""

    store: Store
    embed: Embed | None = None
    models: Models | None = None
    progress: Progress = lambda stage, done, total: None

    async def grow(self, trees: Sequence[str], *, write: bool = False) -> Grown:
        """Grow these trees afresh; texts of communities that stayed the same are kept."""
        for tree in trees:
            if tree not in TREES:
                raise ConfigError(f"no tree {tree!r}; have {', '.join(TREES)}")
        return await self._change(trees, afresh=True, write=write)

    async def tend(self) -> Grown | None:
        """Bring every tree up to date after a change; None when nothing is to be done."""
        async with self.store.snapshot() as now:
            forest = forest_of(now.arrays)
            if not len(forest) or (
                await self._up_to_date(View(now.arrays, {}), forest)
                and not await self._lacks_vectors(forest)
            ):
                return None
        held = await self.store.recall("manifest", [_WRITTEN])
        asks = self.models is not None and self.models.configured
        return await self._change(forest.names(), write=asks and held.get(_WRITTEN) == MODEL)

    async def _up_to_date(self, view: View, forest: Forest) -> bool:
        """Whether every element is in its tree, and every community has a text that holds."""
        things = np.flatnonzero(~view.arrays["entity_literal"])
        for name in forest.names():
            here = alone(forest, name)
            if TREES.index(name) >= FIRST_OF_CHUNKS:
                if len(np.unique(here.chunks.columns)) < view.count("chunk"):
                    return False
            elif (here.homes(name, view.count("entity"))[things] < 0).any():
                return False
        marks = mark_names(forest, np.arange(len(forest)))
        return len(_still_true(view, await recalled(self.store, marks))) == len(set(marks))

    async def _lacks_vectors(self, forest: Forest) -> bool:
        """Whether texts are without vectors that this embedder could make."""
        if self.embed is None or (forest.rows >= 0).all():
            return False
        held = await self.store.recall("manifest", ["embedder"])
        return held.get("embedder") == self.embed.name

    async def describe(self) -> Grown:
        """Let the model write names and summaries where it has not yet."""
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
        """The trees that were grown here, whatever became of the arrays."""
        held = (await self.store.recall("manifest", [_NAMES])).get(_NAMES, "")
        return [name for name in held.split(",") if name in TREES]

    async def embed_texts(self) -> None:
        """Make the texts' vectors anew, after a change of embedder."""
        async with self.store.snapshot() as now:
            there = len(forest_of(now.arrays)) > 0
        if there:
            await self._change(())

    async def _change(
        self, trees: Sequence[str], *, afresh: bool = False, write: bool = False
    ) -> Grown:
        async with self.store.writing(), self.store.snapshot() as now:
            held = (await self.store.recall("manifest", ["embedder"])).get("embedder", "")
            view = self.view(now, held)
            forest, figures = await self._planted(view, now, trees, afresh)
            told, counts = await self._told(view, now, forest, write)
            forest = with_rows(forest, await self._rows(held, told))
            await self.store.write(Change(), _published(forest))
            await self.store.remember("manifest", {_NAMES: ",".join(forest.names())})
        for name in forest.names():
            figures.setdefault(name, {}).update(_shape(forest, name))
        return Grown(figures, **counts)

    def view(self, now: Snapshot, embedder: str) -> View:
        """A generation with the vectors of the embedder it was made with."""
        matrices: dict[Kind, Any] = {}
        for kind in _KINDS if embedder else ():
            matrices[kind] = np.asarray(self.store.vectors(embedder, kind).matrix())
        return View(now.arrays, matrices, now.generation)

    # -- structure

    async def _planted(
        self, view: View, now: Snapshot, trees: Sequence[str], afresh: bool
    ) -> tuple[Forest, dict[str, dict[str, Any]]]:
        forest = forest_of(now.arrays)
        ground = Ground(view, await self.relations(view, now))
        passages = None
        if any(TREES.index(tree) >= FIRST_OF_CHUNKS for tree in trees):
            passages = await _passages(view, now)
        figures: dict[str, dict[str, Any]] = {}
        for at, tree in enumerate(trees):
            self.progress("grow", at, len(trees))
            began = perf_counter()
            if afresh:
                made = await asyncio.to_thread(plant, ground, tree, passages)
            else:
                made = await asyncio.to_thread(tend, ground, tree, forest, passages)
            forest = joined([without(forest, tree), made])
            figures[tree] = {"seconds": round(perf_counter() - began, 2)}
        self.progress("grow", len(trees), len(trees))
        return forest, figures

    async def relations(self, view: View, now: Snapshot) -> NDArray[np.float32] | None:
        """The vectors of relations' wordings, where facts have none of their own."""
        matrix = view.matrices.get("fact")
        bearers = view.arrays.get("relation_fact", ())
        if self.embed is None or not len(bearers) or (matrix is not None and len(matrix)):
            return None
        keys = [int(view.keys("fact")[at]) for at in bearers]
        facts = await now.facts(keys)
        texts = [" ".join(facts[key].relation.replace("_", " ").split()) for key in keys]
        hashes = [digest(text) for text in texts]
        table = self.store.vectors(self.embed.name, "relation")
        lacking = {hashes[at]: texts[at] for at in np.flatnonzero(table.rows(hashes) < 0).tolist()}
        if lacking:
            table.append(list(lacking), await self.embed(list(lacking.values())))
        found: NDArray[np.float32] = np.asarray(table.matrix())[table.rows(hashes)]
        return found

    # -- texts

    async def _told(
        self, view: View, now: Snapshot, forest: Forest, write: bool
    ) -> tuple[dict[int, Told], dict[str, int]]:
        """A text for every community; those below are told before those above."""
        quarry = Quarry(view, now, forest)
        marks = mark_names(forest, np.arange(len(forest)))
        known = _still_true(view, await recalled(self.store, marks))
        writer = Writer(self.models.chat("extract")) if write and self.models else None
        sizes = quarry.sizes
        told: dict[int, Told] = {}
        counts = {"written": 0, "quoted": 0, "kept": 0}
        for block in _bottom_up(forest):
            lacking = []
            for at in block.tolist():
                held = known.get(marks[at])
                again = writer is not None and sizes[at] >= _LEAST
                if held is None or (again and held.by == QUOTED):
                    lacking.append(at)
                else:
                    told[at], counts["kept"] = held, counts["kept"] + 1
            fresh = await self._described(quarry, np.array(lacking, np.int64), told, writer)
            await remember(self.store, {marks[at]: one for at, one in fresh.items()})
            told |= fresh
            written = sum(one.by == MODEL for one in fresh.values())
            counts["written"] += written
            counts["quoted"] += len(fresh) - written
            self.progress("describe", len(told), len(forest))
        return told, counts | {"lost": len(writer.lost) if writer else 0}

    async def _described(
        self,
        quarry: Quarry,
        communities: NDArray[np.int64],
        told: Mapping[int, Told],
        writer: Writer | None,
    ) -> dict[int, Told]:
        if not len(communities):
            return {}
        materials = await quarry.of(communities, told)
        some = {at: m for at, m in materials.items() if quarry.sizes[at] >= _LEAST}
        found = await writer(some) if writer is not None else {}
        return {at: found[at] if at in found else m.quoted() for at, m in materials.items()}

    # -- vectors

    async def _rows(self, embedder: str, told: Mapping[int, Told]) -> NDArray[np.int64]:
        """Where each text's vector is; without an embedder at hand, only what is there already."""
        if not embedder or not told:
            return np.full(len(told), -1)
        table = self.store.vectors(embedder, "community")
        texts = [told[at].text for at in range(len(told))]
        hashes = [digest(text) for text in texts]
        row = table.rows(hashes)
        if self.embed is None or self.embed.name != embedder:
            return row
        lacking = {hashes[at]: texts[at] for at in np.flatnonzero(row < 0).tolist()}
        # Longest first: texts of like length share a batch without padding.
        wanted = sorted(lacking, key=lambda key: -len(lacking[key]))
        for first in range(0, len(wanted), _BLOCK):
            block = wanted[first : first + _BLOCK]
            table.append(block, await self.embed([lacking[key] for key in block]))
            self.progress("embed", first + len(block), len(wanted))
        return table.rows(hashes)


def _published(forest: Forest) -> Callable[[Tables], Mapping[str, NDArray[Any]]]:
    def publish(tables: Tables) -> Mapping[str, NDArray[Any]]:
        held = tables.previous
        if "layout" not in held:
            return arrays_of(tables) | forest_arrays(forest)
        # Nothing but the trees changed: the other arrays are taken over as they are.
        return {n: held[n] for n in held if not n.startswith("raw_")} | forest_arrays(forest)

    return publish


def _still_true(view: View, told: Mapping[str, Told]) -> dict[str, Told]:
    """Texts of which every fact is still there."""
    keys = view.keys("fact")
    return {mark: one for mark, one in told.items() if one.holds(keys)}


def _bottom_up(forest: Forest) -> list[NDArray[np.int64]]:
    blocks = []
    for level in range(int(forest.level.max(initial=0)), -1, -1):
        here = np.flatnonzero(forest.level == level)
        blocks += [here[first : first + _BLOCK] for first in range(0, len(here), _BLOCK)]
    return blocks


def _shape(forest: Forest, tree: str) -> dict[str, Any]:
    here = forest.of(tree)
    levels = np.bincount(forest.level[here]).tolist()
    return {"communities": len(here), "levels": levels}


async def _passages(view: View, now: Snapshot) -> Passages:
    keys = view.keys("chunk").tolist()
    chunks = await now.chunks(keys)
    codes = np.array([hash64(chunks[key].id) for key in keys], np.uint64)
    return Passages([chunks[key].document for key in keys], codes)
