"""Question → entities, by the names that stand in it."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.names import Tokens, tokens
from clew.retrieve.question_words import QUESTION_WORDS
from clew.text import hash64
from clew.types import Found, Hit
from clew.view import View

_LONGEST = 14  # tokens in a name


@dataclass(frozen=True, slots=True)
class Linked:
    """Tokens `first` to `last` of the question name these entities, each this surely."""

    first: int
    last: int
    entities: NDArray[np.int32]
    weights: NDArray[np.float32]
    owned: bool
    """Some passage is about it, under this very name."""


@dataclass(frozen=True)
class LinkNames:
    """Finds the entities that the question names, by longest match; no model."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities`, and `rest` to the question without their names."""
        t = tokens(ctx.question)
        linked = link_names(ctx.view, t)
        weight: dict[int, float] = {}
        for link in linked:
            for entity, sure in zip(link.entities.tolist(), link.weights.tolist(), strict=True):
                weight[entity] = max(weight.get(entity, 0.0), sure)
        ranked = sorted(weight, key=lambda at: (-weight[at], at))
        hits = tuple(Hit(at, weight[at], "name") for at in ranked)
        return replace(found, entities=hits, rest=_without(ctx.question, t, linked))


def link_names(view: View, t: Tokens) -> list[Linked]:
    """The names in a question, in its order; longer names win, then names passages are about."""
    cased = any(t.upper[1:])
    spans = [
        (first, last)
        for first in range(len(t))
        for last in range(first + 1, min(len(t), first + _LONGEST) + 1)
        if _could_name(t, first, last, cased)
    ]
    if not spans:
        return []
    keys = np.array([hash64(_key(t, first, last)) for first, last in spans], np.uint64)
    candidates = []
    for (first, last), (entities, weights, parts) in zip(spans, view.bearers(keys), strict=True):
        linked = _linked(view, (first, last), entities[~parts], weights[~parts])
        if linked is not None:
            candidates.append(linked)
    candidates.sort(key=lambda c: (-(c.last - c.first) - 0.5 * c.owned, c.first))
    taken: set[int] = set()
    chosen = []
    for candidate in candidates:
        span = set(range(candidate.first, candidate.last))
        if not span & taken:
            taken |= span
            chosen.append(candidate)
    return sorted(chosen, key=lambda c: c.first)


def _key(t: Tokens, first: int, last: int) -> str:
    """The loose key of a span; a leading article does not count."""
    if last - first > 1 and t.keys[first] == "the":
        first += 1
    return t.key(first, last)


def _could_name(t: Tokens, first: int, last: int, cased: bool) -> bool:
    """Case and word evidence: "place of birth" is a phrase even where a page bears that title."""
    inside = range(first, last)
    said = [at for at in inside if t.keys[at] not in QUESTION_WORDS]
    if not said:
        return last - first > 1 and all(t.upper[at] for at in inside)
    if last - first == 1:
        return not t.digit[first] and (t.upper[first] or t.solo[first] or not cased)
    if not cased:
        return True
    return any(t.upper[at] or t.solo[at] for at in inside if at > 0) or t.solo[first]


def _linked(
    view: View,
    span: tuple[int, int],
    entities: NDArray[np.int32],
    weights: NDArray[np.float32],
) -> Linked | None:
    if not len(entities):
        return None
    degrees = view.links("owners").degrees()[entities]
    owned = bool((degrees > 0).any())
    if owned:
        # A form of a name that no passage is about would only blur the link.
        keep = (degrees > 0) | (weights >= 1)
        entities, weights = entities[keep], weights[keep]
    return Linked(*span, entities, weights, owned)


def _without(question: str, t: Tokens, linked: list[Linked]) -> str:
    rest = question
    for link in reversed(linked):
        rest = rest[: t.starts[link.first]] + rest[t.ends[link.last - 1] :]
    return " ".join(rest.split())
