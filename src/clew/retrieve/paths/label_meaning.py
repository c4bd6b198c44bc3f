"""What a step may mean: its relation's words, and what kind of thing stands at its end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clew.context import Context
from clew.graph.traverse import Ints, Ways, onwards
from clew.retrieve.naming.question_words import QUESTION_WORDS
from clew.retrieve.paths.ways import Floats, direction, has_vectors, kept_vectors, label_words

_SAMPLED = 32  # entities at the end of a step that stand for all of them
_CLASS = 0.5  # share of them that must lead on for their relations to say what they are
_STEM = 4  # letters that two words of one stem share at least
_STEM_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class LabelMeaning:
    """Relations as vectors: the whole wording, and its telling words alone."""

    whole: Floats
    telling: Floats
    words: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class EndMeaning:
    """What stands at the end of a step."""

    kind: Floats
    """By its relation's words, or for what has no such word by the relations it has itself."""
    names: Floats
    """By what such things are called; zeros when that is unknown."""
    classed: bool
    """Whether `kind` is made of its own relations: the head of a relation has no word for it."""


async def label_meaning(ctx: Context, labels: Ints) -> LabelMeaning:
    """The meaning of some relations."""
    every = await label_words(ctx)
    whole = [every[label] for label in labels.tolist()]
    telling = [tuple(w for w in text.split() if w not in QUESTION_WORDS) for text in whole]
    bare = [" ".join(words) or text for words, text in zip(telling, whole, strict=True)]
    vectors = await kept_vectors(ctx, [*whole, *bare])
    words = tuple(one or tuple(text.split()) for one, text in zip(telling, whole, strict=True))
    return LabelMeaning(vectors[: len(whole)], vectors[len(whole) :], words)


async def end_meanings(ctx: Context, ways: Ways, codes: Sequence[int]) -> list[EndMeaning]:
    """What stands at the end of each step; found once per generation from a few examples."""
    kept: dict[int, EndMeaning] = ctx.view.memo.setdefault("end meanings", {})
    for code in codes:
        if code not in kept:
            kept[code] = await _end_meaning(ctx, ways, code)
    return [kept[code] for code in codes]


async def _end_meaning(ctx: Context, ways: Ways, code: int) -> EndMeaning:
    some = _examples(ctx, ways, code)
    edges = onwards(Ways(ways.facts, ways.members, ways.labels, ways.names), some)
    forward = (edges.code % 2 == 0) & (edges.code >> 1 < ways.names)
    pairs = np.unique(np.column_stack([edges.source[forward], edges.code[forward] >> 1]), axis=0)
    leading = len(np.unique(pairs[:, 0])) / max(1, len(some))
    labels, count = np.unique(pairs[:, 1], return_counts=True)
    classed = bool(code % 2) and leading >= _CLASS
    own = await label_meaning(ctx, np.array([code >> 1]))
    kind = own.telling[0]
    if classed:
        meaning = await label_meaning(ctx, labels)
        weight = (count / count.sum()).astype(np.float32)
        kind = direction(meaning.whole * weight[:, None])
    return EndMeaning(kind, await _names(ctx, some, len(kind)), classed)


def _examples(ctx: Context, ways: Ways, code: int) -> Ints:
    """Entities that stand at the end of such a step."""
    order: Ints = ctx.view.memo.get("facts by label", np.zeros(0, np.int64))
    if not len(order):
        order = np.argsort(ways.labels, kind="stable").astype(np.int64)
        ctx.view.memo["facts by label"] = order
    first, last = np.searchsorted(ways.labels, [code >> 1, (code >> 1) + 1], sorter=order)
    some = order[np.unique(np.linspace(first, last - 1, _SAMPLED).astype(np.int64))]
    at, edge = ways.members.edges_of(some)
    role = 2 if code % 2 else 3
    mine = ways.members.weights[edge] == role
    if not mine.any():
        mine = np.ones(len(edge), np.bool_)
    return np.unique(ways.members.columns[edge][mine]).astype(np.int64)[: 2 * _SAMPLED]


async def _names(ctx: Context, entities: Ints, dim: int) -> Floats:
    """The direction of their names; embedded here where the knowledge base holds no vectors."""
    view = ctx.view
    known = entities
    if has_vectors(view, "entity"):
        known = entities[view.arrays["entity_rows"][entities] >= 0]
        if len(known) * 2 >= len(entities):
            return direction(view.vectors("entity", known))
    keys = view.keys("entity")[entities].tolist()
    held = await ctx.snapshot.entities(keys)
    return direction(await kept_vectors(ctx, [held[key].name for key in keys])) + np.zeros(
        dim, np.float32
    )


def stem_share(word: str, parts: Sequence[str]) -> float:
    """How much of a label's word begins inside `word`: "writ" of "written" in "screenwriter"."""
    best = 0.0
    for part in parts:
        for size in range(len(part), _STEM - 1, -1):
            if part[:size] in word:
                best = max(best, size / len(part))
                break
    return best if best > _STEM_SHARE else 0.0
