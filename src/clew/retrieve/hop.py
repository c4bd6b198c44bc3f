"""One hop of the walk of the default recipe: its edges, their worth, and what reaches each passage.

Where loops are compiled, edges are found in one pass and weighed in another one; numpy does the
same without.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew import kernels
from clew.graph.csr import Floats, Ints
from clew.graph.walk_edges import HopEdges
from clew.index.view import View
from clew.kernels import ComparedEdges
from clew.retrieve.facts import SentenceFits
from clew.retrieve.mentions import SURE_CLAIM, Mentions, WalkHop

_LOWEST = np.float32(-99.0)


@dataclass(frozen=True, slots=True)
class HopWeights:
    """How strongly the edges of a hop count; the fields of `Walk` say what each means."""

    sharpness: float
    fit: float
    unsaid: float
    sideways: float
    inward: float
    decay: float
    common: int


def take_hop(
    view: View,
    how: HopWeights,
    start: tuple[Ints, Floats],
    mentions: tuple[Mentions, Mentions, Ints],
    fits: SentenceFits,
) -> WalkHop:
    """Return what reaches each chunk from those in `start`, which have the weights there.

    `mentions` are those in facts, those in texts alone, and the names that are left out.
    """
    rows, weights = start
    stated, unstated, known = mentions
    outward = stated + unstated
    edges = view.walk_edges.find_hop(rows, known, outward.entity, SURE_CLAIM, how.common)
    # All sentences at once: each comparison by itself is small.
    fits.facts.settle_at(stated.fact, edges.beside[2], edges.inward[2])
    fits.chunks.settle_at(edges.owned[1])
    all_mentions = outward + Mentions(*edges.inward)
    found = weigh_edges(
        (rows, all_mentions.row, stated.fact),
        edges,
        (fits.facts.values, fits.chunks.values, weights),
        (
            np.log(view.links("owners").weights[edges.owned[2]]),
            _log_rarity(view, outward.entity, how.sideways),
            _log_rarity(view, edges.inward[1], how.inward),
        ),
        (how.sharpness, how.fit, float(np.log(how.unsaid))),
    )
    reached, via = pass_on(found, len(weights), how.decay)
    origin = rows[all_mentions.row]
    return WalkHop(found.to, reached, via, all_mentions.entity, all_mentions.fact, origin)


def _log_rarity(view: View, entities: Ints, weight: float) -> Floats:
    """Logarithm of the weight of edges by way of each entity; rare names lead on."""
    found: Floats = np.log(weight * view.rarity[entities] ** 2 + 1e-6)
    return found


def weigh_edges(
    mentions: tuple[Ints, Ints, Ints],
    edges: HopEdges,
    scores: tuple[Floats, Floats, Floats],
    logs: tuple[Floats, Floats, Floats],
    factors: tuple[float, float, float],
) -> ComparedEdges:
    """Weigh the edges of a hop, without those that lead back to the chunk they come from.

    `mentions` are the chunks, the index of each mention's chunk, and the facts of the first ones;
    `scores` are the fits of facts and of chunks, and the weights of chunks; `logs` those of claims,
    of outward and of inward mentions; `factors` sharpness, weight of a fit, and worth of a mention
    without a fact.
    """
    parts = edges.owned, edges.beside, edges.inward, edges.naming
    if kernels.COMPILED is not None:
        return kernels.COMPILED.weigh_hop(mentions, parts, scores, logs, factors)
    rows, row, stating = mentions
    facts, chunks, weights = scores
    fit = facts[stating]
    fit = factors[0] * (fit - _group_max(fit, row[: len(stating)], len(rows))[row[: len(stating)]])
    if len(stating) < len(logs[1]):
        unsaid = np.full(len(logs[1]) - len(stating), factors[2], np.float32)
        fit = np.concatenate([fit, unsaid])
    (owned, owner, _), (beside, other, stated), _, (naming, where, named) = parts
    value = np.concatenate(
        [
            fit[owned] + logs[0] + factors[1] * chunks[owner],
            fit[beside] + factors[1] * facts[stated] + logs[1][beside],
            factors[1] * facts[named] + logs[2][naming],
        ]
    )
    through = np.concatenate([owned, beside, len(logs[1]) + naming])
    to = np.concatenate([owner, other, where])
    on = to != rows[row[through]]
    through, to, value = through[on], to[on], value[on]
    source = row[through]
    behind = value - _group_max(value, source, len(rows))[source]
    return ComparedEdges(through, to, behind, weights[rows[source]])


def pass_on(edges: ComparedEdges, count: int, decay: float) -> tuple[Floats, NDArray[np.int32]]:
    """Return the highest weight that reaches each of `count` chunks, and the mention it came by.

    The best edge out of a passage carries all its weight, the others less: no normalisation.
    """
    reached, via = np.zeros(count, np.float32), np.empty(count, np.int32)
    share = np.exp(edges.behind)
    if kernels.COMPILED is not None:
        kernels.COMPILED.keep_highest(edges, share, decay, (reached, via))
        return reached, via
    weight = edges.carried * share * decay
    # Assigned in ascending order, so that each target keeps its highest weight.
    order = np.argsort(weight, kind="stable")
    reached[edges.to[order]] = weight[order]
    via[edges.to[order]] = edges.through[order]
    return reached, via


def _group_max(values: Floats, groups: Ints, count: int) -> Floats:
    highest = np.full(count, _LOWEST, np.float32)
    np.maximum.at(highest, groups, values)
    return highest
