"""Asks again for what is still missing: the question's unanswered words beside a name just found.

The best passages mention names. For each of the likeliest, the passages that contain the name are
scored by the words of the question that the passage which mentioned it does not say, by how well
they fit the question, and by how near they are to the name. So "who scored the first goal of last
season for Peter Bonetti's team" goes on, from the passage about him, to passages with "Chelsea"
and "goal" and "season", though no sentence connects them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clew import kernels
from clew.context import Context
from clew.graph.csr import Doubles, Floats, Ints, group_equals
from clew.index.estimates import Estimates
from clew.index.view import View
from clew.retrieve.facts import SentenceFits
from clew.retrieve.labels import name_vectors
from clew.retrieve.mentions import Mentions, WalkHop
from clew.retrieve.pack import fetch_entity_labels
from clew.retrieve.question import content_words
from clew.retrieve.rank import top_positions
from clew.retrieve.small_names import find_all_mentions

_TINY = 1e-9
_PASSAGES = 6  # passages whose names are followed
_NAMES = 12  # names that are asked for
# A name whose words stand in more of the passages leads nowhere, unless these are few.
_MAX_NAME_SHARE, _FEW_PASSAGES = 0.1, 3
# Passages with a name that are compared with it, of more the likeliest; fewer where the fit of each
# has to be computed.
_MAX_COMPARED, _MAX_SETTLED = 500, 60
_MAX_KEPT_NAMES, _MAX_KEPT_PLACES = 4096, 1 << 21  # kept by a view, and the passages of all
_FEW, _MANY = "passages of rare names", "passages of frequent names"
_MAX_KEPT_NEAR = 256  # passages of a name that are all compared with it
_DENSE_SHARE = 1 / 32  # of the passages; the words of more are summed for all passages at once
_SHARPNESS = 4.0  # how strongly a name in a better fitting sentence is preferred
_NEAR = 0.6  # weight of the nearness to the name, against words and fit


@dataclass(frozen=True, slots=True)
class WordScores:
    """BM25 of every chunk for each content word of the question, and for all of them."""

    by_word: dict[str, Floats]
    total: Floats
    highest: float
    """Of the totals, or a tiny number if there is none."""
    chosen: dict[tuple[tuple[str, ...], int], tuple[Ints, Floats]] = field(default_factory=dict)
    """The likeliest passages by the words of a name and the passage it was found in."""


def score_words(ctx: Context) -> WordScores:
    """Score every chunk by the content words of the question."""
    by_word, total = ctx.view.bm25.scores_by_word(content_words(ctx.question))
    return WordScores(by_word, total, max(_TINY, float(total.max())))


@dataclass(frozen=True, slots=True)
class NamePassages:
    """A name's words and vector, the passages that contain them all, and how near these are."""

    words: tuple[str, ...]
    at: Ints
    vector: Floats | None = None
    """None as long as nothing is compared with it."""
    near: Floats | None = None
    """None for a name in many passages: the likeliest of these are compared."""

    @property
    def known_vector(self) -> Floats:
        """The vector, or an empty one: nothing is near that."""
        return np.zeros(0, np.float32) if self.vector is None else self.vector

    def leads_from(self, origin: int) -> bool:
        """Whether another passage than the one that mentions it here has the name."""
        return len(self.at) > 1 or (len(self.at) == 1 and int(self.at[0]) != origin)


FollowedNames = dict[int, NamePassages]
"""By entity: questions, and the rounds of one question, follow the same names."""


async def ask_for_missing(
    ctx: Context,
    total: Floats,
    fits: SentenceFits,
    known: Ints,
    words: WordScores,
    highest: Ints | None = None,
) -> WalkHop:
    """Follow the names that the best chunks by `total` mention, except those in `known`.

    `fits` are those of facts and of chunks; `words` are the question's words with their scores,
    from `score_words`; among the `highest`, if they are known, are the best chunks.
    """
    rows = top_positions(total, ctx.view.codes("chunk"), _PASSAGES, highest)
    mentions = await find_all_mentions(ctx, rows, known)
    names, weight = _choose_names(ctx.view, mentions, fits.facts, total[rows])
    origins = dict(zip(names.entity.tolist(), rows[names.row].tolist(), strict=True))
    followed = await _look_up(ctx, origins)
    most = _MAX_COMPARED if fits.chunks.known is None else _MAX_SETTLED
    asked = _AskedWords(words, words.highest, len(total))
    looked_up = [followed[entity] for entity in names.entity.tolist()]
    likely = _find_likely(ctx.view, looked_up, rows[names.row], asked, fits.chunks, most)
    rarity = _name_rarities([len(name.at) for name in looked_up], len(total))
    factor = weight * rarity.astype(np.float32)
    fit = fits.chunks.at(likely.at)
    value = factor[likely.number] * (likely.said + fit + np.float32(_NEAR) * likely.near)
    score, via = np.zeros(len(total), np.float32), np.empty(len(total), np.int32)
    # Assigned in ascending order, so that each passage keeps its highest value, and of equals
    # the first name's.
    order = np.lexsort((-likely.number, value))
    order = order[value[order] > 0]
    score[likely.at[order]], via[likely.at[order]] = value[order], likely.number[order]
    return WalkHop(likely.at, score, via, names.entity, names.fact, rows[names.row])


@dataclass(frozen=True, slots=True)
class _AskedWords:
    """The question's words with the score of every chunk, and the highest score of all words."""

    words: WordScores
    scale: float
    count: int
    """Of all chunks."""
    _unsaid: dict[int, set[str]] = field(default_factory=dict)
    _dense: dict[tuple[str, ...], Floats] = field(default_factory=dict)

    @property
    def scores(self) -> dict[str, Floats]:
        """Those of every chunk, by word."""
        return self.words.by_word

    def find_missing(self, origin: int, said: Sequence[str]) -> list[bool]:
        """For each word whether neither `said` nor the passage `origin` contains it."""
        if origin not in self._unsaid:
            self._unsaid[origin] = {word for word, one in self.scores.items() if not one[origin]}
        unsaid = self._unsaid[origin]
        return [word in unsaid and word not in said for word in self.scores]

    def score_missing(self, origin: int, said: Sequence[str], at: Ints) -> Floats:
        """Score chunks by the words that neither `said` nor the passage `origin` contains."""
        is_missing = zip(self.scores, self.find_missing(origin, said), strict=True)
        missing = tuple(word for word, wanted in is_missing if wanted)
        if len(at) > _DENSE_SHARE * self.count and missing not in self._dense:
            self._dense[missing] = self._sum(missing, None)
        dense = self._dense.get(missing)
        return self._sum(missing, at) if dense is None else dense[at]

    def _sum(self, words: Sequence[str], at: Ints | None) -> Floats:
        total = np.zeros(self.count if at is None else len(at), np.float32)
        for word in words:
            total += self.scores[word] if at is None else self.scores[word][at]
        total /= self.scale
        return total


@dataclass(frozen=True, slots=True)
class _Likely:
    """Passages with a name: its number, the passage, words that were missing, and nearness."""

    number: Ints
    at: Ints
    said: Floats
    near: Floats


def _find_likely(
    view: View,
    names: Sequence[NamePassages],
    origins: Ints,
    asked: _AskedWords,
    fits: Estimates,
    most: int,
) -> _Likely:
    """Return the likeliest other passages with each name, and how they score by what is missing.

    What the passage that led to a name says already, its origin, is no longer asked.
    """
    parts = []
    leading = [name.leads_from(int(at)) for name, at in zip(names, origins, strict=True)]
    few = [at for at, name in enumerate(names) if leading[at] and len(name.at) <= most]
    if few:
        parts.append(_compare_few(view, names, few, origins, asked))
    many = [at for at, name in enumerate(names) if len(name.at) > most]
    for one in many:  # the next round follows most of these names again
        key = names[one].words, int(origins[one])
        if key not in asked.words.chosen:
            found = _choose_of_many(view, names[one], key[1], asked, fits, most)
            asked.words.chosen[key] = found
    chosen = [asked.words.chosen[names[one].words, int(origins[one])] for one in many]
    near = _compare_names(
        view, [(names[one], at) for one, (at, _) in zip(many, chosen, strict=True)]
    )
    for one, (at, said), nearness in zip(many, chosen, near, strict=True):
        parts.append(_Likely(np.full(len(at), one), at, said, nearness))
    if not parts:
        none, nothing = np.zeros(0, np.int64), np.zeros(0, np.float32)
        return _Likely(none, none, nothing, nothing)
    columns = zip(*((one.number, one.at, one.said, one.near) for one in parts), strict=True)
    return _Likely(*(np.concatenate(column) for column in columns))


def _compare_names(view: View, asked: Sequence[tuple[NamePassages, Ints]]) -> list[Floats]:
    """How near some passages with each name are to it; those not kept are compared at once."""
    new = [number for number, (name, _) in enumerate(asked) if name.near is None]
    compared = view.compare("chunk", [(asked[one][0].known_vector, asked[one][1]) for one in new])
    found = dict(zip(new, compared, strict=True))
    return [
        found[number] if name.near is None else name.near[np.searchsorted(name.at, at)]
        for number, (name, at) in enumerate(asked)
    ]


def _compare_few(
    view: View,
    names: Sequence[NamePassages],
    few: Sequence[int],
    origins: Ints,
    asked: _AskedWords,
) -> _Likely:
    """Compare all passages with rare names, those of all names at once."""
    number = np.repeat(few, [len(names[one].at) for one in few])
    at = np.concatenate([names[one].at for one in few])
    near = np.concatenate(_compare_names(view, [(names[one], names[one].at) for one in few]))
    keep = at != origins[number]
    led = np.bincount(number[keep], minlength=len(names))
    if any(not leads_on(int(led[one]), asked.count) for one in few):
        keep &= np.array([leads_on(int(count), asked.count) for count in led])[number]
    number, at, near = number[keep], at[keep], near[keep]
    missing = np.zeros((len(names), len(asked.scores)), np.bool_)
    for one in few:
        missing[one] = asked.find_missing(int(origins[one]), names[one].words)
    said = np.zeros(len(at), np.float32)
    for word, scores in enumerate(asked.scores.values()):
        said += scores[at] * missing[number, word]
    said /= np.float32(asked.scale)
    return _Likely(number, at, said, near)


def _choose_of_many(
    view: View, name: NamePassages, origin: int, asked: _AskedWords, fits: Estimates, most: int
) -> tuple[Ints, Floats]:
    """Choose the likeliest passages with a frequent name, and how they score by what is missing."""
    compiled, codes = kernels.COMPILED, view.codes("chunk")
    if compiled is not None:
        place = int(np.searchsorted(name.at, origin))
        has_origin = place < len(name.at) and int(name.at[place]) == origin
        at = name.at if leads_on(len(name.at) - has_origin, asked.count) else name.at[:0]
        missing = asked.find_missing(origin, name.words)
        words = [one for one, wanted in zip(asked.scores.values(), missing, strict=True) if wanted]
        return compiled.choose_likely((at, origin), codes, words, asked.scale, fits.values, most)
    at = name.at[name.at != origin]
    if not leads_on(len(at), asked.count):
        at = at[:0]
    said = asked.score_missing(origin, name.words, at)
    likely = top_positions(said + fits.values[at], codes[at], most)
    return at[likely], said[likely]


async def _look_up(ctx: Context, origins: Mapping[int, int]) -> FollowedNames:
    """Find the passages with each name, given with the passage that mentions it.

    A view keeps them for a while. Most names stand in one passage only: they lead nowhere, and no
    vector is made of them.
    """
    view = ctx.view
    few: FollowedNames = view.memo.setdefault(_FEW, {})
    many: FollowedNames = view.memo.setdefault(_MANY, {})
    found = {one: few.get(one) or many[one] for one in origins if one in few or one in many}
    new = [one for one in origins if one not in found]
    labels = await fetch_entity_labels(ctx, new) if new else {}
    words = {one: content_words(labels[one].name) if one in labels else [] for one in new}
    # All words, and then all vectors, at once: the view may have to ask elsewhere for them.
    view.bm25.keep_postings({word for said in words.values() for word in said})
    for one in new:
        at = view.bm25.chunks_with_all(words[one])
        # Without the passage that mentions it there may be one less.
        led = leads_on(max(1, len(at) - 1), view.count("chunk"))
        found[one] = NamePassages(tuple(words[one]), at if led else at[:0])
    compared = await _compare_with_passages(
        ctx,
        {n: one for n, one in found.items() if one.vector is None and one.leads_from(origins[n])},
    )
    found |= compared
    _keep(view, found, [*dict.fromkeys((*new, *compared))])
    return found


async def _compare_with_passages(ctx: Context, names: FollowedNames) -> FollowedNames:
    """Return names with their vectors, and how near to them the passages are that have them."""
    if not names:
        return {}
    labels = await fetch_entity_labels(ctx, list(names))
    vectors = await name_vectors(ctx, {at: one.name for at, one in labels.items()})
    few = [n for n, one in names.items() if n in vectors and len(one.at) <= _MAX_KEPT_NEAR]
    cosines = ctx.view.compare("chunk", [(vectors[n], names[n].at) for n in few])
    near = dict(zip(few, cosines, strict=True))
    return {n: replace(one, vector=vectors.get(n), near=near.get(n)) for n, one in names.items()}


def _keep(view: View, found: FollowedNames, new: Sequence[int]) -> None:
    """Keep names for later questions: many in few passages, and some in many."""
    most = max(2 * _NAMES, int(_MAX_KEPT_PLACES / (_MAX_NAME_SHARE * view.count("chunk") + 1)))
    for key, limit in ((_FEW, _MAX_KEPT_NAMES), (_MANY, min(most, _MAX_KEPT_NAMES))):
        kept: FollowedNames = view.memo[key]
        if len(kept) > limit:
            kept.clear()
        kept.update(
            {at: found[at] for at in new if (len(found[at].at) > _MAX_KEPT_NEAR) == (key == _MANY)}
        )


def leads_on(passages: int, of: int) -> bool:
    """Tell whether a name that so many of all passages contain leads anywhere."""
    return 0 < passages <= max(_FEW_PASSAGES, _MAX_NAME_SHARE * of)


def name_rarity(passages: int, of: int) -> float:
    """Return how rare a name is that so many of all passages contain: 1 for none, 0 for all."""
    return float(_name_rarities([passages], of)[0])


def _name_rarities(passages: Sequence[int], of: int) -> Doubles:
    rarity: Doubles = np.log((of + 1) / (np.array(passages, np.int64) + 1)) / np.log(of + 1)
    return rarity


def _choose_names(
    view: View, mentions: Mentions, fits: Estimates, passage_weight: Floats
) -> tuple[Mentions, Floats]:
    """Return the likeliest mentions, one of each entity, with their weights, at most 1."""
    fit = fits.at(mentions.fact)
    best = np.full(len(passage_weight), -np.inf, np.float32)
    np.maximum.at(best, mentions.row, fit)
    weight = passage_weight[mentions.row] * np.exp(_SHARPNESS * (fit - best[mentions.row]))
    entities, facts = view.codes("entity")[mentions.entity], view.codes("fact")[mentions.fact]
    order = np.lexsort((facts, mentions.row, entities, -weight))
    first = group_equals(mentions.entity[order])[1]
    chosen = order[np.sort(first)[:_NAMES]]
    names = Mentions(mentions.row[chosen], mentions.entity[chosen], mentions.fact[chosen])
    return names, weight[chosen] / max(_TINY, float(passage_weight.max(initial=0)))
