"""Checks of what callers from Python pass, so that a wrong type is one clear error."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from clew.errors import ConfigError


def list_arguments(given: Any, what: str, kinds: type | tuple[type, ...]) -> list[Any]:
    """Return one thing or several as a list; raise unless each of them is of these kinds.

    `what` names them in the error, as "paths" or "names of documents".
    """
    if isinstance(given, str | Path):
        given = [given]
    if not isinstance(given, Iterable):
        raise ConfigError(f"{what} are expected, and {given!r} is none; pass one or a list of them")
    listed = list(given)
    if wrong := [one for one in listed if not isinstance(one, kinds)]:
        raise ConfigError(f"{what} are expected, and {wrong[0]!r} is none")
    if any(isinstance(one, str) and not one.strip() for one in listed):
        raise ConfigError(f"{what} are expected, and one of them is empty")
    return listed


def check_text_pairs(texts: Any) -> Iterable[tuple[str, str]]:
    """Return texts that can be gone through as pairs; raise for what cannot be."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise ConfigError(f"texts are expected as (name, text) pairs, and {texts!r} is none")
    return texts


def check_confidence(given: Any) -> float:
    """Return a least confidence; raise unless it is a number from 0 to 1."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise ConfigError(f"confidence={given!r}: must be a number from 0 to 1")
    return float(given)
