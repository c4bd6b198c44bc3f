"""Probabilities as log odds, and back."""

import math

_FARTHEST = 30.0  # log odds beyond which a probability is 0 or 1


def to_log_odds(chance: float, least: float = 0.001) -> float:
    """Return the log odds of a probability, taken as `least` at least and 1 - `least` at most."""
    kept = min(max(chance, least), 1 - least)
    return math.log(kept / (1 - kept))


def to_chance(odds: float) -> float:
    """Return the probability that log odds stand for."""
    return 1 / (1 + math.exp(-max(-_FARTHEST, min(_FARTHEST, odds))))
