"""Paths that a question may ask for and that a graph does not have at the thing asked about.

The query scorer is asked only about paths that exist, and finds the nearest of them: of somebody
whose profession is not recorded that of the children. Where a question asks for a path that is
absent, though such things have it, what was asked is not in the graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.graph.csr import Ints
from clew.graph.paths import EntityPathTable, follow_codes
from clew.graph.traverse import FactGraph, expand_entities
from clew.retrieve.asked_form import read_form
from clew.retrieve.graph_cache import build_traversal
from clew.retrieve.mutual import is_mutual
from clew.retrieve.pack import fetch_entity_labels
from clew.retrieve.paths.judged import score_paths
from clew.retrieve.paths.relation_paths import PathSearchContext, ScoredRelationPaths
from clew.retrieve.rank import top_positions
from clew.retrieve.relation_vectors import load_short_texts, sample_ends

_LEAST_CHANCE = 0.2  # of the best path; a less likely one is hardly told anyway
_MOST_DIRECT = 8  # relations of the graph that the thing asked about lacks, nearest by words
_SAID_ENDS = 2
_MOST_OWN = 32  # steps of a thing by which its like are found
_MOST_FACTS = 1024  # facts of a thing that are looked at
_LOOKED_AT = 16  # routes of a path from which its ends are taken


async def weigh_absent(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths, names: Sequence[str]
) -> ScoredRelationPaths:
    """Measure how probable it is that a question asks for a path that is absent."""
    rows = found.rank()[:1].tolist()
    if found.chances is None or not rows or found.chances[rows[0]] < _LEAST_CHANCE:
        return found
    start = found.origin(rows[0])
    absent = AbsentPaths(ctx, search, start, build_traversal(ctx.view))
    paths = [*await absent.list_direct(), *await absent.list_changed(found.step_codes(rows[0]))]
    label = (await fetch_entity_labels(ctx, [start]))[start]
    questions = read_form(ctx.question, names).ask_about(label.name)
    chances = await score_paths(ctx, questions, paths, returns=True)
    return replace(found, absent=float(chances.max(initial=0.0)))


@dataclass(frozen=True)
class StepsOfLike:
    """Lists the steps of entities, and those that things like them have.

    What an entity is like is what its own relations say: whoever has a child may have a profession,
    a company is not supplied by what only packages are supplied by.
    """

    ctx: Context
    ways: FactGraph

    def list_steps(self, entities: Sequence[int] | Ints) -> list[int]:
        """Return the steps from entities, without facts that have no relation."""
        edges = expand_entities(self.ways, np.array(entities, np.int64), _MOST_FACTS)
        steps: list[int] = np.unique(
            edges.code[edges.code >> 1 < self.ways.relation_count]
        ).tolist()
        return steps

    def find_likely(self, entity: int) -> set[int]:
        """Return the steps that things with one of an entity's own steps have."""
        own = self.list_steps([entity])[:_MOST_OWN]
        return {code for step in own for code in self._list_beside(step)}

    def _list_beside(self, step: int) -> list[int]:
        """Return all steps of some things that have a step."""
        memo: dict[int, list[int]] = self.ctx.view.memo.setdefault("steps beside", {})
        if step not in memo:
            memo[step] = self.list_steps(sample_ends(self.ctx, self.ways, step ^ 1))
        return memo[step]


@dataclass(frozen=True)
class AbsentPaths:
    """Lists the paths that an entity lacks and that others like it have."""

    ctx: Context
    search: PathSearchContext
    start: int
    ways: FactGraph

    @property
    def like(self) -> StepsOfLike:
        """What things of a kind have."""
        return StepsOfLike(self.ctx, self.ways)

    async def list_direct(self) -> list[EntityPathTable]:
        """Return single steps, the nearest to the question by words."""
        held = self.like.list_steps([self.start])
        lacking = sorted(self.like.find_likely(self.start).difference(held))
        lacking = [
            code for code in lacking if code ^ 1 not in held or not await self._is_mutual(code)
        ]
        codes = np.array(lacking, np.int64)
        if not len(codes):
            return []
        scores = await self.search.scorer.score_paths(codes[:, None])
        rows = top_positions(scores, np.arange(len(codes)), _MOST_DIRECT)
        paths = [self._make([self.start], [code], self._sample(code)) for code in codes[rows]]
        return [path for path in paths if len(path)]

    async def list_changed(self, codes: Ints) -> list[EntityPathTable]:
        """Return a path of several steps with one left out, or one gone the other way."""
        routes = follow_codes(self.ways, self.start, codes, _LOOKED_AT)
        if not len(routes) or len(codes) < 2:
            return []
        route, ends = routes.entities[0].tolist(), routes.entities[:, -1].tolist()
        found = []
        for at in range(len(codes) - 1):
            left = np.delete(codes, at)
            if self._lacks(left) and int(codes[at + 1]) in self.like.find_likely(route[at]):
                found.append(self._make(route[: at + 1] + route[at + 2 : -1], left, ends))
        for at in range(len(codes)):
            turned = codes.copy()
            turned[at] ^= 1
            may_turn = int(turned[at]) in self.like.find_likely(route[at])
            if self._lacks(turned) and may_turn and not await self._is_mutual(turned[at]):
                found.append(self._make(route[:-1], turned, ends))
        return found

    async def _is_mutual(self, code: int) -> bool:
        """Whether a step and the same one gone the other way ask for the same."""
        return await is_mutual(self.ctx, (await load_short_texts(self.ctx))[code >> 1])

    def _lacks(self, codes: Ints) -> bool:
        return not len(follow_codes(self.ways, self.start, codes, _LOOKED_AT))

    def _sample(self, code: int) -> list[int]:
        """Return some things that a step leads to elsewhere."""
        ends: list[int] = sample_ends(self.ctx, self.ways, code).tolist()
        return [end for end in ends if end != self.start]

    def _make(
        self, route: Sequence[int], codes: Sequence[int] | Ints, ends: Sequence[int]
    ) -> EntityPathTable:
        """Return a path that passes some entities as if it led to others."""
        some = list(dict.fromkeys(ends))[:_SAID_ENDS]
        entities = np.array([[*route, end] for end in some], np.int64)
        steps = np.tile(np.array(codes, np.int64), (len(some), 1))
        return EntityPathTable(entities, np.full_like(steps, -1), steps)
