"""Entity mentions of passages: what they mention, and what mentions their subjects."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.graph.csr import Floats, Ints, Mask, isin_sorted
from clew.index.view import View
from clew.retrieve.question import span_key
from clew.text.name_spans import find_capitalised_runs
from clew.text.names import tokenize
from clew.text.unicode import hash64

NO_FACT = -1
SURE_CLAIM = 0.84  # a passage with at least this claim to a name is about it
OWN_NAME_CLAIM = 0.45  # with at least this claim a name is the passage's own
_MAX_TOKENS = 600  # of a passage that are searched for names
_MAX_PART_TOKENS = 6  # tokens of the longest part of a run that is looked up separately


@dataclass(frozen=True, slots=True)
class Mentions:
    """Columns: index of the passage among the rows asked for, the entity, the mentioning fact."""

    row: Ints
    entity: Ints
    fact: Ints

    def __add__(self, other: "Mentions") -> "Mentions":
        """Concatenate."""
        if not len(other):
            return self
        return Mentions(
            np.concatenate([self.row, other.row]),
            np.concatenate([self.entity, other.entity]),
            np.concatenate([self.fact, other.fact]),
        )

    def __len__(self) -> int:
        """Return the number of mentions."""
        return len(self.row)

    def select(self, keep: Mask) -> "Mentions":
        """Return those where the mask is true."""
        return Mentions(self.row[keep], self.entity[keep], self.fact[keep])


@dataclass(frozen=True, slots=True)
class WalkHop:
    """One hop: the weight that reached each chunk, and the mention it came through."""

    chunks: Ints
    """All that it may have reached, some several times; the weight of others is 0."""
    weight: Floats
    via: NDArray[np.int32]
    """Of a chunk that was not reached it says nothing."""
    entity: Ints
    fact: Ints
    origin: Ints
    """Per mention: what is mentioned, the fact that mentions it, the chunk the fact is in."""


def find_mentions(view: View, rows: Ints, known: Ints) -> Mentions:
    """Return what the facts of some passages mention, without the names in `known`.

    Other names of a passage's subject lead to namesakes only: they are left out, too.
    """
    return Mentions(*view.walk_edges.find_mentions(rows, known, OWN_NAME_CLAIM))


async def find_names_without_fact(
    ctx: Context, rows: Ints, stated: Mentions, known: Ints
) -> Mentions:
    """Return names that occur in the passages' texts but in none of their facts.

    Only where a model made the facts: it may have left out what rules would have found.
    """
    view = ctx.view
    unread = _passages_without_sentences(view, rows)
    if not len(unread):
        none = np.zeros(0, np.int64)
        return Mentions(none, none, none)
    names = await _names_in_chunks(ctx, rows[unread])
    at = np.repeat(unread, [len(found) for found in names])
    entity = np.concatenate([*names, np.zeros(0, np.int64)]).astype(np.int64)
    there = stated.row * view.count("entity") + stated.entity
    new = ~np.isin(at * view.count("entity") + entity, there) & is_followable(view, entity, known)
    return Mentions(at[new], entity[new], np.full(int(new.sum()), NO_FACT))


def is_followable(view: View, entity: Ints, known: Ints) -> Mask:
    """Mark entities that are no literals and are not among the question's own, ascending."""
    own = isin_sorted(view.first_namesake[entity], known)
    followable: Mask = ~view.arrays["entity_literal"][entity] & ~own
    return followable


def _passages_without_sentences(view: View, rows: Ints) -> Ints:
    """Return the indices of passages whose facts are all triples, or that have none."""
    links, relations = view.links("chunk_fact"), view.relations
    if not view.has_relations:
        return np.zeros(0, np.int64)
    at, edge = links.edges_of(rows)
    sentences = np.bincount(at[relations[links.columns[edge]] < 0], minlength=len(rows))
    return np.flatnonzero(sentences == 0)


async def _names_in_chunks(ctx: Context, chunks: Ints) -> list[Ints]:
    """Return for each chunk the entities its text names and some chunk is about; cached."""
    memo: dict[int, Ints] = ctx.view.memo.setdefault("names read", {})
    missing = [at for at in chunks.tolist() if at not in memo]
    if missing:
        keys = ctx.view.keys("chunk")
        fetched = await ctx.snapshot.chunks([int(keys[at]) for at in missing])
        for at in missing:
            memo[at] = _find_names(ctx.view, fetched[int(keys[at])].text)
    return [memo[at] for at in chunks.tolist()]


def _find_names(view: View, text: str) -> Ints:
    """Return known names in a text: capitalised runs, or else their longest known parts."""
    t = tokenize(text[: 8 * _MAX_TOKENS])
    runs = [run for run in find_capitalised_runs(text, t, {0}) if run[0] < _MAX_TOKENS]
    spans = [span for first, last in runs for span in _candidate_spans(first, last)]
    keys = np.array([hash64(span_key(t, *span)) for span in spans], np.uint64)
    owned = view.links("owners").degrees()
    found: list[int] = []
    taken: set[int] = set()
    for (first, last), (entities, weights, parts) in zip(
        spans, view.find_by_name_hash(keys), strict=True
    ):
        good = entities[~parts & (weights >= 1)]
        good = good[owned[good] > 0]
        if len(good) and not taken & set(range(first, last)):
            taken |= set(range(first, last))
            found += good.tolist()
    return np.unique(np.array(found, np.int64))


def _candidate_spans(first: int, last: int) -> Sequence[tuple[int, int]]:
    """Return a run and its parts of two tokens and more, longest first."""
    longest = min(last - first, _MAX_PART_TOKENS)
    parts = [
        (begin, begin + size)
        for size in range(longest, 1, -1)
        for begin in range(first, last - size + 1)
    ]
    run = (first, last)
    return [run, *(part for part in parts if part != run)]
