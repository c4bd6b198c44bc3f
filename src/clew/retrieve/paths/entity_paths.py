"""Entity paths: by flow (PathRAG), depth-first (Youtu-GraphRAG), towards types (MiniRAG)."""

from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.errors import ConfigError
from clew.graph.csr import Floats, Ints
from clew.graph.paths import MAX_HOPS, compute_flows, find_short_paths
from clew.index.view import View
from clew.retrieve.facts import score_facts
from clew.retrieve.graph_cache import facts_between, neighbour_graph
from clew.retrieve.labels import embed_cached, type_names
from clew.retrieve.lookup import query_texts
from clew.retrieve.rank import hit_positions, top_positions
from clew.types import Found, Path


@dataclass(frozen=True)
class FlowPaths:
    """Keeps the paths between pairs of entities with the highest flow, most reliable first."""

    top_k: int = 15
    hops: int = MAX_HOPS
    decay: float = 0.8
    """Share of its flow that a hop after the first passes on."""
    threshold: float = 0.3
    """The flow ends at an edge that carries less."""

    def __post_init__(self) -> None:
        """Refuse longer paths than are searched, rather than search shorter ones silently."""
        if self.hops > MAX_HOPS:
            raise ConfigError(f"FlowPaths.hops is {self.hops}: at most {MAX_HOPS} are searched")

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`."""
        view = ctx.view
        seeds = hit_positions(found.entities)
        if len(seeds) < 2:
            return replace(found, paths=())
        ties = view.codes("entity")
        routes = find_short_paths(neighbour_graph(view), seeds, self.hops, codes=ties)
        reliable = compute_flows(routes, self.decay, self.threshold)
        # Rounded: the flows of equal paths are summed in an order of their own.
        codes = np.append(ties, -1)[routes.nodes]
        order = np.lexsort((*codes.T[::-1], -reliable.round(9)))[: self.top_k]
        kept = [
            await self._build_path(ctx, float(reliable[at]), routes.nodes[at])
            for at in order
            if reliable[at] > 0
        ]
        return replace(found, paths=tuple(kept))

    async def _build_path(self, ctx: Context, score: float, row: Ints) -> Path:
        """Build the path; each hop takes the fact that fits the question best."""
        nodes = tuple(row[row >= 0].tolist())
        facts = []
        for one, other in zip(nodes, nodes[1:], strict=False):
            joining = facts_between(ctx.view, one, other).astype(np.int64)
            near = await score_facts(ctx, await ctx.vector(), at=joining)
            ties = ctx.view.codes("fact")[joining]
            facts.append(int(joining[top_positions(near, ties, 1)[0]]))
        return Path(nodes, tuple(facts), score, "flow")


@dataclass(frozen=True)
class DepthFirst:
    """Follows facts from the entities depth-first, the best fitting first, up to `depth`.

    Every prefix of a path counts as a path; parallel facts between two entities stay separate.
    """

    depth: int = 5
    width: int = 3
    """Facts followed from the first entity; one fewer with every hop, and at least one."""
    seeds: int = 5
    top_k: int = 20

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`, those whose facts fit the question best first."""
        fit = await score_facts(ctx, await ctx.vector())
        search = _DepthFirstSearch(ctx.view, fit, self.depth, self.width)
        paths = [path for hit in found.entities[: self.seeds] for path in search.paths_from(hit.at)]
        ties = {path: path_codes(ctx.view, path) for path in paths}
        paths.sort(key=lambda path: (-round(path.score, 6), ties[path]))
        return replace(found, paths=tuple(paths[: self.top_k]))


def path_codes(view: View, path: Path) -> tuple[int, ...]:
    """Return numbers of a path's elements by which equals are ordered alike in every build."""
    entities, facts = view.codes("entity"), view.codes("fact")
    return (*entities[list(path.entities)].tolist(), *facts[list(path.facts)].tolist())


@dataclass(frozen=True, slots=True)
class _DepthFirstSearch:
    view: View
    fit: Floats
    depth: int
    width: int

    def paths_from(self, entity: int) -> list[Path]:
        """Return all paths from an entity; an explicit stack, because depth is a user setting."""
        found: list[Path] = []
        stack: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((entity,), ())]
        while stack:
            entities, facts = stack.pop()
            if facts:
                score = float(self.fit[list(facts)].mean())
                found.append(Path(entities, facts, score, "depth first"))
            if len(facts) < self.depth:
                onwards = self._next_steps(entities, facts)
                stack += [((*entities, e), (*facts, f)) for f, e in reversed(onwards)]
        return found

    def _next_steps(
        self, entities: tuple[int, ...], facts: tuple[int, ...]
    ) -> list[tuple[int, int]]:
        """Return the best fitting facts of the last entity, each with its best new member."""
        width = max(1, self.width - len(facts))
        own_facts = self.view.links("entity_fact").row(entities[-1]).astype(np.int64)
        members = self.view.links("fact_entity")
        steps: list[tuple[int, int]] = []
        ties = self.view.codes("fact")[own_facts]
        for at in top_positions(self.fit[own_facts], ties, width + len(facts)).tolist():
            fact = int(own_facts[at])
            unvisited = [m for m in members.row(fact).tolist() if m not in entities]
            if fact not in facts and unvisited:
                steps.append((fact, min(unvisited, key=self._preference_key)))
        return steps[:width]

    def _preference_key(self, entity: int) -> tuple[bool, bool, int, int]:
        """Sort key: literals last, then entities with one fact, then the most frequent."""
        degree = int(self.view.links("entity_fact").degrees_of(np.array([entity]))[0])
        code = int(self.view.codes("entity")[entity])
        return bool(self.view.arrays["entity_literal"][entity]), degree < 2, degree, code


@dataclass(frozen=True)
class TypedPaths:
    """Ranks paths by the entities of the asked types and the relevant facts on them.

    A path scores seed similarity × (1 + answers on it + for each fact the seeds and answers among
    its members).
    """

    hops: int = 2
    width: int = 8
    seeds: int = 5
    types: int = 2
    """How many types count as asked for."""
    top_k: int = 40

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`, best first."""
        view = ctx.view
        fit = await score_facts(ctx, await ctx.vector())
        search = _DepthFirstSearch(view, fit, self.hops, self.width)
        starts = found.entities[: self.seeds]
        candidates = [(hit.score, path) for hit in starts for path in search.paths_from(hit.at)]
        wanted = await self._find_asked_types(ctx, found)
        seeds = {hit.at for hit in starts}
        reached = {at for _, path in candidates for at in path.entities[1:]} - seeds
        answers = {at for at in reached if int(view.types[at]) in wanted}
        scored = [
            replace(path, score=near * self._score_path(view, path, seeds, answers), by="typed")
            for near, path in candidates
        ]
        scored.sort(key=lambda path: (-path.score, -float(fit[list(path.facts)].mean())))
        return replace(found, paths=tuple(scored[: self.top_k]))

    async def _find_asked_types(self, ctx: Context, found: Found) -> set[int]:
        """Return the types whose names are nearest to what the question asks for."""
        names = await type_names(ctx)
        if not names:
            return set()
        [vector] = await ctx.vectors([", ".join(query_texts(ctx, found, "topics"))])
        near = (await embed_cached(ctx, names)) @ vector
        return set(np.argsort(-near, kind="stable")[: self.types].tolist())

    def _score_path(self, view: View, path: Path, seeds: set[int], answers: set[int]) -> float:
        members = view.links("fact_entity")
        near = sum(
            sum(member in seeds or member in answers for member in members.row(fact).tolist())
            for fact in path.facts
        )
        return 1.0 + sum(at in answers for at in path.entities) + near
