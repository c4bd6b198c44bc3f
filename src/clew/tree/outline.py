"""Readable outline of a tree: communities, keywords, facts and attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from clew.errors import ConfigError, StoreError
from clew.graph.community_tree import (
    FIRST_CHUNK_TREE,
    TREES,
    CommunityForest,
    forest_from_arrays,
    format_marks,
)
from clew.graph.csr import Ints
from clew.index.view import View
from clew.store.protocol import KeyValueStore, Snapshot
from clew.tree.summaries import SUMMARY_KIND, CommunitySummary, load_summaries
from clew.tree.summary_source import SummarySource
from clew.types import Entity

NO_TREE = "no tree"
"""Step in the trace: a tree that a recipe can do without was not there."""
COMMUNITY, KEYWORD, FACT, ATTRIBUTE = 1, 2, 3, 4  # depth of detail


@dataclass(frozen=True, slots=True)
class Keyword:
    """A representative member of a community, with its facts and attributes."""

    name: str
    type: str = ""
    score: float = 0.0
    facts: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Branch:
    """One community with the branches shown below it."""

    id: str
    name: str
    level: int
    size: int
    summary: str = ""
    by: str = ""
    keywords: tuple[Keyword, ...] = ()
    below: tuple["Branch", ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """A tree, the largest branches first."""

    tree: str
    communities: int
    levels: tuple[int, ...]
    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class OutlineOptions:
    """Options: how much of a tree is shown."""

    level: int | None = None
    """Communities down to this level (0 is the coarsest); None for all."""
    depth: int = KEYWORD
    """1 communities, 2 keywords, 3 facts, 4 attributes."""
    most: int = 20
    """Branches of each community; 0 for all."""
    keywords: int = 5
    facts: int = 3


def missing_tree_error(tree: str) -> ConfigError:
    """Return the error for a tree that was not built."""
    return ConfigError(
        f"this knowledge base has no {tree!r} tree; build it with `clew tree --grow --by {tree}`"
    )


async def read_outline(
    now: Snapshot, memory: KeyValueStore, tree: str | None = None, how: OutlineOptions | None = None
) -> Outline:
    """Read the outline of one tree, by default the first one."""
    forest = forest_from_arrays(now.arrays)
    names = forest.tree_names()
    name = tree or (names[0] if names else "dual")
    if name not in TREES:
        raise ConfigError(f"no tree {name!r}; available: {', '.join(TREES)}")
    if name not in names:
        raise missing_tree_error(name)
    reader = _OutlineReader(now, memory, forest, how or OutlineOptions())
    here = forest.communities(name)
    levels = np.bincount(forest.level[here]).tolist()
    return Outline(name, len(here), tuple(levels), await reader.read_branches(here))


@dataclass
class _OutlineReader:
    """Fetches the contents of an outline, in one batch per kind."""

    now: Snapshot
    memory: KeyValueStore
    forest: CommunityForest
    how: OutlineOptions

    def __post_init__(self) -> None:
        self.view = View(self.now.arrays, {})
        self.source = SummarySource(self.view, self.now, self.forest)

    async def read_branches(self, communities: Ints) -> tuple[Branch, ...]:
        tops = communities[self.forest.parent[communities] < 0]
        shown = self._visible_communities(tops)
        summaries = await read_summaries(self.source, self.memory, np.array(shown, np.int64))
        keywords = await self._read_keywords(shown)
        return tuple(
            self._build_branch(at, summaries, keywords) for at in self._select_largest(tops)
        )

    def _select_largest(self, communities: Ints) -> list[int]:
        sizes = self.source.sizes[communities]
        order = np.lexsort((communities, -sizes))[: self.how.most or None]
        found: list[int] = communities[order].tolist()
        return found

    def _visible_children(self, community: int) -> list[int]:
        if self.how.level is not None and int(self.forest.level[community]) >= self.how.level:
            return []
        return self._select_largest(self.forest.below.row(community).astype(np.int64))

    def _visible_communities(self, tops: Ints) -> list[int]:
        found: list[int] = []
        waiting = self._select_largest(tops)
        while waiting:
            found += waiting
            waiting = [child for at in waiting for child in self._visible_children(at)]
        return list(dict.fromkeys(found))

    def _build_branch(
        self,
        at: int,
        summaries: Mapping[int, CommunitySummary],
        keywords: Mapping[int, tuple[Keyword, ...]],
    ) -> Branch:
        summary = summaries[at]
        return Branch(
            format_marks(self.forest, np.array([at]))[0],
            summary.name,
            int(self.forest.level[at]),
            int(self.source.sizes[at]),
            summary.summary,
            summary.by,
            keywords.get(at, ()),
            tuple(
                self._build_branch(child, summaries, keywords)
                for child in self._visible_children(at)
            ),
        )

    async def _read_keywords(self, shown: Sequence[int]) -> dict[int, tuple[Keyword, ...]]:
        """Read keywords of the lowest communities shown; upper ones have branches instead."""
        if self.how.depth < KEYWORD or not len(shown):
            return {}
        leaves = [at for at in shown if not self._visible_children(at)]
        if self.forest.tree[shown[0]] >= FIRST_CHUNK_TREE:
            return {}
        members = {at: self.source.keyword_positions(at)[: self.how.keywords] for at in leaves}
        keys = self.view.keys("entity")
        wanted = dict.fromkeys(int(keys[e]) for some in members.values() for e in some)
        entities = await self.now.entities(list(wanted))
        facts = await self._read_facts({e for some in members.values() for e in some})
        return {
            at: tuple(self._build_keyword(at, e, entities[int(keys[e])], facts) for e in some)
            for at, some in members.items()
        }

    def _build_keyword(
        self, community: int, at: int, entity: Entity, facts: Mapping[int, tuple[str, ...]]
    ) -> Keyword:
        links = self.forest.entities
        mine = np.flatnonzero(links.row(community) == at)
        score = float(links.row_weights(community)[mine[0]]) if len(mine) else 0.0
        attributes = dict(entity.attributes) if self.how.depth >= ATTRIBUTE else {}
        return Keyword(entity.name, entity.type, round(score, 4), facts.get(at, ()), attributes)

    async def _read_facts(self, entities: set[int]) -> dict[int, tuple[str, ...]]:
        if self.how.depth < FACT:
            return {}
        links, keys = self.view.links("entity_fact"), self.view.keys("fact")
        rows = {at: links.row(at)[: self.how.facts].tolist() for at in entities}
        texts = await self.now.facts([int(keys[f]) for row in rows.values() for f in row])
        return {at: tuple(texts[int(keys[f])].text for f in row) for at, row in rows.items()}


async def read_summaries(
    source: SummarySource, memory: KeyValueStore, communities: Ints
) -> dict[int, CommunitySummary]:
    """Return the summary of each: the stored one if its facts exist, else a quoted one."""
    marks = format_marks(source.forest, communities)
    stored = await load_summaries(memory, marks)
    facts = source.view.keys("fact")
    summaries = {
        at: stored[mark]
        for at, mark in zip(communities.tolist(), marks, strict=True)
        if mark in stored and stored[mark].is_valid_for(facts)
    }
    if not stored.keys() >= {*marks} and (lost := await memory.find_losses([SUMMARY_KIND])):
        raise StoreError(lost[0])  # quoted ones would take the place of those that were written
    missing = np.array([at for at in communities.tolist() if at not in summaries], np.int64)
    if len(missing):
        summaries |= await _quote_missing(source, memory, missing)
    return summaries


async def _quote_missing(
    source: SummarySource, memory: KeyValueStore, communities: Ints
) -> dict[int, CommunitySummary]:
    """Quote summaries; those of upper passage communities are made from lower ones first."""
    below = source.forest.descendants(communities)
    inner = np.setdiff1d(below, communities)
    over_chunks = source.forest.tree[inner] >= FIRST_CHUNK_TREE
    known = await read_summaries(source, memory, inner[over_chunks]) if over_chunks.any() else {}
    found: dict[int, CommunitySummary] = {}
    for at in communities[np.argsort(-source.forest.level[communities], kind="stable")].tolist():
        material = await source.collect(np.array([at]), known | found)
        found[at] = material[at].to_quoted_summary()
    return found
