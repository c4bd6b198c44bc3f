"""Relation paths that say the same: a graph may hold a relation and its inverse, each in part.

Whom a film was "directed by" and a director's "film" are one relation to whoever asks for the films
that somebody directed: the ends of both are told and counted, each once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.context import Context
from clew.retrieve.claim_sides import find_head, read_end
from clew.retrieve.graph_cache import build_traversal
from clew.retrieve.paths.absent import StepsOfLike
from clew.retrieve.paths.judged import to_odds
from clew.retrieve.paths.relation_paths import ScoredRelationPaths
from clew.retrieve.relation_vectors import find_converse, load_short_texts

_LEAST_CHANCE = 0.5  # of a path that says the same as the best one
_SURE_CHANCE = 0.95
_MOST_BEHIND = 2.0  # log odds by which it may be less likely
_LOOKED_AT = 8  # ends whose relations tell of which kind the ends are
_MOST_ALIKE = 4


async def find_alike(ctx: Context, found: ScoredRelationPaths) -> ScoredRelationPaths:
    """Mark the single steps that are asked for as well as the best one, and say the same."""
    order = found.rank().tolist()
    if found.chances is None or found.allowed or not order:
        return found
    first = order[0]
    odds = to_odds(float(found.chances[first])) - _MOST_BEHIND
    likely = [
        row
        for row in order
        if found.chances[row] >= _LEAST_CHANCE
        and to_odds(float(found.chances[row])) >= odds
        and found.origin(row) == found.origin(first)
        and len(found.step_codes(row)) == 1
    ]
    if likely[:1] != [first] or len(likely) == 1:
        return found
    best = await BestStep.create(ctx, found, first)
    alike = [
        row
        for row in likely[1:]
        if await best.is_said_by(
            int(found.step_codes(row)[0]),
            found.end_entities(row).tolist(),
            is_sure=min(found.chances[row], found.chances[first]) >= _SURE_CHANCE,
        )
    ]
    return replace(found, alike=tuple(alike[:_MOST_ALIKE]))


@dataclass(frozen=True)
class BestStep:
    """The step that a question asks for, and the steps of things like those it leads to."""

    ctx: Context
    code: int
    labels: Sequence[str]
    ends: frozenset[int]
    beyond: frozenset[int]

    @classmethod
    async def create(cls, ctx: Context, found: ScoredRelationPaths, row: int) -> "BestStep":
        """Look up what things like the ends of a step have."""
        like = StepsOfLike(ctx, build_traversal(ctx.view))
        ends: list[int] = found.end_entities(row).tolist()
        beyond = frozenset(step for end in ends[:_LOOKED_AT] for step in like.find_likely(end))
        code, labels = int(found.step_codes(row)[0]), await load_short_texts(ctx)
        return cls(ctx, code, labels, frozenset(ends), beyond)

    async def is_said_by(self, code: int, ends: Sequence[int], is_sure: bool) -> bool:
        """Whether another step has the same word or some of the same ends, at the same side.

        Which side that is need be told only where the best step could be gone the other way.
        Of two steps that are surely asked for, the ends need only be of one kind.
        """
        if code == self.code ^ 1:
            return False
        own, label = read_end(self.labels[self.code >> 1], self.code), self.labels[code >> 1]
        same = own.says(label) or bool(find_converse(own.words, label))
        if not same and not is_sure and self.ends.isdisjoint(ends):
            return False
        head = await find_head(self.ctx, own, label)
        if head:
            return head == "either" or (head == "first") == bool(code % 2)
        return code ^ 1 in self.beyond and self.code not in self.beyond
