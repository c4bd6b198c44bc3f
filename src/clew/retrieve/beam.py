"""A beam over the graph, pruned at every hop by a model or by meaning (Think-on-Graph)."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.retrieve.rank import best
from clew.retrieve.recognise import chosen_facts
from clew.types import Found, Hit, Path
from clew.view import View

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Beam:
    """Keeps the `width` best paths from the question's entities at each of `depth` hops.

    What a hop may follow are the facts of the beam's ends; a model chooses among the `shown` best
    fitting ones, and where there is none, or it chooses nothing, their fit decides.
    """

    width: int = 3
    depth: int = 3
    shown: int = 20
    seeds: int = 3

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths` and `facts`, best first."""
        fit = ctx.view.similar("fact", await ctx.vector())
        beam = [Path((hit.at,), (), 0.0, "beam") for hit in found.entities[: self.seeds]]
        met: dict[tuple[tuple[int, ...], tuple[int, ...]], Path] = {}
        for _ in range(self.depth):
            onwards = _onwards(ctx.view, beam, fit, self.shown)
            beam = (await self._chosen(ctx, onwards))[: self.width]
            for path in beam:
                met[path.entities, path.facts] = path
            if not beam:
                break
        paths = sorted(met.values(), key=lambda path: (-path.score, path.entities, path.facts))
        used = dict.fromkeys(fact for path in paths for fact in path.facts)
        facts = sorted(used, key=lambda fact: (-float(fit[fact]), fact))
        return replace(
            found,
            paths=tuple(paths),
            facts=tuple(Hit(at, float(fit[at]), "beam") for at in facts),
        )

    async def _chosen(self, ctx: Context, onwards: list[Path]) -> list[Path]:
        """Those whose last fact the model picks come first; the others stand in after them."""
        chat = ctx.chat("plan")
        if chat is None or not onwards:
            return onwards
        last = list(dict.fromkeys(path.facts[-1] for path in onwards))
        picked = await chosen_facts(ctx, chat, last)
        return sorted(onwards, key=lambda path: path.facts[-1] not in picked)


def _onwards(view: View, beam: list[Path], fit: Floats, shown: int) -> list[Path]:
    """The beam's paths, each one fact longer, best fitting facts first."""
    members, literal = view.links("fact_entity"), view.arrays["entity_literal"]
    longer: list[Path] = []
    for path in beam:
        said = view.links("entity_fact").row(path.entities[-1]).astype(np.int64)
        for at in best(fit[said], said, shown).tolist():
            fact = int(said[at])
            fresh = [m for m in members.row(fact).tolist() if m not in path.entities]
            if fact in path.facts or not fresh:
                continue
            # The rarest name tells most; a value leads nowhere.
            far = min(fresh, key=lambda m: (bool(literal[m]), -float(view.rarity[m]), m))
            facts = (*path.facts, fact)
            score = float(fit[list(facts)].mean())
            longer.append(Path((*path.entities, far), facts, score, "beam"))
    longer.sort(key=lambda path: (-path.score, path.entities, path.facts))
    return longer[:shown]
