"""Searches relation paths, and turns the best of them into paths between entities."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from clew.context import Context
from clew.graph.routes import Routes, along
from clew.graph.trails import Trails, begun, lengthened, stacked
from clew.graph.traverse import Ints, Ways, among
from clew.retrieve.naming.question_shape import Shape, shape_of, spans_of
from clew.retrieve.paths.trail_scores import TrailScorer
from clew.retrieve.paths.ways import Floats, ways_of
from clew.retrieve.rank import best
from clew.retrieve.region.subgraph import subgraph_facts
from clew.types import Found, Path

MOST_TRAILS = 2048  # relation paths of one length that are extended
_BELIEVED = 16  # relation paths that vote for answers
_FAINT = 0.002  # chance relative to the best path's below which a path is ignored …
_SOME = 8  # … once there are this many paths


class Keep(Protocol):
    """Decides which relation paths of one length stay, and whether to search on."""

    async def __call__(self, trails: Trails, /) -> tuple[Ints, bool]:
        """Return rows, best first, and True to go on."""
        ...


@dataclass(frozen=True, slots=True)
class Ground:
    """Input of a path step: the subgraph, the parsed question, and a scorer for both."""

    ways: Ways
    shape: Shape
    scorer: TrailScorer
    starts: Ints


@dataclass(frozen=True, slots=True)
class Tracked:
    """Relation paths of all lengths, with a score for each."""

    parts: tuple[Trails, ...]
    codes: Ints
    part: Ints
    row: Ints
    scores: Floats

    def ends(self, at: int) -> Ints:
        """Return the entities one of them leads to."""
        part = self.parts[int(self.part[at])]
        return part.ends_of(int(self.row[at]))

    def origin(self, at: int) -> int:
        """Return the entity one of them starts at."""
        return int(self.parts[self.part[at]].origin[self.row[at]])

    def steps(self, at: int) -> Ints:
        """Return the step codes of one of them."""
        codes: Ints = self.codes[at]
        taken: Ints = codes[codes >= 0]
        return taken

    def order(self) -> Ints:
        """Return rows best first; of equals the shorter, then smaller codes; no ruled-out ones."""
        hops = (self.codes >= 0).sum(axis=1)
        ranked: Ints = np.lexsort((np.arange(len(hops)), hops, -self.scores))
        left: Ints = ranked[np.isfinite(self.scores[ranked])]
        return left


def ground(ctx: Context, found: Found) -> Ground:
    """Prepare the search for paths from the linked entities within the subgraph found."""
    traversal = ways_of(ctx.view, subgraph_facts(found))
    shape = shape_of(ctx.question, spans_of(ctx.question, found.names))
    starts = np.array(sorted({hit.at for hit in found.entities}), np.int64)
    return Ground(traversal, shape, TrailScorer(ctx, traversal, shape), starts)


async def tracked(search: Ground, hops: int, keep: Keep) -> Tracked:
    """Extend relation paths up to `hops` steps; `keep` filters them after each."""
    frontier = begun(search.starts)
    parts: list[Trails] = []
    onward = True
    while onward and len(parts) < hops:
        frontier = lengthened(search.ways, frontier)
        if not len(frontier):
            break
        rows, onward = await keep(frontier)
        frontier = frontier.some(rows)
        parts.append(frontier)
    codes, part, row = stacked(parts)
    scores = await search.scorer.paths(codes) if len(codes) else np.zeros(0, np.float32)
    return Tracked(tuple(parts), codes, part, row, scores)


@dataclass(frozen=True)
class AllTrails:
    """Keeps every relation path; of very many, those whose steps fit the question best."""

    scorer: TrailScorer

    async def __call__(self, trails: Trails, /) -> tuple[Ints, bool]:
        """Return rows in order."""
        if len(trails) <= MOST_TRAILS:
            return np.arange(len(trails)), True
        fit = (await self.scorer.steps(trails.codes)).mean(axis=1)
        return np.sort(best(fit, np.arange(len(fit)), MOST_TRAILS)), True


@dataclass(frozen=True, slots=True)
class Answers:
    """Entities that relation paths lead to, ascending, and each one's probability."""

    entities: Ints
    chances: Floats

    def of(self, entities: Ints) -> Floats:
        """Return the probability of each entity; 0 for others."""
        if not len(self.entities):
            return np.zeros(len(entities), np.float32)
        at = np.minimum(np.searchsorted(self.entities, entities), len(self.entities) - 1)
        chances: Floats = np.where(self.entities[at] == entities, self.chances[at], 0)
        return chances


def answers_of(found: Tracked) -> Answers:
    """Score answer entities: the sum of the probabilities of the paths that lead to them."""
    order = found.order()[:_BELIEVED].tolist()
    if not order:
        return Answers(np.zeros(0, np.int64), np.zeros(0, np.float32))
    chance = np.exp(found.scores[order] - found.scores[order[0]])
    ends = [found.ends(at) for at in order]
    weight = np.repeat(chance / chance.sum(), [len(one) for one in ends])
    entities, which = np.unique(np.concatenate(ends), return_inverse=True)
    return Answers(entities, np.bincount(which, weight).astype(np.float32))


def best_paths(search: Ground, scored: Tracked, top_k: int, by: str) -> tuple[Path, ...]:
    """Return the `top_k` best paths: to each likely answer its best one, then alternatives."""
    answers = answers_of(scored)
    likely = answers.entities[np.lexsort((answers.entities, -answers.chances))[:top_k]]
    wanted = np.sort(likely)
    first: dict[int, Path] = {}
    more: list[Path] = []
    order = scored.order()[:_BELIEVED].tolist()
    for at in order:
        negligible = np.exp(scored.scores[at] - scored.scores[order[0]]) < _FAINT
        if len(first) == len(wanted) or (negligible and len(first) >= _SOME):
            break
        routes = along(search.ways, scored.origin(at), scored.steps(at))
        routes = routes.some(np.flatnonzero(among(routes.entities[:, -1], wanted))[: 4 * top_k])
        for path in _paths(routes, answers, by):
            if path.entities[-1] in first:
                more.append(path)
            else:
                first[path.entities[-1]] = path
    ranked = [first[end] for end in likely.tolist() if end in first]
    more.sort(key=lambda path: -path.score)
    return tuple([*ranked, *more][:top_k])


def _paths(routes: Routes, answers: Answers, by: str) -> list[Path]:
    chances = answers.of(routes.entities[:, -1])
    rows = zip(routes.entities.tolist(), routes.facts.tolist(), chances.tolist(), strict=True)
    return [Path(tuple(entities), tuple(facts), score, by) for entities, facts, score in rows]
