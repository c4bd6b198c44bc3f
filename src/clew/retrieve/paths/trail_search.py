"""Looking for relation paths, and turning the best of them into paths between entities."""

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

MOST_TRAILS = 2048  # trails of one length that are followed further
_BELIEVED = 16  # trails that have a say in which answer is best
_FAINT = 0.002  # chance, against the best trail's, below which a trail is followed no more …
_SOME = 8  # … once there are this many paths


class Keep(Protocol):
    """Says which trails of one length stay, and whether to look further than that."""

    async def __call__(self, trails: Trails, /) -> tuple[Ints, bool]:
        """Rows, best first; True to go on."""
        ...


@dataclass(frozen=True, slots=True)
class Ground:
    """What a path step works on: the subgraph, the question's shape, and a scorer for both."""

    ways: Ways
    shape: Shape
    scorer: TrailScorer
    starts: Ints


@dataclass(frozen=True, slots=True)
class Tracked:
    """Trails of all lengths, with a score for each."""

    parts: tuple[Trails, ...]
    codes: Ints
    part: Ints
    row: Ints
    scores: Floats

    def ends(self, at: int) -> Ints:
        """Where one of them leads."""
        part = self.parts[int(self.part[at])]
        return part.ends_of(int(self.row[at]))

    def origin(self, at: int) -> int:
        """Where one of them begins."""
        return int(self.parts[self.part[at]].origin[self.row[at]])

    def steps(self, at: int) -> Ints:
        """The codes of one of them."""
        codes: Ints = self.codes[at]
        taken: Ints = codes[codes >= 0]
        return taken

    def order(self) -> Ints:
        """Best first; of equals the shorter, then the smaller codes; without what is ruled out."""
        hops = (self.codes >= 0).sum(axis=1)
        ranked: Ints = np.lexsort((np.arange(len(hops)), hops, -self.scores))
        left: Ints = ranked[np.isfinite(self.scores[ranked])]
        return left


def ground(ctx: Context, found: Found) -> Ground:
    """Get ready to look for paths from the linked entities within the subgraph found."""
    ways = ways_of(ctx.view, subgraph_facts(found))
    shape = shape_of(ctx.question, spans_of(ctx.question, found.names))
    starts = np.array(sorted({hit.at for hit in found.entities}), np.int64)
    return Ground(ways, shape, TrailScorer(ctx, ways, shape), starts)


async def tracked(on: Ground, hops: int, keep: Keep) -> Tracked:
    """Follow trails up to `hops` steps; `keep` says after each which stay."""
    trails = begun(on.starts)
    parts: list[Trails] = []
    onward = True
    while onward and len(parts) < hops:
        trails = lengthened(on.ways, trails)
        if not len(trails):
            break
        rows, onward = await keep(trails)
        trails = trails.some(rows)
        parts.append(trails)
    codes, part, row = stacked(parts)
    scores = await on.scorer.paths(codes) if len(codes) else np.zeros(0, np.float32)
    return Tracked(tuple(parts), codes, part, row, scores)


@dataclass(frozen=True)
class AllTrails:
    """Keeps every trail; of very many, those whose last step fits the question best."""

    scorer: TrailScorer

    async def __call__(self, trails: Trails, /) -> tuple[Ints, bool]:
        """Rows in order."""
        if len(trails) <= MOST_TRAILS:
            return np.arange(len(trails)), True
        fit = (await self.scorer.steps(trails.codes)).mean(axis=1)
        return np.sort(best(fit, np.arange(len(fit)), MOST_TRAILS)), True


@dataclass(frozen=True, slots=True)
class Answers:
    """Entities that trails lead to, ascending, and each one's chance to be the answer."""

    entities: Ints
    chances: Floats

    def of(self, entities: Ints) -> Floats:
        """The chance of each; 0 for what is no candidate."""
        if not len(self.entities):
            return np.zeros(len(entities), np.float32)
        at = np.minimum(np.searchsorted(self.entities, entities), len(self.entities) - 1)
        chances: Floats = np.where(self.entities[at] == entities, self.chances[at], 0)
        return chances


def answers_of(found: Tracked) -> Answers:
    """A candidate's chance is the sum of the chances of the trails that lead to it."""
    order = found.order()[:_BELIEVED].tolist()
    if not order:
        return Answers(np.zeros(0, np.int64), np.zeros(0, np.float32))
    chance = np.exp(found.scores[order] - found.scores[order[0]])
    ends = [found.ends(at) for at in order]
    weight = np.repeat(chance / chance.sum(), [len(one) for one in ends])
    entities, which = np.unique(np.concatenate(ends), return_inverse=True)
    return Answers(entities, np.bincount(which, weight).astype(np.float32))


def best_paths(on: Ground, found: Tracked, top_k: int, by: str) -> tuple[Path, ...]:
    """The `top_k` best paths: to each likely answer its best one, then other ways there."""
    answers = answers_of(found)
    likely = answers.entities[np.lexsort((answers.entities, -answers.chances))[:top_k]]
    wanted = np.sort(likely)
    first: dict[int, Path] = {}
    more: list[Path] = []
    order = found.order()[:_BELIEVED].tolist()
    for at in order:
        faint = np.exp(found.scores[at] - found.scores[order[0]]) < _FAINT
        if len(first) == len(wanted) or (faint and len(first) >= _SOME):
            break
        routes = along(on.ways, found.origin(at), found.steps(at))
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
