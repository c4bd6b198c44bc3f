"""The graph to export: entities, facts with their sources, communities; read in blocks."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from clew.graph.community_tree import forest_from_arrays, format_marks
from clew.index.view import View
from clew.store.protocol import KeyValueStore, Snapshot
from clew.tree.outline import COMMUNITY, Branch, OutlineOptions, read_outline
from clew.types import HEAD, TAIL, Entity, Fact, Support

_BLOCK_SIZE = 5_000  # elements fetched at once
_MAX_WEIGHT = 1e308  # JSON and Cypher have no infinity, which old weights may sum to


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """A source of a fact: a document by name, and a span of its text."""

    doc: str
    start: int
    end: int
    quote: str

    @property
    def label(self) -> str:
        """Text form as in the CLI; `name:12-34` would look like line numbers."""
        return f"{self.doc}, characters {self.start}–{self.end}"


@dataclass(frozen=True, slots=True)
class ExportedFact:
    """A fact with the names of its members and its sources."""

    fact: Fact
    members: tuple[tuple[str, str], ...]
    """(name, role) of each participant."""
    positions: tuple[int, ...]
    """Positions of the members in the view."""
    sources: tuple[SourceSpan, ...] = ()

    @property
    def triple(self) -> tuple[str, str, str] | None:
        """Head, relation and tail, if the fact is a plain triple."""
        if self.fact.relation and [role for _, role in self.members] == [HEAD, TAIL]:
            return self.members[0][0], self.fact.relation, self.members[1][0]
        return None


@dataclass(frozen=True, slots=True)
class Community:
    """A community of a knowledge tree with its summary and members."""

    id: str
    tree: str
    level: int
    parent: str
    """Id of the parent community; empty at the top."""
    name: str
    summary: str
    members: tuple[str, ...]
    """Names of its own entities, without those of child communities."""
    at: tuple[int, ...] = ()
    """Their positions in the view."""


@dataclass(frozen=True)
class ExportGraph:
    """One generation of a knowledge base, for export."""

    snapshot: Snapshot
    communities: Sequence[Community] = ()
    """Communities of the knowledge trees, if any (see `load_communities`)."""

    @cached_property
    def view(self) -> View:
        """The array view of the snapshot."""
        return View(self.snapshot.arrays, {})

    _cache: dict[str, dict[int, str]] = field(default_factory=dict, repr=False, compare=False)

    async def entities(self) -> AsyncIterator[tuple[int, Entity]]:
        """Yield every entity with its position in view order; names are unique."""
        names = await self.disambiguated_names()
        async for at, entity in self._iterate_entities():
            yield at, _rename_entity(entity, names.get(at, ""))

    async def _iterate_entities(self) -> AsyncIterator[tuple[int, Entity]]:
        keys = self.view.keys("entity")
        for start in range(0, len(keys), _BLOCK_SIZE):
            block = keys[start : start + _BLOCK_SIZE].tolist()
            found = await self.snapshot.entities(block)
            for at, key in enumerate(block, start=start):
                yield at, found[key]

    async def entities_at(self, positions: Sequence[int]) -> dict[int, Entity]:
        """Return the entities at these positions, with unique names."""
        keys, new_names = self.view.keys("entity"), await self.disambiguated_names()
        by_key = {int(keys[at]): at for at in dict.fromkeys(positions)}
        found = await self.snapshot.entities(list(by_key))
        return {at: _rename_entity(found[key], new_names.get(at, "")) for key, at in by_key.items()}

    async def disambiguated_names(self) -> Mapping[int, str]:
        """Return new names, by position, for entities whose name an earlier one has.

        Files identify entities by name, so two senses of one name would be imported as one.
        """
        if "names" not in self._cache:
            names = [(at, entity.name) async for at, entity in self._iterate_entities()]
            self._cache["names"] = disambiguate_names(names)
        return self._cache["names"]

    async def facts(self, positions: Sequence[int] | None = None) -> AsyncIterator[ExportedFact]:
        """Yield every fact, or those at these positions in the given order."""
        wanted = range(self.view.count("fact")) if positions is None else positions
        for start in range(0, len(wanted), _BLOCK_SIZE):
            for fact in await self._load_facts(wanted[start : start + _BLOCK_SIZE]):
                yield fact

    async def _load_facts(self, positions: Sequence[int]) -> list[ExportedFact]:
        view = self.view
        keys = [int(view.keys("fact")[at]) for at in positions]
        facts = await self.snapshot.facts(keys)
        places = await self._load_sources(positions, keys)
        members = view.links("fact_entity")
        members_of = {at: [int(m) for m in members.row(at)] for at in positions}
        names = await self.entities_at([m for many in members_of.values() for m in many])
        found = []
        for at, key in zip(positions, keys, strict=True):
            by_id = {names[m].id: m for m in members_of[at]}
            who = [(by_id[p.entity], p.role) for p in facts[key].participants]
            found.append(
                ExportedFact(
                    _clamp_weight(facts[key]),
                    tuple((names[m].name, role) for m, role in who),
                    tuple(m for m, _ in who),
                    tuple(places.get(key, ())),
                )
            )
        return found

    async def _load_sources(
        self, positions: Sequence[int], keys: Sequence[int]
    ) -> dict[int, list[SourceSpan]]:
        view = self.view
        links = view.links("fact_chunk")
        chunk_keys = [int(view.keys("chunk")[c]) for at in positions for c in links.row(at)]
        chunks = await self.snapshot.chunks(list(dict.fromkeys(chunk_keys)))
        by_id = {chunk.id: chunk for chunk in chunks.values()}
        names = await self.snapshot.names(list({chunk.document for chunk in chunks.values()}))

        def place(support: Support) -> SourceSpan:
            chunk = by_id[support.chunk]
            quote = chunk.text[support.start - chunk.start : support.end - chunk.start]
            return SourceSpan(names[chunk.document][0], support.start, support.end, quote)

        supports = await self.snapshot.supports("fact", keys)
        return {key: [place(support) for support in many] for key, many in supports.items()}


def disambiguate_names(names: Iterable[tuple[int, str]]) -> dict[int, str]:
    """Return, for each position with a repeated name, that name with the first free number."""
    taken: set[str] = set()
    repeated = []
    for at, name in names:
        if name in taken:
            repeated.append((at, name))
        taken.add(name)
    found: dict[int, str] = {}
    last: dict[str, int] = {}
    for at, name in repeated:
        number = last.get(name, 1) + 1
        while f"{name} ({number})" in taken:
            number += 1
        found[at], last[name] = f"{name} ({number})", number
        taken.add(found[at])
    return found


def _rename_entity(entity: Entity, name: str) -> Entity:
    """Rename an entity and keep its own name as an alias; an empty name changes nothing."""
    if not name:
        return entity
    aliases = tuple(sorted({*entity.aliases, entity.name} - {name}))
    return replace(entity, name=name, aliases=aliases)


def _clamp_weight(fact: Fact) -> Fact:
    if abs(fact.weight) <= _MAX_WEIGHT:
        return fact
    return replace(fact, weight=max(-_MAX_WEIGHT, min(fact.weight, _MAX_WEIGHT)))


async def load_communities(now: Snapshot, memory: KeyValueStore) -> list[Community]:
    """Return every community of every tree, parents before children."""
    forest = forest_from_arrays(now.arrays)
    marks = format_marks(forest, np.arange(len(forest)))
    at_of = {(int(tree), mark): at for at, (tree, mark) in enumerate(zip(forest.tree, marks))}  # noqa: B905
    keys = View(now.arrays, {}).keys("entity")
    entities = await now.entities([int(keys[at]) for at in np.unique(forest.entities.columns)])
    found = []
    for tree in forest.tree_names():
        number = int(forest.tree[forest.communities(tree)[0]])
        tree_outline = await read_outline(now, memory, tree, OutlineOptions(None, COMMUNITY, 0))
        for branch, parent in _flatten(tree_outline.branches, ""):
            positions = forest.entities.row(at_of[number, branch.id])
            names = tuple(entities[int(keys[at])].name for at in positions)
            texts = branch.name, branch.summary
            at = tuple(map(int, positions))
            found.append(Community(branch.id, tree, branch.level, parent, *texts, names, at))
    return found


def _flatten(branches: tuple[Branch, ...], parent: str) -> Iterator[tuple[Branch, str]]:
    for branch in branches:
        yield branch, parent
        yield from _flatten(branch.below, branch.id)
