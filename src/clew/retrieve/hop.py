"""One hop of the walk of the default recipe: its edges, their worth, and what reaches each passage.

Where loops are compiled, edges are found, what they go by is compared, and they are weighed in one
call; numpy does the same without.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew import kernels
from clew.graph.csr import Floats, Ints
from clew.graph.walk_edges import CompiledEdges, HopEdges, PlainEdges
from clew.index.view import View
from clew.kernel_calls import Settling
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
    edges = view.walk_edges
    given = _prepare_scores(fits) if isinstance(edges, CompiledEdges) else None
    if given is None or not isinstance(edges, CompiledEdges):
        return _take_plainly(view, how, start, mentions, fits)
    rows, weights = start
    stated, unstated, known = mentions
    outward = stated + unstated
    columns = {
        "sources": rows,
        "known": known,
        "row": outward.row,
        "entity": outward.entity,
        "stating": outward.fact,
    }
    logs = {
        "claims": _log_claims(view),
        "beside": _log_rarities(view, how.sideways),
        "inward": _log_rarities(view, how.inward),
    }
    numbers = {
        "count": len(rows),
        "knowns": len(known),
        "outward": len(outward),
        "stated": len(stated),
        "common": how.common,
        "claim": SURE_CLAIM,
        "sharpness": how.sharpness,
        "fit": how.fit,
        "unsaid": float(np.log(how.unsaid)),
    }
    held = {name: np.ascontiguousarray(one, np.int64) for name, one in columns.items()}
    led = edges.take_hop({**held, "weights": weights, **logs, **given}, numbers)
    fits.facts.note_asked(led.facts)
    fits.whole.note_asked(led.chunks)
    reached, via = pass_on(led.edges, len(weights), how.decay)
    return WalkHop(led.edges.to, reached, via, *led.mentions)


def _prepare_scores(fits: SentenceFits) -> dict[str, Any] | None:
    """What a compiled hop is told of the fit of facts and chunks; None if it cannot settle them."""
    facts, chunks, whole = fits.facts, fits.chunks, fits.whole
    values = {"facts": facts.values, "fits": chunks.values, "whole": whole.values}
    if any(one.dtype != np.float32 or not one.flags.c_contiguous for one in values.values()):
        return None
    given: dict[str, Any] = {**values}
    if facts.known is None and chunks.known is None:
        return given
    settled = facts.settle, whole.settle
    if not isinstance(settled[0], Settling) or chunks.known is None:
        return None
    given |= {"settled": chunks.known, "fact_scores": settled[0].place}
    if whole.known is None:
        return given
    return (
        {**given, "passage_scores": settled[1].place} if isinstance(settled[1], Settling) else None
    )


def _log_claims(view: View) -> Floats:
    """Logarithm of how far each chunk is about an entity, by edge of `owners`."""
    return view.keep_once("logarithms of claims", lambda: _log(view.links("owners").weights))


def _log_rarities(view: View, weight: float) -> Floats:
    """Logarithm of the weight of edges by way of each entity; rare names lead on."""
    name = f"logarithms of rarity, {weight}"
    return view.keep_once(name, lambda: _log(weight * view.rarity**2 + 1e-6))


def _log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):  # what is 0 leads nowhere
        found: Floats = np.log(values)
    return found


def _take_plainly(
    view: View,
    how: HopWeights,
    start: tuple[Ints, Floats],
    mentions: tuple[Mentions, Mentions, Ints],
    fits: SentenceFits,
) -> WalkHop:
    """The same with numpy."""
    rows, weights = start
    stated, unstated, known = mentions
    outward = stated + unstated
    plain = PlainEdges(view.walk_edges.columns)
    edges = plain.find_hop(rows, known, outward.entity, SURE_CLAIM, how.common)
    # All sentences at once: each comparison by itself is small.
    fits.facts.settle_at(stated.fact, edges.beside[2], edges.inward[2])
    fits.chunks.settle_at(edges.owned[1])
    all_mentions = outward + Mentions(*edges.inward)
    found = weigh_edges(
        (rows, all_mentions.row, stated.fact),
        edges,
        (fits.facts.values, fits.chunks.values, weights),
        (
            _log_claims(view)[edges.owned[2]],
            _log_rarities(view, how.sideways)[outward.entity],
            _log_rarities(view, how.inward)[edges.inward[1]],
        ),
        (how.sharpness, how.fit, float(np.log(how.unsaid))),
    )
    reached, via = pass_on(found, len(weights), how.decay)
    origin = rows[all_mentions.row]
    return WalkHop(found.to, reached, via, all_mentions.entity, all_mentions.fact, origin)


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
