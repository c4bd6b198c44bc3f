"""A tree as a reader sees it: communities, their keywords, what is said of those, attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from clew.errors import ConfigError
from clew.graph.forest import FIRST_OF_CHUNKS, TREES, Forest, Ints, forest_of, mark_names
from clew.store.protocol import Memory, Snapshot
from clew.tree.material import Quarry
from clew.tree.told import Told, recalled
from clew.types import Entity
from clew.view import View

COMMUNITY, KEYWORD, FACT, ATTRIBUTE = 1, 2, 3, 4  # how many levels are opened


@dataclass(frozen=True, slots=True)
class Keyword:
    """A member that stands for its community, what is said of it, and what it is."""

    name: str
    type: str = ""
    score: float = 0.0
    facts: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Branch:
    """One community with all that is opened below it."""

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
class Opening:
    """How far a tree is opened."""

    level: int | None = None
    """Communities down to this level (0 is the coarsest); None for all."""
    depth: int = KEYWORD
    """1 communities, 2 keywords, 3 facts, 4 attributes."""
    most: int = 20
    """Branches of each community; 0 for all."""
    keywords: int = 5
    facts: int = 3


def lacking(tree: str) -> ConfigError:
    """What to say where a tree is needed and none is there."""
    return ConfigError(
        f"this knowledge base has no {tree!r} tree yet; `clew tree --grow --by {tree}` grows it"
    )


async def outline(
    now: Snapshot, memory: Memory, tree: str | None = None, how: Opening | None = None
) -> Outline:
    """Read one tree, by default the first there is."""
    forest = forest_of(now.arrays)
    names = forest.names()
    name = tree or (names[0] if names else "dual")
    if name not in TREES:
        raise ConfigError(f"no tree {name!r}; have {', '.join(TREES)}")
    if name not in names:
        raise lacking(name)
    reader = _Reader(now, memory, forest, how or Opening())
    here = forest.of(name)
    levels = np.bincount(forest.level[here]).tolist()
    return Outline(name, len(here), tuple(levels), await reader.branches(here))


@dataclass
class _Reader:
    """Fetches what an outline shows, in one batch per kind."""

    now: Snapshot
    memory: Memory
    forest: Forest
    how: Opening

    def __post_init__(self) -> None:
        self.view = View(self.now.arrays, {})
        self.quarry = Quarry(self.view, self.now, self.forest)

    async def branches(self, here: Ints) -> tuple[Branch, ...]:
        tops = here[self.forest.parent[here] < 0]
        shown = self._opened(tops)
        told = await described(self.quarry, self.memory, np.array(shown, np.int64))
        keywords = await self._keywords(shown)
        return tuple(self._branch(at, told, keywords) for at in self._some(tops))

    def _some(self, communities: Ints) -> list[int]:
        """The largest, as many as wanted."""
        sizes = self.quarry.sizes[communities]
        order = np.lexsort((communities, -sizes))[: self.how.most or None]
        found: list[int] = communities[order].tolist()
        return found

    def _below(self, community: int) -> list[int]:
        if self.how.level is not None and int(self.forest.level[community]) >= self.how.level:
            return []
        return self._some(self.forest.below.row(community).astype(np.int64))

    def _opened(self, tops: Ints) -> list[int]:
        found: list[int] = []
        waiting = self._some(tops)
        while waiting:
            found += waiting
            waiting = [child for at in waiting for child in self._below(at)]
        return list(dict.fromkeys(found))

    def _branch(
        self, at: int, told: Mapping[int, Told], keywords: Mapping[int, tuple[Keyword, ...]]
    ) -> Branch:
        one = told[at]
        return Branch(
            mark_names(self.forest, np.array([at]))[0],
            one.name,
            int(self.forest.level[at]),
            int(self.quarry.sizes[at]),
            one.summary,
            one.by,
            keywords.get(at, ()),
            tuple(self._branch(child, told, keywords) for child in self._below(at)),
        )

    async def _keywords(self, shown: Sequence[int]) -> dict[int, tuple[Keyword, ...]]:
        """Of the lowest communities that are shown; those above have branches instead."""
        if self.how.depth < KEYWORD or not len(shown):
            return {}
        leaves = [at for at in shown if not self._below(at)]
        if self.forest.tree[shown[0]] >= FIRST_OF_CHUNKS:
            return {}
        members = {at: self.quarry.keywords(at)[: self.how.keywords] for at in leaves}
        keys = self.view.keys("entity")
        wanted = dict.fromkeys(int(keys[e]) for some in members.values() for e in some)
        entities = await self.now.entities(list(wanted))
        facts = await self._facts({e for some in members.values() for e in some})
        return {
            at: tuple(self._keyword(at, e, entities[int(keys[e])], facts) for e in some)
            for at, some in members.items()
        }

    def _keyword(
        self, community: int, at: int, entity: Entity, facts: Mapping[int, tuple[str, ...]]
    ) -> Keyword:
        links = self.forest.entities
        mine = np.flatnonzero(links.row(community) == at)
        score = float(links.row_weights(community)[mine[0]]) if len(mine) else 0.0
        attributes = dict(entity.attributes) if self.how.depth >= ATTRIBUTE else {}
        return Keyword(entity.name, entity.type, round(score, 4), facts.get(at, ()), attributes)

    async def _facts(self, entities: set[int]) -> dict[int, tuple[str, ...]]:
        if self.how.depth < FACT:
            return {}
        links, keys = self.view.links("entity_fact"), self.view.keys("fact")
        rows = {at: links.row(at)[: self.how.facts].tolist() for at in entities}
        texts = await self.now.facts([int(keys[f]) for row in rows.values() for f in row])
        return {at: tuple(texts[int(keys[f])].text for f in row) for at, row in rows.items()}


async def described(quarry: Quarry, memory: Memory, communities: Ints) -> dict[int, Told]:
    """The text of each: as remembered while its facts are there, else quoted on the spot."""
    marks = mark_names(quarry.forest, communities)
    held = await recalled(memory, marks)
    facts = quarry.view.keys("fact")
    told = {
        at: held[mark]
        for at, mark in zip(communities.tolist(), marks, strict=True)
        if mark in held and held[mark].holds(facts)
    }
    left = np.array([at for at in communities.tolist() if at not in told], np.int64)
    if len(left):
        told |= await _quoted(quarry, memory, left)
    return told


async def _quoted(quarry: Quarry, memory: Memory, communities: Ints) -> dict[int, Told]:
    """Upper communities of passages are quoted from those below, so these are told first."""
    below = quarry.forest.within(communities)
    inner = np.setdiff1d(below, communities)
    over = quarry.forest.tree[inner] >= FIRST_OF_CHUNKS
    known = await described(quarry, memory, inner[over]) if over.any() else {}
    found: dict[int, Told] = {}
    for at in communities[np.argsort(-quarry.forest.level[communities], kind="stable")].tolist():
        made = await quarry.of(np.array([at]), known | found)
        found[at] = made[at].quoted()
    return found
