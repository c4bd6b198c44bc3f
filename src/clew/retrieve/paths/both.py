"""What two paths share, each from another name of a question.

"Who lives in Tarn and works in glass" asks for the ends of two paths that are reached by both: said
to the query scorer as one query, beside the paths that account for one name alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from clew.context import Context
from clew.graph.paths import EntityPathTable, follow_codes
from clew.graph.traverse import extend_relation_paths, start_relation_paths
from clew.retrieve.asked_form import read_form
from clew.retrieve.pack import fetch_entity_labels
from clew.retrieve.paths.judged import score_shared, to_odds
from clew.retrieve.paths.relation_paths import PathSearchContext, ScoredRelationPaths
from clew.retrieve.question import QUESTION_WORDS
from clew.text.names import name_key

_LEAST_PART = 0.005  # chance of a path that may be one of two
_MOST_PLAIN = 4  # things that a question calls by plain words
_MOST_WORDS = 3  # of each
_PARTS = 5  # paths from a name, the likeliest first
_NAMES = 3  # names, those with the likeliest paths first
_MOST_PAIRS = 24
_LEAST_CHANCE = 0.5
_MOST_BEHIND = 2.0  # log odds by which it may be less likely than a path alone
_SURE_CHANCE = 0.9  # of other pairs whose ends are told as well


@dataclass(frozen=True)
class Pair:
    """Two relation paths from different names, by their rows, and the ends of both."""

    first: int
    second: int
    ends: frozenset[int]


async def find_both(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths, names: Sequence[str]
) -> ScoredRelationPaths:
    """Put a path first whose ends another name leads to as well, where both are asked for."""
    form, order = read_form(ctx.question, names), found.rank().tolist()
    if found.chances is None or found.allowed or not order or form.wants == "check":
        return found
    if len(names) > _NAMES:  # a question that lists many is asked about each alone
        return found
    grown = _add_plain_words(ctx, search, found, names)
    pairs = sorted(await _list_pairs(ctx, grown), key=lambda pair: -_weigh(grown, pair))
    pairs = pairs[:_MOST_PAIRS]
    if not pairs:
        return found
    said = [
        (_follow(search, grown, one.first, one.ends), _follow(search, grown, one.second, one.ends))
        for one in pairs
    ]
    chances = await score_shared(ctx, form.questions, said)
    best = int(chances.argmax())
    chance, alone = float(chances[best]), float(found.chances[order[0]])
    if chance < _LEAST_CHANCE or to_odds(chance) < to_odds(alone) - _MOST_BEHIND:
        return found
    if pairs[best].first >= len(found.scores):
        return found
    starts = found.origin(pairs[best].first)
    sure = [
        pair
        for pair, own in zip(pairs, chances.tolist(), strict=True)
        if own >= _SURE_CHANCE
        and pair.first < len(found.scores)
        and found.origin(pair.first) == starts
    ]
    return _put_first(found, [pairs[best], *sure], chance)


def _add_plain_words(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths, names: Sequence[str]
) -> ScoredRelationPaths:
    """Return the paths with the steps from what a question calls by plain words: a trade, a genre.

    They may say which ends of another name's path are meant; alone nothing is asked about them.
    """
    words = name_key(_leave_out(ctx.question, names)).split()
    spans = [
        words[at : at + size] for size in range(1, _MOST_WORDS + 1) for at in range(len(words))
    ]
    keys = {" ".join(span) for span in spans if not QUESTION_WORDS.issuperset(span)}
    known = [ctx.view.find_by_name_or_alias(key).tolist() for key in sorted(keys)]
    linked = {found.origin(row) for row in found.rank().tolist()}
    starts = sorted({at for some in known for at in some} - linked)[:_MOST_PLAIN]
    if not starts:
        return found
    steps = extend_relation_paths(search.ways, start_relation_paths(np.array(starts, np.int64)))
    return found.append(steps, np.full(len(steps), _LEAST_PART, np.float32))


def _leave_out(question: str, names: Sequence[str]) -> str:
    """Return a question without some names."""
    for name in sorted(names, key=len, reverse=True):
        question = question.replace(name, " ")
    return question


async def _list_pairs(ctx: Context, found: ScoredRelationPaths) -> list[Pair]:
    """Return the pairs of likely paths from two names that share ends."""
    assert found.chances is not None, "only paths that were judged are compared"
    chances, by_start = found.chances, dict[int, list[int]]()
    rows = np.flatnonzero(chances >= _LEAST_PART).tolist()
    for row in sorted(rows, key=lambda row: (-chances[row], -found.scores[row])):
        by_start.setdefault(found.origin(row), []).append(row)
    labels = await fetch_entity_labels(ctx, sorted(by_start))
    starts = list(by_start)[: _NAMES + _MOST_PLAIN]
    pairs = [
        (one, other)
        for one, other in combinations(starts, 2)
        if name_key(labels[one].name) != name_key(labels[other].name)
    ]
    return [pair for one, other in pairs for pair in _share(found, by_start, one, other)]


def _share(
    found: ScoredRelationPaths, by_start: dict[int, list[int]], one: int, other: int
) -> Iterator[Pair]:
    for first, second in product(by_start[one][:_PARTS], by_start[other][:_PARTS]):
        own, others = found.end_entities(first), found.end_entities(second)
        ends = frozenset(np.intersect1d(own, others).tolist()) - {one, other}
        if ends:
            yield Pair(first, second, ends)


def _weigh(found: ScoredRelationPaths, pair: Pair) -> float:
    assert found.chances is not None, "only paths that were judged are compared"
    return sum(to_odds(float(found.chances[row])) for row in (pair.first, pair.second))


def _follow(
    search: PathSearchContext, found: ScoredRelationPaths, row: int, ends: frozenset[int]
) -> EntityPathTable:
    """Return the routes of a path that lead to some of its ends."""
    routes = follow_codes(search.ways, found.origin(row), found.step_codes(row))
    return routes.select(np.flatnonzero(np.isin(routes.entities[:, -1], sorted(ends))))


def _put_first(
    found: ScoredRelationPaths, pairs: Sequence[Pair], chance: float
) -> ScoredRelationPaths:
    """Put the first path of the best pair first, with what all the pairs share."""
    assert found.chances is not None, "only paths that were judged are compared"
    row, scores, chances = pairs[0].first, found.scores.copy(), found.chances.copy()
    scores[row], chances[row] = scores[np.isfinite(scores)].max() + 1, chance
    seconds = [pair.second for pair in pairs if pair.second < len(chances)]
    chances[seconds] = -1  # what says the other half is no rival
    alike = dict.fromkeys(pair.first for pair in pairs if pair.first != row)
    shared = frozenset().union(*(pair.ends for pair in pairs))
    return replace(found, scores=scores, chances=chances, alike=tuple(alike), shared=shared)
