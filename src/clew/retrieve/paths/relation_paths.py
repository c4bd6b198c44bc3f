"""Searches relation paths, and turns the best of them into paths between entities or text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from clew.context import Context
from clew.graph.csr import Floats, Ints, isin_sorted
from clew.graph.paths import EntityPathTable, follow_codes
from clew.graph.traverse import (
    FactGraph,
    RelationPathTable,
    extend_relation_paths,
    stack_relation_paths,
    start_relation_paths,
)
from clew.retrieve.expand import subgraph_facts
from clew.retrieve.graph_cache import build_traversal
from clew.retrieve.labels import load_relation_texts
from clew.retrieve.path_scores import count_unsaid_relations
from clew.retrieve.question import QuestionShape, locate_names, parse_question
from clew.retrieve.rank import top_positions
from clew.retrieve.text_scores import PathScorer, PathScorerName, create_scorer
from clew.types import Found, Path

MAX_RELATION_PATHS = 2048  # relation paths of one length that are extended
_MAX_FURTHER = 64  # of the longest relation paths that are extended further than usual
_MAX_VOTING_PATHS = 16  # relation paths that vote for answers
_MIN_RELATIVE_CHANCE = 0.002  # chance relative to the best path's below which a path is ignored …
_MIN_PATHS = 8  # … once there are this many paths
ASKED_MARK = "asked"
"""How paths were found that the query scorer finds asked for."""
MAX_ASKED_ENDS = 28  # ends of the path that is asked for; other paths keep places behind them
_MAX_OTHERS = 4  # ends of each other relation path
_MIN_SECOND_CHANCE = 0.3  # of a path from a second name that says which ends are meant
_MAX_END_NAMES = 2  # entities at the end of a path that are named
_MAX_SENTENCE_CHARS = 160


class PathFilter(Protocol):
    """Decides which relation paths of one length stay, and whether to search on."""

    async def __call__(self, trails: RelationPathTable, /) -> tuple[Ints, bool]:
        """Return rows, best first, and True to go on."""
        ...


@dataclass(frozen=True, slots=True)
class PathSearchContext:
    """Input of a path step: the subgraph, the parsed question, and a scorer for both."""

    ways: FactGraph
    shape: QuestionShape
    scorer: PathScorer
    starts: Ints

    @property
    def may_return(self) -> bool:
        """Whether a relation there and back may be asked for: by a chain of two links or more."""
        return len(self.shape.chain) > 1


@dataclass(frozen=True, slots=True)
class ScoredRelationPaths:
    """Relation paths of all lengths, with a score for each."""

    by_length: tuple[RelationPathTable, ...]
    codes: Ints
    length_index: Ints
    row: Ints
    scores: Floats
    chances: Floats | None = None
    """Where the query scorer decides: its probability of each, -1 where it was not asked."""
    absent: float = -1.0
    """How probable it is that a path is asked for that is absent; -1 where that was not asked."""
    allowed: tuple[frozenset[int] | None, ...] = ()
    """What may stand at each place of the best path; None for anything, empty for no bounds."""
    alike: tuple[int, ...] = ()
    """Rows of other paths that say the same as the best one."""
    shared: frozenset[int] = frozenset()
    """Which ends of these are meant, as another name leads to them as well; empty for no bounds."""

    def end_entities(self, at: int) -> Ints:
        """Return the entities one of them leads to."""
        part = self.by_length[int(self.length_index[at])]
        return part.ends_of(int(self.row[at]))

    def list_places(self) -> list[tuple[RelationPathTable, int]]:
        """Return for each of them the table of its length, and its row there."""
        places = zip(self.length_index.tolist(), self.row.tolist(), strict=True)
        return [(self.by_length[length], row) for length, row in places]

    def origin(self, at: int) -> int:
        """Return the entity one of them starts at."""
        return int(self.by_length[self.length_index[at]].origin[self.row[at]])

    def step_codes(self, at: int) -> Ints:
        """Return the step codes of one of them."""
        codes: Ints = self.codes[at]
        taken: Ints = codes[codes >= 0]
        return taken

    def append(self, more: RelationPathTable, chances: Floats) -> "ScoredRelationPaths":
        """Return the paths with others of one length, which come last."""
        parts = (*self.by_length, more)
        codes, part, row = stack_relation_paths(list(parts))
        last = np.full(len(more), self.scores[np.isfinite(self.scores)].min(initial=0.0))
        known = None if self.chances is None else np.append(self.chances, chances)
        return replace(
            self,
            by_length=parts,
            codes=codes,
            length_index=part,
            row=row,
            scores=np.append(self.scores, last).astype(np.float32),
            chances=None if known is None else known.astype(np.float32),
        )

    def rank(self) -> Ints:
        """Return rows best first; of equals the shorter, then smaller codes; no ruled-out ones."""
        hops = (self.codes >= 0).sum(axis=1)
        ranked: Ints = np.lexsort((np.arange(len(hops)), hops, -self.scores))
        left: Ints = ranked[np.isfinite(self.scores[ranked])]
        return left


def prepare_search(
    ctx: Context, found: Found, scorer: PathScorerName = "clew"
) -> PathSearchContext:
    """Prepare the search for paths from the linked entities within the subgraph found."""
    traversal = build_traversal(ctx.view, subgraph_facts(found))
    shape = parse_question(ctx.question, locate_names(ctx.question, found.names))
    starts = np.array(sorted({hit.at for hit in found.entities}), np.int64)
    return PathSearchContext(traversal, shape, create_scorer(ctx, traversal, shape, scorer), starts)


async def search_relation_paths(
    search: PathSearchContext, hops: int, keep: PathFilter
) -> ScoredRelationPaths:
    """Extend relation paths up to `hops` steps; `keep` filters them after each."""
    frontier = start_relation_paths(search.starts)
    parts: list[RelationPathTable] = []
    onward = True
    while onward and len(parts) < hops:
        frontier = extend_relation_paths(search.ways, frontier, returns=search.may_return)
        if not len(frontier):
            break
        rows, onward = await keep(frontier)
        frontier = frontier.select(rows)
        parts.append(frontier)
    return await _score_parts(search, parts)


async def _score_parts(
    search: PathSearchContext, parts: list[RelationPathTable]
) -> ScoredRelationPaths:
    codes, part, row = stack_relation_paths(parts)
    scores = await search.scorer.score_paths(codes) if len(codes) else np.zeros(0, np.float32)
    return ScoredRelationPaths(tuple(parts), codes, part, row, scores)


async def add_longer_paths(
    search: PathSearchContext, found: ScoredRelationPaths, longer: RelationPathTable
) -> ScoredRelationPaths:
    """Return the paths with others that are one step longer."""
    parts = [*found.by_length, longer]
    codes, part, row = stack_relation_paths(parts)
    scores = np.concatenate([found.scores, await search.scorer.score_paths(longer.codes)])
    return ScoredRelationPaths(tuple(parts), codes, part, row, scores)


async def search_further(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths, hops: int
) -> ScoredRelationPaths:
    """Extend the longest paths, up to `hops` steps, while the best does not take all it should.

    What it should take are the relations that words of the question name.
    """
    while 0 < len(found.by_length) < hops:
        best = found.rank()[:1].tolist()
        codes = found.step_codes(best[0]) if best else np.zeros(0, np.int64)
        if not await count_unsaid_relations(ctx, search.ways, search.shape, codes):
            break
        last = found.by_length[-1]
        fit = await search.scorer.score_paths(last.codes, whole=False)
        rows = top_positions(fit, np.arange(len(fit)), _MAX_FURTHER)
        longer = extend_relation_paths(search.ways, last.select(rows), returns=search.may_return)
        if not len(longer):
            break
        found = await _score_parts(search, [*found.by_length, longer])
    return found


@dataclass(frozen=True)
class KeepAllPaths:
    """Keeps every relation path; of very many, those whose steps fit the question best."""

    scorer: PathScorer

    async def __call__(self, trails: RelationPathTable, /) -> tuple[Ints, bool]:
        """Return rows in order."""
        if len(trails) <= MAX_RELATION_PATHS:
            return np.arange(len(trails)), True
        fit = (await self.scorer.score_steps(trails.codes)).mean(axis=1)
        return np.sort(top_positions(fit, np.arange(len(fit)), MAX_RELATION_PATHS)), True


@dataclass(frozen=True, slots=True)
class AnswerCandidates:
    """Entities that relation paths lead to, ascending, and each one's probability."""

    entities: Ints
    chances: Floats

    def chances_of(self, entities: Ints) -> Floats:
        """Return the probability of each entity; 0 for others."""
        if not len(self.entities):
            return np.zeros(len(entities), np.float32)
        at = np.minimum(np.searchsorted(self.entities, entities), len(self.entities) - 1)
        chances: Floats = np.where(self.entities[at] == entities, self.chances[at], 0)
        return chances


def score_answers(found: ScoredRelationPaths) -> AnswerCandidates:
    """Score answer entities: the sum of the probabilities of the paths that lead to them."""
    order = found.rank()[:_MAX_VOTING_PATHS].tolist()
    if not order:
        return AnswerCandidates(np.zeros(0, np.int64), np.zeros(0, np.float32))
    chance = np.exp(found.scores[order] - found.scores[order[0]])
    ends = [found.end_entities(at) for at in order]
    # A way that leads only back to its start answers nothing, unless it is what was asked for.
    for place, at in enumerate(order):
        chance[place] *= not (place and ends[place].tolist() == [found.origin(at)])
    weight = np.repeat(chance / chance.sum(), [len(one) for one in ends])
    entities, which = np.unique(np.concatenate(ends), return_inverse=True)
    return AnswerCandidates(entities, np.bincount(which, weight).astype(np.float32))


def select_best_paths(
    search: PathSearchContext, scored: ScoredRelationPaths, top_k: int, by: str
) -> tuple[Path, ...]:
    """Return the `top_k` best paths: to each likely answer its best one, then alternatives."""
    if scored.chances is not None:
        return _select_asked_paths(search, scored, top_k, by)
    answers = score_answers(scored)
    # Of equals, the entities that the question names come last.
    named = np.isin(answers.entities, search.starts)
    likely = answers.entities[np.lexsort((answers.entities, named, -answers.chances))[:top_k]]
    wanted = np.sort(likely)
    first: dict[int, Path] = {}
    more: list[Path] = []
    order = scored.rank()[:_MAX_VOTING_PATHS].tolist()
    for at in order:
        negligible = np.exp(scored.scores[at] - scored.scores[order[0]]) < _MIN_RELATIVE_CHANCE
        if len(first) == len(wanted) or (negligible and len(first) >= _MIN_PATHS):
            break
        routes = follow_codes(search.ways, scored.origin(at), scored.step_codes(at))
        routes = routes.select(
            np.flatnonzero(isin_sorted(routes.entities[:, -1], wanted))[: 4 * top_k]
        )
        for path in _to_paths(routes, answers, by):
            if path.entities[-1] in first:
                more.append(path)
            else:
                first[path.entities[-1]] = path
    ranked = [first[end] for end in likely.tolist() if end in first]
    more.sort(key=lambda path: -path.score)
    return tuple([*ranked, *more][:top_k])


def _select_asked_paths(
    search: PathSearchContext, scored: ScoredRelationPaths, top_k: int, by: str
) -> tuple[Path, ...]:
    """Return the paths to all ends of the best relation path, then to those of the next ones.

    Of two names that lead to the same, what both lead to is meant.
    """
    order = scored.rank()[:_MAX_VOTING_PATHS].tolist()
    same = scored.alike
    order = [*order[:1], *same, *(at for at in order[1:] if at not in same)]
    chances = scored.chances if scored.chances is not None else scored.scores
    share = np.exp(scored.scores[order] - scored.scores[order[:1]])
    share /= max(float(share.sum()), 1e-9)
    united = _unite_ends(scored, [*order[:1], *same])
    meant = set(scored.shared) or _find_common_ends(scored, order, united)
    narrowed = len(meant) < len(united)
    found: dict[int, Path] = {}
    for place, at in enumerate(order):
        routes = follow_codes(search.ways, scored.origin(at), scored.step_codes(at))
        routes = routes if search.may_return else drop_returning(routes)
        if not place and scored.allowed:
            fitting = _keep_allowed(routes, scored.allowed)
            narrowed |= len(fitting) < len(routes)
            routes = fitting
            ends = set(routes.entities[:, -1].tolist())
            meant = (ends & meant) or ends
        if not place:  # first those that other likely paths lead to as well
            voted = score_answers(scored).chances_of(routes.entities[:, -1])
            routes = routes.select(np.argsort(-voted, kind="stable"))
        asked = not place or at in same
        most = MAX_ASKED_ENDS if asked else len(found) + _MAX_OTHERS
        rows = zip(routes.entities.tolist(), routes.facts.tolist(), strict=True)
        for entities, facts in rows:
            if len(found) >= most:
                break
            if entities[-1] in found or (asked and meant and entities[-1] not in meant):
                continue
            made_by = ASKED_MARK if asked else by
            path = Path(tuple(entities), tuple(facts), float(share[place]), made_by)
            some = 0 if place or not narrowed else len(meant)
            path = replace(path, asked=float(chances[at]), absent=scored.absent, meant=some)
            found[entities[-1]] = path
    return tuple(found.values())[:top_k]


def _keep_allowed(
    routes: EntityPathTable, allowed: Sequence[frozenset[int] | None]
) -> EntityPathTable:
    """Return the routes that pass only what may stand at each place."""
    kept = np.ones(len(routes), np.bool_)
    for place, some in enumerate(allowed):
        if some is not None:
            kept &= np.isin(routes.entities[:, place], sorted(some))
    return routes.select(np.flatnonzero(kept))


def _unite_ends(scored: ScoredRelationPaths, rows: Sequence[int]) -> set[int]:
    """Return the ends of some paths."""
    return {end for row in rows for end in scored.end_entities(row).tolist()}


def _find_common_ends(
    scored: ScoredRelationPaths, order: Sequence[int], united: set[int]
) -> set[int]:
    """Return which ends of the best path the best ones from other names lead to as well."""
    if scored.chances is None or not order:
        return set()
    common = united
    for origin in {scored.origin(at) for at in order} - {scored.origin(order[0])}:
        likely = [
            set(scored.end_entities(at).tolist()) & common
            for at in order
            if scored.origin(at) == origin and scored.chances[at] >= _MIN_SECOND_CHANCE
        ]
        common = next((some for some in likely if some), common)
    return common


def drop_returning(routes: EntityPathTable) -> EntityPathTable:
    """Return the routes that take no fact twice.

    They may pass a name again by another fact: who wrote a film may have directed it as well.
    """
    ordered = np.sort(routes.facts, axis=1)
    return routes.select(np.flatnonzero((np.diff(ordered, axis=1) != 0).all(axis=1)))


def _to_paths(routes: EntityPathTable, answers: AnswerCandidates, by: str) -> list[Path]:
    chances = answers.chances_of(routes.entities[:, -1])
    rows = zip(routes.entities.tolist(), routes.facts.tolist(), chances.tolist(), strict=True)
    return [Path(tuple(entities), tuple(facts), score, by) for entities, facts, score in rows]


async def describe_paths(
    ctx: Context, on: PathSearchContext, found: ScoredRelationPaths, rows: Sequence[int]
) -> list[str]:
    """Describe each path: start, relations with arrows for direction, and end entities."""
    words = await load_relation_texts(ctx)
    keys = ctx.view.keys("entity")
    ends = {at: found.end_entities(at) for at in rows}
    wanted = {found.origin(at) for at in rows}
    wanted |= {int(end) for some in ends.values() for end in some[:_MAX_END_NAMES]}
    entities = await ctx.snapshot.entities([int(keys[at]) for at in sorted(wanted)])
    facts = [int(f) for at in rows for f in on.ways.fact_of_code(found.step_codes(at)) if f >= 0]
    fact_keys = ctx.view.keys("fact")
    fact_at = await ctx.snapshot.facts([int(fact_keys[at]) for at in dict.fromkeys(facts)])

    def step(code: int) -> str:
        if code >> 1 < on.ways.relation_count:
            label = words[code >> 1]
            return f"← {label} —" if code % 2 else f"— {label} →"
        fact = fact_at[int(fact_keys[(code >> 1) - on.ways.relation_count])]
        return f"— {fact.text[:_MAX_SENTENCE_CHARS]} —"

    texts = []
    for at in rows:
        names = [entities[int(keys[end])].name for end in ends[at][:_MAX_END_NAMES].tolist()]
        more = len(ends[at]) - len(names)
        last = ", ".join(names) + (f" and {more} more" if more > 0 else "")
        steps = " · ".join(step(code) for code in found.step_codes(at).tolist())
        texts.append(f"{entities[int(keys[found.origin(at)])].name} {steps} {last}")
    return texts
