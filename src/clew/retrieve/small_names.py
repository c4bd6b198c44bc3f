"""Names that passages write small: "the service ledger-sync", "a grey hill tick".

The rules find names by their capitals. What is a title, a defined term or marked as code in one
document is a name in the others too, however they write it, where it is specific: several words,
which few passages have together, or one rare word that its own title writes small. Such names are
looked up in the sentences that a walk reaches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from clew.context import Context
from clew.graph.csr import Ints
from clew.graph.page_owners import MIN_RARITY, name_rarities
from clew.index.view import MIN_KEPT, View
from clew.retrieve.labels import type_names
from clew.retrieve.mentions import SURE_CLAIM, Mentions, find_mentions, is_followable
from clew.retrieve.pack import fetch_facts
from clew.retrieve.question import content_words
from clew.store.array_files import keep_arrays, load_kept
from clew.store.protocol import Arrays
from clew.text.code_names import COMMAND, DEFINED, IDENTIFIER
from clew.text.names import (
    STOP_WORDS,
    Tokens,
    encode_token,
    name_key,
    strip_disambiguation,
    tokenize,
)
from clew.text.unicode import hash64

_KEPT = "small names, titles apart"
_MARKED = (DEFINED, IDENTIFIER, COMMAND)
_FORMS = frozenset("_/$.:=")  # names with these are found by their form
_MAX_WORDS = 6
_MAX_READ = 20_000  # passages whose names are kept
_WORD_RARITY = 0.7  # the least of one word that is a name: an ordinary word is in more passages
_SAMPLED = 60  # passages that are read to count how often names are written small


@dataclass(frozen=True, slots=True)
class _SmallNames:
    """Names that may be written small: entities by the hash of the name, and first words."""

    entities: dict[int, int]
    firsts: frozenset[int]
    passages: frozenset[int]
    """Those that have all words of one of the names; the others are not read."""
    titles: frozenset[int]
    """The entities among them with a page, and not marked as code or a term."""

    def find(self, text: str) -> Iterator[int]:
        """Yield the entities that a text names, the longest of those that overlap."""
        t, at = tokenize(text), 0
        while at < len(t):
            size, entity = (
                self._find_at(t, at) if encode_token(t.keys[at]) in self.firsts else (1, -1)
            )
            if entity >= 0:
                yield entity
            at += size

    def _find_at(self, t: Tokens, at: int) -> tuple[int, int]:
        """Return how many words are a name that begins here, and its entity; -1 for none."""
        for size in range(min(_MAX_WORDS, len(t) - at), 0, -1):
            key = t.key(at, at + size)
            for form in (key, key.removesuffix("s")):
                if (entity := self.entities.get(hash64(form))) is not None:
                    return size, entity
        return 1, -1


async def find_all_mentions(ctx: Context, rows: Ints, known: Ints) -> Mentions:
    """Return what the facts of some passages mention, and names that they write small."""
    view = ctx.view
    stated = find_mentions(view, rows, known)
    names = await _load_names(ctx)
    if not names.entities or not len(rows):
        return stated
    found = await _read_sentences(ctx, rows, names)
    triples = [(row, *one) for row, at in enumerate(rows.tolist()) for one in found[at]]
    row, entity, fact = np.array(triples, np.int64).reshape(-1, 3).T
    count = view.count("entity")
    is_new = ~np.isin(row * count + entity, stated.row * count + stated.entity)
    small = Mentions(row, entity, fact)
    return stated + small.select(is_new & is_followable(view, entity, known))


async def count_small_mentions(ctx: Context) -> float:
    """Return how often passages write the title of another one small, judged by some of them."""
    names = await _load_names(ctx)
    if not names.titles:
        return 0.0
    some = np.array(sorted(names.passages), np.int64)
    read = some[:: -(-len(some) // _SAMPLED)]
    found = await _read_sentences(ctx, read, names)
    mentions = sum(len(names.titles & {entity for entity, _ in ones}) for ones in found.values())
    return mentions * len(some) / len(read)


async def _read_sentences(
    ctx: Context, rows: Ints, names: _SmallNames
) -> dict[int, list[tuple[int, int]]]:
    """Return for each passage the names in its sentences, with the sentence; kept."""
    view = ctx.view
    kept: dict[int, list[tuple[int, int]]] = view.memo.setdefault("small names read", {})
    if len(kept) > _MAX_READ:
        kept.clear()
    missing = [at for at in rows.tolist() if at in names.passages and at not in kept]
    links = view.links("chunk_fact")
    facts = {at: links.row(at).tolist() for at in missing}
    fetched = await fetch_facts(ctx, sorted({one for some in facts.values() for one in some}))
    for at, some in facts.items():
        own = set(view.links("chunk_entity").row(at).tolist())
        kept[at] = [
            (entity, fact)
            for fact in some
            if fact in fetched
            for entity in names.find(fetched[fact].text)
            if entity not in own
        ]
    return {at: kept.get(at, []) for at in rows.tolist()}


async def _load_names(ctx: Context) -> _SmallNames:
    """Return the names that may be written small; those of many passages are kept."""
    view = ctx.view
    if _KEPT not in view.memo:
        large = view.count("chunk") >= MIN_KEPT
        held = load_kept(view.arrays, _KEPT) if large else None
        if held is None:
            held = await _choose_names(ctx)
            if large:
                keep_arrays(view.arrays, _KEPT, dict(held))
        entities = dict(zip(held["hashes"].tolist(), held["entities"].tolist(), strict=True))
        firsts, passages, titles = (
            frozenset(held[key].tolist()) for key in ("firsts", "passages", "titles")
        )
        view.memo[_KEPT] = _SmallNames(entities, firsts, passages, titles)
    found: _SmallNames = view.memo[_KEPT]
    return found


async def _choose_names(ctx: Context) -> Arrays:
    view, keys = ctx.view, ctx.view.keys("entity")
    titles = _find_titles(view)
    marked = [at for at, name in enumerate(await type_names(ctx)) if name in _MARKED]
    is_marked = np.isin(view.types, marked)
    terms = np.setdiff1d(np.flatnonzero(is_marked), titles)
    some = [*titles.tolist(), *terms.tolist()]
    labels = await ctx.snapshot.entity_labels([int(keys[at]) for at in some])
    chosen: dict[int, tuple[int, int]] = {}
    passages = [np.zeros(0, np.int64)]
    for number, at in enumerate(some):
        label = labels.get(int(keys[at]))
        name = strip_disambiguation(label.name) if label else ""
        titled = number < len(titles)
        by_form = not titled and not _FORMS.isdisjoint(name)
        if by_form or not is_written_small(name, one_word=titled):
            continue
        together = view.bm25.chunks_with_all(content_words(name))
        words = name_key(name)
        if _is_rare(view, len(together), MIN_RARITY if " " in words else _WORD_RARITY):
            chosen.setdefault(hash64(words), (at, encode_token(words.split()[0])))
            passages.append(together)
    entities = np.array([at for at, _ in chosen.values()], np.int64)
    return {
        "hashes": np.array(list(chosen), np.uint64),
        "entities": entities,
        "titles": np.setdiff1d(entities, np.flatnonzero(is_marked)),
        "firsts": np.array([first for _, first in chosen.values()], np.int64),
        "passages": np.unique(np.concatenate(passages)).astype(np.int64),
    }


def _find_titles(view: View) -> Ints:
    """Return the entities that some passage is about for certain."""
    owners = view.links("owners")
    sure = np.flatnonzero(owners.weights >= SURE_CLAIM)
    return np.unique(np.searchsorted(owners.starts, sure, "right") - 1)


def is_written_small(name: str, *, one_word: bool = False) -> bool:
    """Whether a name has several words, and other than its first some without a capital.

    Or whether it is `one_word` without any: a title that is no beginning of a sentence.
    """
    t = tokenize(name)
    if len(t) == 1 and one_word:
        return name.islower() and _says_something(t, 0)
    if not 1 < len(t) <= _MAX_WORDS or name.startswith("-"):
        return False
    says = partial(_says_something, t)
    return any(map(says, range(1, len(t)))) and not all(key in STOP_WORDS for key in t.keys)


def _says_something(t: Tokens, at: int) -> bool:
    key = t.keys[at]
    return key.isalpha() and key not in STOP_WORDS and not t.upper[at] and not t.unspaced[at]


def _is_rare(view: View, passages: int, least: float) -> bool:
    """Whether so few passages have the words of a name together that it is specific."""
    return bool(name_rarities(np.array([passages]), view.count("chunk"))[0] > least)
