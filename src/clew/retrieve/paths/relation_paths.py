"""Searches relation paths, and turns the best of them into paths between entities or text."""

from collections.abc import Sequence
from dataclasses import dataclass
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
from clew.retrieve.rank import top_positions
from clew.retrieve.text_scores import PathScorer, PathScorerName, create_scorer
from clew.types import Found, Path

MAX_RELATION_PATHS = 2048  # relation paths of one length that are extended
_MAX_VOTING_PATHS = 16  # relation paths that vote for answers
_MIN_RELATIVE_CHANCE = 0.002  # chance relative to the best path's below which a path is ignored …
_MIN_PATHS = 8  # … once there are this many paths
_MAX_END_NAMES = 2  # entities at the end of a path that are named
_MAX_SENTENCE_CHARS = 160


class PathFilter(Protocol):
    """Decides which relation paths of one length stay, and whether to search on."""

    async def __call__(self, trails: RelationPathTable, /) -> tuple[Ints, bool]:
        """Return rows, best first, and True to go on."""
        ...


@dataclass(frozen=True, slots=True)
class PathSearchContext:
    """Input of a path step: the subgraph, a scorer, and the entities to start at."""

    ways: FactGraph
    scorer: PathScorer
    starts: Ints


@dataclass(frozen=True, slots=True)
class ScoredRelationPaths:
    """Relation paths of all lengths, with a score for each."""

    by_length: tuple[RelationPathTable, ...]
    codes: Ints
    length_index: Ints
    row: Ints
    scores: Floats

    def end_entities(self, at: int) -> Ints:
        """Return the entities one of them leads to."""
        part = self.by_length[int(self.length_index[at])]
        return part.ends_of(int(self.row[at]))

    def origin(self, at: int) -> int:
        """Return the entity one of them starts at."""
        return int(self.by_length[self.length_index[at]].origin[self.row[at]])

    def step_codes(self, at: int) -> Ints:
        """Return the step codes of one of them."""
        codes: Ints = self.codes[at]
        taken: Ints = codes[codes >= 0]
        return taken

    def rank(self) -> Ints:
        """Return rows best first; of equals the shorter, then smaller codes; no ruled-out ones."""
        hops = (self.codes >= 0).sum(axis=1)
        ranked: Ints = np.lexsort((np.arange(len(hops)), hops, -self.scores))
        left: Ints = ranked[np.isfinite(self.scores[ranked])]
        return left


def prepare_search(
    ctx: Context, found: Found, scorer: PathScorerName = "cosine"
) -> PathSearchContext:
    """Prepare the search for paths from the linked entities within the subgraph found."""
    traversal = build_traversal(ctx.view, subgraph_facts(found))
    starts = np.array(sorted({hit.at for hit in found.entities}), np.int64)
    scores = create_scorer(ctx, traversal, found.rest, scorer)
    return PathSearchContext(traversal, scores, starts)


async def search_relation_paths(
    search: PathSearchContext, hops: int, keep: PathFilter
) -> ScoredRelationPaths:
    """Extend relation paths up to `hops` steps; `keep` filters them after each."""
    frontier = start_relation_paths(search.starts)
    parts: list[RelationPathTable] = []
    onward = True
    while onward and len(parts) < hops:
        frontier = extend_relation_paths(search.ways, frontier)
        if not len(frontier):
            break
        rows, onward = await keep(frontier)
        frontier = frontier.select(rows)
        parts.append(frontier)
    codes, part, row = stack_relation_paths(parts)
    scores = await search.scorer.score_paths(codes) if len(codes) else np.zeros(0, np.float32)
    return ScoredRelationPaths(tuple(parts), codes, part, row, scores)


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
