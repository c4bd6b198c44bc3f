"""G-Retriever's subgraph: a prize-collecting Steiner tree over entities and facts."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.graph.csr import Csr
from clew.graph.steiner import prize_collecting_tree
from clew.retrieve.facts import score_facts
from clew.types import Found, Hit
from clew.view import View


@dataclass(frozen=True)
class PrizedTree:
    """Joins the found entities and facts in one tree, leaving out what costs more than its prize.

    The best entity and the best fact have as many points as there are, the next ones one less;
    every fact on the way costs `cost`, half on each side.
    """

    cost: float = 0.5
    reach: int = 6

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities` and `facts` to those of the tree, best first."""
        view = ctx.view
        count = view.count("entity")
        prizes = {hit.at: float(len(found.entities) - n) for n, hit in enumerate(found.entities)}
        for rank, hit in enumerate(found.facts):
            prizes[count + hit.at] = float(len(found.facts) - rank)
        kept = prize_collecting_tree(incidence_graph(view), prizes, self.cost / 2, self.reach)
        vector = await ctx.vector()
        entities = np.array(sorted(at for at in kept if at < count), np.int64)
        facts = np.array(sorted(at - count for at in kept if at >= count), np.int64)
        return replace(
            found,
            entities=_rank_hits(entities, view.cosines("entity", vector, entities)),
            facts=_rank_hits(facts, await score_facts(ctx, vector, at=facts)),
        )


def _rank_hits(positions: NDArray[np.int64], scores: NDArray[np.float32]) -> tuple[Hit, ...]:
    order = np.lexsort((positions, -scores))
    return tuple(Hit(int(positions[at]), float(scores[at]), "tree") for at in order)


def incidence_graph(view: View) -> Csr:
    """Return entities and facts as nodes of one graph; facts come after the entities."""
    if "incidence" not in view.memo:
        there, back = view.links("entity_fact"), view.links("fact_entity")
        count = view.count("entity")
        starts = np.concatenate([there.starts, there.starts[-1] + back.starts[1:]])
        columns = np.concatenate([there.columns + count, back.columns]).astype(np.int32)
        view.memo["incidence"] = Csr(starts, columns, np.broadcast_to(np.float32(1), len(columns)))
    links: Csr = view.memo["incidence"]
    return links
