"""Links a question to graph entities: by exact name, alias, similar spelling, or vector.

Unlike `link_names.LinkNames` it needs no passages about a name, accepts lower-case names, and
records for each link how it was made and how many other entities the name could mean.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.errors import InputError
from clew.names import Tokens, name_key, tokens
from clew.retrieve.lookup import must_hold
from clew.retrieve.naming.link import without_names
from clew.retrieve.naming.nearly import nearest_names, nearly
from clew.retrieve.naming.question_words import QUESTION_WORDS
from clew.text import hash64, normal_name
from clew.types import Found, Hit

_LONGEST = 16  # tokens in a name
_MOST_READ = 512  # tokens of a question that are searched for names
_SURFACE, _CASE, _LOOSE = 1.0, 0.95, 0.8  # confidence by how exactly the spelling agrees


@dataclass(frozen=True, slots=True)
class Named:
    """Tokens `first` to `last` name these entities, with confidences and the kind of match."""

    first: int
    last: int
    entities: tuple[tuple[int, float], ...]
    how: str
    score: float
    others: int = 0
    """Number of further entities with the name but a less similar spelling."""


@dataclass(frozen=True)
class LinkEntities:
    """Sets `entities` to those the question names, or to those whose names are given."""

    likeness: float = 0.6
    """Least share of common n-grams at which a name counts as a misspelling."""
    cosine: float = 0.75
    """Least cosine at which an entity counts as meant, where no spelling is similar."""
    most: int = 4

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities`, `names` as the question has them, and `rest`; raise if none is known."""
        if found.entities:
            return found
        must_hold(ctx, "entity")
        t = tokens(ctx.question)
        if ctx.given:
            named = await self._given(ctx, t)
        else:
            named = await self._exact(ctx, t) or await self._nearly(ctx, t)
        if not named:
            raise InputError(await _unknown(ctx))
        spans = [(link.first, link.last) for link in named if link.last > link.first]
        return replace(
            found,
            entities=_hits(ctx.question, t, named),
            names=tuple(ctx.question[t.starts[a] : t.ends[b - 1]] for a, b in spans),
            rest=without_names(ctx.question, t, spans),
        )

    async def _given(self, ctx: Context, t: Tokens) -> list[Named]:
        """Link the names the caller gave, wherever they stand in the question."""
        named = []
        for name in ctx.given:
            first, last = _place(t, name)
            [bearers] = ctx.view.named([name])
            matched = await _spelt(ctx, name, bearers.tolist())
            if matched is None:
                fuzzy = await nearly(ctx, name, self.likeness, self.cosine)
                matched = fuzzy.entities, fuzzy.how, 0
            if matched[0]:
                named.append(Named(first, last, matched[0], matched[1], 1.0, matched[2]))
        return named

    async def _exact(self, ctx: Context, t: Tokens) -> list[Named]:
        """Link names and aliases that occur verbatim in the question."""
        spans = [
            (first, last)
            for first in range(min(len(t), _MOST_READ))
            for last in range(first + 1, min(len(t), first + _LONGEST) + 1)
        ]
        keys = np.array([hash64(name_key(_text(ctx.question, t, *span))) for span in spans], "u8")
        candidates = []
        for span, (entities, weights, parts) in zip(spans, ctx.view.bearers(keys), strict=True):
            whole = ~parts
            if whole.any():
                likely = list(zip(entities[whole].tolist(), weights[whole].tolist(), strict=True))
                candidates.append(await self._candidate(ctx, t, span, likely))
        return self._chosen(t, [one for one in candidates if one is not None])

    async def _candidate(
        self, ctx: Context, t: Tokens, span: tuple[int, int], likely: list[tuple[int, float]]
    ) -> Named | None:
        surface = _text(ctx.question, t, *span)
        sure = max(weight for _, weight in likely)
        named = [at for at, weight in likely if weight >= sure]
        matched = await _spelt(ctx, surface, named, _marked(ctx.question, t, span[1]))
        if matched is None:  # an alias or a shorter form
            best = tuple((at, sure) for at in named[: self.most])
            matched = best, "alias", len(named) - len(best)
        score = _worth(t, *span, matched[1])
        if score <= 0:
            return None
        return Named(*span, matched[0][: self.most], matched[1], score, matched[2])

    def _chosen(self, t: Tokens, candidates: list[Named]) -> list[Named]:
        """Select the best links that do not overlap; weak ones only where there is no other."""
        taken: set[int] = set()
        chosen: list[Named] = []
        for one in sorted(candidates, key=lambda c: (-c.score, -c.first)):
            span = set(range(one.first, one.last))
            if span & taken:
                continue
            if not chosen or _solid(t, one):
                chosen.append(one)
                taken |= span
        return sorted(chosen[: self.most], key=lambda c: c.first)

    async def _nearly(self, ctx: Context, t: Tokens) -> list[Named]:
        """Link runs that look like names by spelling, then by vector."""
        found = []
        for first, last in _runs(t):
            fuzzy = await nearly(
                ctx, _text(ctx.question, t, first, last), self.likeness, self.cosine
            )
            if fuzzy.entities:
                found.append(Named(first, last, fuzzy.entities, fuzzy.how, fuzzy.score))
        return self._chosen(t, found)


def _marked(question: str, t: Tokens, last: int) -> str:
    """Return the punctuation right after a token; it may belong to a name ("Taxi!")."""
    found = re.match(r"[^\w\s]*", question[t.ends[last - 1] :])
    return found[0] if found else ""


async def _spelt(
    ctx: Context, surface: str, entities: Sequence[int], marks: str = ""
) -> tuple[tuple[tuple[int, float], ...], str, int] | None:
    """Of entities with one loose name return those spelt most alike; None if only aliases match."""
    keys = ctx.view.keys("entity")
    fetched = await ctx.snapshot.entities([int(keys[at]) for at in entities])
    tiers: dict[float, list[int]] = {}
    for at in dict.fromkeys(entities):
        name = fetched[int(keys[at])].name
        if name == surface or (marks and name == surface + marks):
            tiers.setdefault(_SURFACE, []).append(at)
        elif normal_name(name) == normal_name(surface):
            tiers.setdefault(_CASE, []).append(at)
        elif name_key(name) == name_key(surface):
            tiers.setdefault(_LOOSE, []).append(at)
    if not tiers:
        return None
    best = max(tiers)
    if best == _SURFACE and marks:
        names = {at: fetched[int(keys[at])].name for at in tiers[best]}
        with_marks = [at for at, name in names.items() if name == surface + marks]
        tiers[best] = with_marks or tiers[best]
    how = {_SURFACE: "exact", _CASE: "exact but for case", _LOOSE: "exact but for marks"}[best]
    others = sum(map(len, tiers.values())) - len(tiers[best])
    return tuple((at, best) for at in tiers[best]), how, others


def _worth(t: Tokens, first: int, last: int, how: str) -> float:
    """Score a span: longer first, then capitals and exact spelling; 0 for question words."""
    length = last - first - (last - first > 1 and t.keys[first] == "the" and not t.upper[first])
    capital = any(t.upper[at] or t.digit[at] for at in range(first, last) if at > 0)
    idle = all(t.keys[at] in QUESTION_WORDS for at in range(first, last))
    asked = length == 1 and first > 0 and t.keys[first - 1] in ("what", "which", "the")
    if idle and not (capital and how == "exact" and length > 1):
        return 0.0
    return length + capital + 0.5 * (how == "exact") - 0.5 * (how == "alias") - 0.3 * asked


def _solid(t: Tokens, named: Named) -> bool:
    """Decide whether a name counts beside a better one: by capitals, or several words."""
    inside = range(named.first, named.last)
    if any(t.upper[1:]):
        return any(t.upper[at] for at in inside if at > 0)
    return sum(key != "the" for key in t.keys[named.first : named.last]) > 1


def _runs(t: Tokens) -> list[tuple[int, int]]:
    """Return runs without question words, longest first: possible misspelt names."""
    runs, first = [], 0
    for at in range(len(t) + 1):
        if at == len(t) or (t.keys[at] in QUESTION_WORDS and not t.upper[at]):
            if at > first:
                runs.append((first, at))
            first = at + 1
    inner = [
        (a, b)
        for first, last in runs
        for a in range(first, last)
        for b in range(a + 1, min(last, a + 6) + 1)
        if any(t.upper[i] for i in range(a, b)) or not any(t.upper[1:])
    ]
    return sorted(dict.fromkeys([*runs, *inner]), key=lambda span: (span[0] - span[1], span))[:24]


def _place(t: Tokens, name: str) -> tuple[int, int]:
    keys = tokens(name).keys
    for at in range(len(t) - len(keys) + 1):
        if keys and t.keys[at : at + len(keys)] == keys:
            return at, at + len(keys)
    return 0, 0


def _text(question: str, t: Tokens, first: int, last: int) -> str:
    return question[t.starts[first] : t.ends[last - 1]]


def _hits(question: str, t: Tokens, named: Sequence[Named]) -> tuple[Hit, ...]:
    hits: dict[int, Hit] = {}
    for link in named:
        quoted = f" “{_text(question, t, link.first, link.last)}”" if link.last > link.first else ""
        shared = len(link.entities) + link.others
        ambiguity = f", one of {shared} so called" if shared > 1 else ""
        for at, confidence in link.entities:
            hits.setdefault(at, Hit(at, confidence, f"{link.how}{quoted}{ambiguity}"))
    return tuple(sorted(hits.values(), key=lambda hit: (-hit.score, hit.at)))


async def _unknown(ctx: Context) -> str:
    near = await nearest_names(ctx, " ".join(ctx.given) or ctx.question)
    offered = f"; the nearest names are {', '.join(map(repr, near))}" if near else ""
    return f"the question names nothing that is known here{offered}: ask again with a known name"
