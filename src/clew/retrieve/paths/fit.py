"""Measures how well the best relation path says what a question asks, for the confidence in it."""

from dataclasses import replace

import numpy as np

from clew.context import Context
from clew.retrieve.path_scores import FEATURE_WEIGHTS, FEATURES, compute_path_features
from clew.retrieve.paths.ranked import path_codes
from clew.retrieve.paths.relation_paths import prepare_search
from clew.types import Found

_SHOWN = ("unspoken", "kind", "last")
_IN_ORDER = ("unexplained_in_order", "unspoken_in_order", "backward", "chain_gap")
_MAX_HOPS = 3  # of a path; more count as many
_GOOD_SCORE = 8.0  # by which the scorer's sum is divided: about that of a path that fits


async def measure_fit(ctx: Context, found: Found) -> dict[str, float]:
    """Return how far the first path covers the question, and how likely it is beside others.

    Numbers between -1 and 1; none where a path goes through sentences, which have no relation.
    """
    if not found.paths:
        return {}
    search = prepare_search(ctx, replace(found, facts=()))
    codes = path_codes(search.ways, found.paths)
    if (search.ways.fact_of_code(codes) >= 0).any():
        return {}
    distinct, which = np.unique(codes, axis=0, return_inverse=True)
    features = await compute_path_features(ctx, search.ways, search.shape, distinct)
    first = int(which.reshape(-1)[0])
    of = dict(zip(FEATURES, features[first].tolist(), strict=True))
    hops = min(int((codes[0] >= 0).sum()), _MAX_HOPS)
    return {
        **{name: _clip(of[name]) for name in _SHOWN},
        **{name.replace("_", " "): _clip(of[name] / hops) for name in _IN_ORDER},
        "hops": (hops - 1) / (_MAX_HOPS - 1),
        "chance": _clip(found.paths[0].score),
        "fit of path": _clip(float(features[first] @ FEATURE_WEIGHTS) / _GOOD_SCORE),
    }


def _clip(value: float) -> float:
    """Return the value, at most 1 away from 0."""
    return max(-1.0, min(1.0, value))
