"""Names that passages write small: "the service ledger-sync", "a grey hill tick".

The rules find names by their capitals. What is a title, a defined term or marked as code in one
document is a name in the others too, however they write it, where it is specific: several words,
which few passages have together, or one rare word that its own title writes small. Such names are
looked up in the sentences that a walk reaches.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from clew.context import Context
from clew.graph.csr import Ints, isin_sorted, sorted_unique
from clew.graph.page_owners import MIN_RARITY, name_rarities
from clew.index.view import MIN_KEPT, View
from clew.retrieve.labels import type_names
from clew.retrieve.mentions import SURE_CLAIM, Mentions, find_mentions, is_followable
from clew.retrieve.pack import fetch_chunks, fetch_fact_texts
from clew.retrieve.question import content_words
from clew.store.array_files import keep_arrays, load_kept
from clew.store.protocol import Arrays
from clew.text.code_names import COMMAND, DEFINED, IDENTIFIER
from clew.text.names import Tokens, loose_key, name_key, strip_disambiguation, tokenize
from clew.text.small_names import MAX_WORDS, NOT_KNOWN, NOT_SMALL, SMALL, SMALL_WORD, small_code

_KEPT = "small names by passage, titles apart"
_MARKED = (DEFINED, IDENTIFIER, COMMAND)
_FORMS = frozenset("_/$.:=")  # names with these are found by their form
_MAX_READ = 20_000  # passages whose names are kept
_WORD_RARITY = 0.7  # the least of one word that is a name: an ordinary word is in more passages
_SOUGHT_TOGETHER = 1000  # names of which the words are looked up at once
_SAMPLED = 60  # passages that are read to count how often names are written small


@dataclass(frozen=True, slots=True)
class _SmallNames:
    """Names that may be written small: entities by the key of the name, and first words."""

    entities: dict[str, int]
    firsts: frozenset[str]
    candidates: dict[int, list[str]]
    """By passage the names whose words it all has, without a mention; others are not read."""
    titles: frozenset[int]
    """The entities among them with a page, and not marked as code or a term."""

    def find(self, text: str) -> Iterator[int]:
        """Yield the entities that a text names, the longest of those that overlap."""
        t, at = tokenize(text), 0
        while at < len(t):
            size, entity = self._find_at(t, at) if t.keys[at] in self.firsts else (1, -1)
            if entity >= 0:
                yield entity
            at += size

    def _find_at(self, t: Tokens, at: int) -> tuple[int, int]:
        """Return how many words are a name that begins here, and its entity; -1 for none."""
        for size in range(min(MAX_WORDS, len(t) - at), 0, -1):
            key = t.key(at, at + size)
            for form in (key, key.removesuffix("s")):
                if (entity := self.entities.get(form)) is not None:
                    return size, entity
        return 1, -1

    def may_name(self, passage: int, text: str) -> bool:
        """Whether a passage with this text has the words of one of its candidates in a row."""
        words = f" {loose_key(text)} "
        return any(
            f" {name} " in words or f" {name}s " in words for name in self.candidates[passage]
        )


async def find_all_mentions(ctx: Context, rows: Ints, known: Ints) -> Mentions:
    """Return what the facts of some passages mention, and names that they write small."""
    view = ctx.view
    stated = find_mentions(view, rows, known)
    names = await _load_names(ctx)
    if not names.entities or not len(rows):
        return stated
    found = await _read_sentences(ctx, rows, names)
    if not found:
        return stated
    triples = [(row, *one) for row, at in enumerate(rows.tolist()) for one in found.get(at, ())]
    row, entity, fact = np.array(triples, np.int64).reshape(-1, 3).T
    count = view.count("entity")
    is_new = ~isin_sorted(row * count + entity, np.sort(stated.row * count + stated.entity))
    small = Mentions(row, entity, fact)
    return stated + small.select(is_new & is_followable(view, entity, known))


async def count_small_mentions(ctx: Context) -> float:
    """Return how often passages write the title of another one small, judged by some of them."""
    names = await _load_names(ctx)
    if not names.titles or not names.candidates:
        return 0.0
    some = np.array(sorted(names.candidates), np.int64)
    read = some[:: -(-len(some) // _SAMPLED)]
    found = await _read_sentences(ctx, read, names)
    mentions = sum(len(names.titles & {entity for entity, _ in ones}) for ones in found.values())
    return mentions * len(some) / len(read)


async def _read_sentences(
    ctx: Context, rows: Ints, names: _SmallNames
) -> dict[int, list[tuple[int, int]]]:
    """Return for passages that name some the names in their sentences, with the sentence; kept."""
    kept: dict[int, list[tuple[int, int]]] = ctx.view.memo.setdefault("small names read", {})
    if len(kept) > _MAX_READ:
        kept.clear()
    wanted = [at for at in rows.tolist() if at in names.candidates]
    if missing := [at for at in wanted if at not in kept]:
        texts = await fetch_chunks(ctx, missing)
        said = [at for at, one in texts.items() if names.may_name(at, f"{one.title} {one.text}")]
        kept.update(dict.fromkeys(missing, []))
        if said:
            kept.update(await _read_facts(ctx, said, names))
    return {at: kept[at] for at in wanted if kept[at]}


async def _read_facts(
    ctx: Context, passages: Sequence[int], names: _SmallNames
) -> dict[int, list[tuple[int, int]]]:
    """Return the names that the facts of each passage say, other than those found by rules."""
    links, mentioned = ctx.view.links("chunk_fact"), ctx.view.links("chunk_entity")
    facts = {at: links.row(at).tolist() for at in passages}
    fetched = await fetch_fact_texts(ctx, sorted({one for some in facts.values() for one in some}))
    found: dict[int, list[tuple[int, int]]] = {}
    for at, some in facts.items():
        own = set(mentioned.row(at).tolist())
        found[at] = [
            (entity, fact)
            for fact in some
            if fact in fetched
            for entity in names.find(fetched[fact].text)
            if entity not in own
        ]
    return found


async def _load_names(ctx: Context) -> _SmallNames:
    """Return the names that may be written small; those of many passages are kept."""
    view = ctx.view
    if _KEPT not in view.memo:
        large = view.count("chunk") >= MIN_KEPT
        held = load_kept(view.arrays, _KEPT) if large else None
        if held is None:
            held = await choose_names(ctx)
            if large:
                keep_arrays(view.arrays, _KEPT, dict(held))
        view.memo[_KEPT] = _unpack_names(held)
    found: _SmallNames = view.memo[_KEPT]
    return found


def _unpack_names(held: Arrays) -> _SmallNames:
    names = held["names"].tobytes().decode().split("\n") if len(held["names"]) else []
    candidates: dict[int, list[str]] = defaultdict(list)
    for passage, which in zip(held["passages"].tolist(), held["which"].tolist(), strict=True):
        candidates[passage].append(names[which])
    return _SmallNames(
        dict(zip(names, held["entities"].tolist(), strict=True)),
        frozenset(name.split()[0] for name in names),
        dict(candidates),
        frozenset(held["titles"].tolist()),
    )


async def choose_names(ctx: Context) -> Arrays:
    """Return keys and entities of specific names, and in which passages they may stand."""
    view = ctx.view
    entities, places = dict[str, int](), dict[str, list[Ints]]()
    read = await _read_names(ctx)
    for begin in range(0, len(read), _SOUGHT_TOGETHER):
        some = read[begin : begin + _SOUGHT_TOGETHER]
        words = [(content_words(name), content_words(f"{name}s")) for _, name in some]
        view.bm25.keep_postings({word for both in words for said in both for word in said})
        for (at, name), (one, several) in zip(some, words, strict=True):
            together, key = view.bm25.chunks_with_all(one), name_key(name)
            if _is_rare(view, len(together), MIN_RARITY if " " in key else _WORD_RARITY):
                entities.setdefault(key, at)
                found = together, view.bm25.chunks_with_all(several)
                places.setdefault(key, []).extend(found)
    links = view.links("chunk_entity")
    pairs = [
        (passage, which)
        for which, (name, at) in enumerate(entities.items())
        for passage in sorted_unique(np.concatenate(places[name])).tolist()
        if at not in links.row(passage)
    ]
    passages, which = np.array(pairs, np.int64).reshape(-1, 2).T
    chosen = np.array(list(entities.values()), np.int64)
    return {
        "names": np.frombuffer("\n".join(entities).encode(), np.uint8),
        "entities": chosen,
        "titles": chosen[~isin_sorted(chosen, await _find_marked(ctx))],
        "passages": passages,
        "which": which,
    }


async def _read_names(ctx: Context) -> list[tuple[int, str]]:
    """Return titles and marked terms that may be written small, as positions and names."""
    view, keys = ctx.view, ctx.view.keys("entity")
    titles = _find_titles(view)
    terms = await _find_marked(ctx)
    terms = terms[~isin_sorted(terms, titles)]
    title_codes, term_codes = view.small_codes[titles], view.small_codes[terms]
    # What is known not to be written small is not read: most names.
    titles = titles[title_codes != NOT_SMALL]
    terms = terms[(term_codes == SMALL) | (term_codes == NOT_KNOWN)]
    some = [*titles.tolist(), *terms.tolist()]
    read = await ctx.snapshot.entity_names(keys[some].tolist())
    found = []
    for number, (at, key) in enumerate(zip(some, keys[some].tolist(), strict=True)):
        name, titled = read.get(key, ""), number < len(titles)
        code, name = small_code(name), strip_disambiguation(name)
        by_form = not titled and not _FORMS.isdisjoint(name)
        if not by_form and (code == SMALL or (titled and code == SMALL_WORD)):
            found.append((at, name))
    return found


async def _find_marked(ctx: Context) -> Ints:
    """Return the entities that are marked as code or a term."""
    marked = [at for at, name in enumerate(await type_names(ctx)) if name in _MARKED]
    return np.flatnonzero(isin_sorted(ctx.view.types, np.array(marked, np.int64)))


def _find_titles(view: View) -> Ints:
    """Return the entities that some passage is about for certain."""
    owners = view.links("owners")
    sure = np.flatnonzero(owners.weights >= SURE_CLAIM)
    return sorted_unique(np.searchsorted(owners.starts, sure, "right") - 1)


def _is_rare(view: View, passages: int, least: float) -> bool:
    """Whether so few passages have the words of a name together that it is specific."""
    return bool(name_rarities(np.array([passages]), view.count("chunk"))[0] > least)
