"""What passages mention, and who mentions what they are about."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.extract.spans import capitalised
from clew.names import tokens
from clew.retrieve.naming.link import key_of
from clew.text import hash64
from clew.view import View

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

NO_FACT = -1
_SURELY = 0.84  # a passage that claims a name at least this surely is about it
_OWN = 0.45  # a name claimed at least this surely is the passage's own
_MOST_TOKENS = 600  # of a passage that are read for names
_PARTS = 6  # tokens of the longest part of a run that is looked up by itself


@dataclass(frozen=True, slots=True)
class Mentions:
    """Columns: the place of the passage among those asked, the entity, the fact that says it."""

    at: Ints
    entity: Ints
    fact: Ints

    def __add__(self, other: "Mentions") -> "Mentions":
        """Both."""
        return Mentions(
            np.concatenate([self.at, other.at]),
            np.concatenate([self.entity, other.entity]),
            np.concatenate([self.fact, other.fact]),
        )

    def __len__(self) -> int:
        """How many."""
        return len(self.at)

    def kept(self, keep: NDArray[np.bool_]) -> "Mentions":
        """Some of them."""
        return Mentions(self.at[keep], self.entity[keep], self.fact[keep])


def mentions(view: View, rows: Ints, known: Ints) -> Mentions:
    """What the facts of some passages mention; names in `known` are behind us."""
    facts, members = view.links("chunk_fact"), view.links("fact_entity")
    at, edge = facts.edges_of(rows)
    said = facts.columns[edge].astype(np.int64)
    fact, member = members.edges_of(said)
    entity = members.columns[member].astype(np.int64)
    found = Mentions(at[fact], entity, said[fact])
    # Role 0 is the subject, which is not a mention.
    useful = (members.weights[member] > 0) & _leading_on(view, entity, known)
    return found.kept(useful & ~_own_names(view, rows, found))


def mentioned_by(view: View, rows: Ints, known: Ints, common: int) -> Mentions:
    """Who mentions what the passages are about: the facts stand in other passages.

    Names met in more than `common` passages tell nothing.
    """
    links = view.links("chunk_entity")
    at, edge = links.edges_of(rows)
    surely = view.arrays["chunk_entity_about"][edge] >= _SURELY
    at, entity = at[surely], links.columns[edge[surely]].astype(np.int64)
    met = view.links("entity_chunk").degrees_of(entity)
    some = (met > 1) & (met <= common) & _leading_on(view, entity, known)
    at, entity = at[some], entity[some]
    facts = view.links("entity_fact")
    which, edge = facts.edges_of(entity)
    named = facts.weights[edge] > 0
    which, edge = which[named], edge[named]
    return Mentions(at[which], entity[which], facts.columns[edge].astype(np.int64))


async def unsaid(ctx: Context, rows: Ints, said: Mentions, known: Ints) -> Mentions:
    """Names that stand in the passages' texts but in none of their facts.

    Only where a model made the facts: it may have left out what rules would have seen.
    """
    view = ctx.view
    lacking = _left_to_read(view, rows)
    names = await _names_read(ctx, rows[lacking])
    at = np.repeat(lacking, [len(found) for found in names])
    entity = np.concatenate([*names, np.zeros(0, np.int64)]).astype(np.int64)
    there = said.at * view.count("entity") + said.entity
    new = ~np.isin(at * view.count("entity") + entity, there) & _leading_on(view, entity, known)
    return Mentions(at[new], entity[new], np.full(int(new.sum()), NO_FACT))


def _own_names(view: View, rows: Ints, found: Mentions) -> NDArray[np.bool_]:
    """Which mentions are other names of what the passage is about: they lead to namesakes only."""
    links, count = view.links("chunk_entity"), view.count("entity")
    at, edge = links.edges_of(rows)
    own = view.arrays["chunk_entity_about"][edge] >= _OWN
    return np.isin(found.at * count + found.entity, at[own] * count + links.columns[edge[own]])


def _leading_on(view: View, entity: Ints, known: Ints) -> NDArray[np.bool_]:
    """Whether entities are things, and other ones than the question's own."""
    return ~view.arrays["entity_literal"][entity] & ~np.isin(view.same[entity], known)


def _left_to_read(view: View, rows: Ints) -> Ints:
    """Places of the passages whose facts are all triples, or that have none."""
    links, relations = view.links("chunk_fact"), view.relations
    if not len(relations) or int(relations.max()) < 0:
        return np.zeros(0, np.int64)
    at, edge = links.edges_of(rows)
    sentences = np.bincount(at[relations[links.columns[edge]] < 0], minlength=len(rows))
    return np.flatnonzero(sentences == 0)


async def _names_read(ctx: Context, chunks: Ints) -> list[Ints]:
    """For each chunk the entities that its text names and that some chunk is about."""
    memo: dict[int, Ints] = ctx.view.memo.setdefault("names read", {})
    lacking = [at for at in chunks.tolist() if at not in memo]
    if lacking:
        keys = ctx.view.keys("chunk")
        held = await ctx.snapshot.chunks([int(keys[at]) for at in lacking])
        for at in lacking:
            memo[at] = _names_in(ctx.view, held[int(keys[at])].text)
    return [memo[at] for at in chunks.tolist()]


def _names_in(view: View, text: str) -> Ints:
    """Known names in a text: capitalised runs, or where a run is none, its longest known part."""
    t = tokens(text[: 8 * _MOST_TOKENS])
    runs = [run for run in capitalised(text, t, {0}) if run[0] < _MOST_TOKENS]
    spans = [span for first, last in runs for span in _spans(first, last)]
    keys = np.array([hash64(key_of(t, *span)) for span in spans], np.uint64)
    owned = view.links("owners").degrees()
    found: list[int] = []
    taken: set[int] = set()
    for (first, last), (entities, weights, parts) in zip(spans, view.bearers(keys), strict=True):
        good = entities[~parts & (weights >= 1)]
        good = good[owned[good] > 0]
        if len(good) and not taken & set(range(first, last)):
            taken |= set(range(first, last))
            found += good.tolist()
    return np.unique(np.array(found, np.int64))


def _spans(first: int, last: int) -> Sequence[tuple[int, int]]:
    """A run and its parts of two tokens and more, longest first."""
    longest = min(last - first, _PARTS)
    parts = [
        (begin, begin + size)
        for size in range(longest, 1, -1)
        for begin in range(first, last - size + 1)
    ]
    whole = (first, last)
    return [whole, *(part for part in parts if part != whole)]
