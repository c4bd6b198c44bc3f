"""Relation paths that say the same: a graph may hold a relation and its inverse, each in part.

Whom a film was "directed by" and a director's "film" are one relation to whoever asks for the films
that somebody directed: the ends of both are told and counted, each once. So are those of chains
that take one or the other at each step, and of a relation that holds both ways in either direction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.graph.csr import Ints
from clew.graph.paths import follow_codes
from clew.graph.traverse import RelationPathTable, extend_relation_paths, start_relation_paths
from clew.retrieve.asked_form import read_form
from clew.retrieve.claim_sides import find_head, read_end
from clew.retrieve.graph_cache import build_traversal
from clew.retrieve.mutual import is_mutual
from clew.retrieve.pack import fetch_entity_labels
from clew.retrieve.paths.absent import StepsOfLike
from clew.retrieve.paths.judged import score_paths, to_odds
from clew.retrieve.paths.relation_paths import PathSearchContext, ScoredRelationPaths
from clew.retrieve.relation_vectors import find_converse, load_short_texts

_LEAST_CHANCE = 0.5  # of a path that says the same as the best one
_LEAST_SAID = 0.2  # of a path that has the same words: "keeper of" and "kept by"
_SURE_CHANCE = 0.95
_MOST_BEHIND = 2.0  # log odds by which it may be less likely
_LOOKED_AT = 8  # ends whose relations tell of which kind the ends are
_SHOWN_ROUTES = 64  # routes of one path that its ends are taken from
_MOST_CHAINS = 16  # paths of a length that are compared with the best one
_MOST_ALIKE = 8


async def find_alike(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths, names: Sequence[str]
) -> ScoredRelationPaths:
    """Mark the paths that are asked for as well as the best one, and say the same step by step."""
    order = found.rank().tolist()
    if found.chances is None or found.allowed or found.shared or not order:
        return found
    first = order[0]
    if found.chances[first] < _LEAST_CHANCE:
        return found
    best = await BestPath.create(ctx, search, found, first)
    chains = await best.list_chains()
    found, rows = await _add_scored(ctx, search, found, chains, names)
    assert found.chances is not None, "only paths that were judged have others like them"
    least = to_odds(float(found.chances[first])) - _MOST_BEHIND
    alike = []
    for row in sorted(rows, key=lambda row: -float(found.scores[row])):
        chance = float(found.chances[row])
        codes = found.step_codes(row)
        if row != first and await best.is_mirrored_by(codes):
            alike.append(row)
        if row == first or row in alike or chance < _LEAST_SAID:
            continue
        is_likely = chance >= _LEAST_CHANCE and to_odds(chance) >= least
        is_sure = min(chance, float(found.chances[first])) >= _SURE_CHANCE
        if best.has_words_of(codes) or is_likely and (is_sure or best.is_said_by(codes)):
            alike.append(row)
    return replace(found, alike=tuple(alike[:_MOST_ALIKE]))


async def _add_scored(
    ctx: Context,
    search: PathSearchContext,
    found: ScoredRelationPaths,
    chains: RelationPathTable,
    names: Sequence[str],
) -> tuple[ScoredRelationPaths, list[int]]:
    """Return the paths with those of some chains that were not scored, and the rows of them all."""
    assert found.chances is not None, "only paths that were judged have others like them"
    known = {
        (found.origin(row), *found.step_codes(row).tolist()): row
        for row in np.flatnonzero(found.chances >= 0).tolist()
    }
    keys = [
        (int(start), *codes)
        for start, codes in zip(chains.origin, chains.codes.tolist(), strict=True)
    ]
    new = [at for at, key in enumerate(keys) if key not in known]
    rows = [known[key] for key in keys if key in known]
    if not new:
        return found, rows
    start = int(chains.origin[0])
    label = (await fetch_entity_labels(ctx, [start]))[start]
    routes = [follow_codes(search.ways, start, chains.codes[at], _SHOWN_ROUTES) for at in new]
    questions = read_form(ctx.question, names).ask_about(label.name)
    chances = await score_paths(ctx, questions, routes, returns=search.may_return)
    first = len(found.scores)
    grown = found.append(chains.select(np.array(new, np.int64)), chances)
    return grown, [*rows, *range(first, first + len(new))]


@dataclass(frozen=True)
class BestStep:
    """A step of what a question asks for, and the steps of things like those it leads to."""

    ctx: Context
    code: int
    labels: Sequence[str]
    ends: frozenset[int]
    beyond: frozenset[int]

    async def may_be_said_by(self, code: int) -> bool:
        """Whether another step ends at the same side.

        Which side that is need be told only where the best step could be gone the other way.
        """
        if code >> 1 >= len(self.labels):
            return False
        own, label = read_end(self.labels[self.code >> 1], self.code), self.labels[code >> 1]
        head = await find_head(self.ctx, own, label)
        if head == "either" or code == self.code ^ 1:
            return head == "either"
        if head:
            return (head == "first") == bool(code % 2)
        return code ^ 1 in self.beyond and self.code not in self.beyond

    def has_word_of(self, code: int) -> bool:
        """Whether another step has the same word, or the word for its other end."""
        own, label = read_end(self.labels[self.code >> 1], self.code), self.labels[code >> 1]
        return own.says(label) or bool(find_converse(own.words, label))


@dataclass(frozen=True)
class BestPath:
    """The path that a question asks for, step by step."""

    search: PathSearchContext
    start: int
    steps: tuple[BestStep, ...]

    @classmethod
    async def create(
        cls, ctx: Context, search: PathSearchContext, found: ScoredRelationPaths, row: int
    ) -> "BestPath":
        """Look up what things like those on a path have."""
        like, labels = StepsOfLike(ctx, build_traversal(ctx.view)), await load_short_texts(ctx)
        start, codes = found.origin(row), found.step_codes(row)
        routes = follow_codes(search.ways, start, codes, _SHOWN_ROUTES)
        steps = []
        for place, code in enumerate(codes.tolist(), 1):
            ends = list(dict.fromkeys(routes.entities[:, place].tolist()))
            beyond = {step for end in ends[:_LOOKED_AT] for step in like.find_likely(end)}
            steps.append(BestStep(ctx, code, labels, frozenset(ends), frozenset(beyond)))
        return cls(search, start, tuple(steps))

    async def list_chains(self) -> RelationPathTable:
        """Return the paths of the same length whose steps end at the same sides, itself first."""
        front = start_relation_paths(np.array([self.start], np.int64))
        for step in self.steps:
            front = extend_relation_paths(self.search.ways, front, returns=self.search.may_return)
            last = front.codes[:, -1].tolist()
            fitting = {
                code for code in set(last) if code == step.code or await step.may_be_said_by(code)
            }
            rows = [at for at, code in enumerate(last) if code in fitting]
            rows.sort(key=lambda at: self._count_changed(front.codes[at]))
            front = front.select(np.array(rows[:_MOST_CHAINS], np.int64))
        return front

    def _count_changed(self, codes: Ints) -> int:
        return sum(step.code != code for step, code in zip(self.steps, codes, strict=False))

    def has_words_of(self, codes: Ints) -> bool:
        """Whether each step of another path is the same, or has its word for the way back."""
        pairs = zip(self.steps, codes.tolist(), strict=True)
        return all(
            step.code == code or (step.code ^ code) % 2 and step.has_word_of(code)
            for step, code in pairs
        )

    async def is_mirrored_by(self, codes: Ints) -> bool:
        """Whether another path differs only in the direction of relations that hold both ways."""
        pairs = list(zip(self.steps, codes.tolist(), strict=True))
        return all(step.code >> 1 == code >> 1 for step, code in pairs) and all(
            [
                await is_mutual(step.ctx, step.labels[code >> 1])
                for step, code in pairs
                if step.code != code
            ]
        )

    def is_said_by(self, codes: Ints) -> bool:
        """Whether each step of another path has the same word, or some of the same ends.

        Of two paths that are surely asked for, the ends need only be of one kind.
        """
        routes = follow_codes(self.search.ways, self.start, codes, _SHOWN_ROUTES)
        return all(
            step.code == code
            or step.has_word_of(code)
            or not step.ends.isdisjoint(routes.entities[:, place].tolist())
            for place, (step, code) in enumerate(zip(self.steps, codes.tolist(), strict=True), 1)
        )
