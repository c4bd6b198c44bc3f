"""What a question says of the things on its path beside their relations: a gender, or a kind.

"X's mother" is, of the parents of X, the one whom the graph calls female; "in which country was X
born" goes on from a town to its country, where the graph says which end is a country.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from clew.context import Context
from clew.graph.csr import Ints, Mask
from clew.graph.paths import EntityPathTable, follow_codes
from clew.graph.traverse import (
    HEAD_CODE,
    TAIL_CODE,
    FactGraph,
    RelationPathTable,
    expand_entities,
    extend_relation_paths,
)
from clew.retrieve.graph_cache import build_traversal
from clew.retrieve.labels import embed_cached, relation_names, type_names
from clew.retrieve.pack import fetch_entity_labels
from clew.retrieve.path_alignment import reading_orders
from clew.retrieve.paths.relation_paths import PathSearchContext, ScoredRelationPaths
from clew.retrieve.relation_vectors import load_short_texts
from clew.text.countries import find_countries
from clew.text.names import head_type
from clew.text.unicode import split_words
from clew.text.word_forms import function_words, question_language, word_class

Gender = str
_GENDERS: tuple[Gender, ...] = ("female", "male")
_VALUE_LANGUAGES = ("en", "de", "fr", "es", "zh")  # that a graph may say a gender in
_CONTRADICTED_CHANCE = 0.1  # of a path to people of the other gender only
_MOST_LOOKED_AT = 256  # ends of a path whose kinds are looked up
_ENOUGH = 0.5  # share of a path's ends that must be of a kind
_MOST_STEPS = 32  # beyond a path's end that are looked at
_FURTHER = 2  # steps beyond a path's end that are looked at for the kind that is asked for
_WITHIN = ("located in", "contained by")
_MIN_WITHIN = 0.55  # least cosine of a relation's name with one of them
_GUESSED_SHARE = 0.6  # of a path's chance that is left where only its last relation suggests a kind


async def keep_gender(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths
) -> ScoredRelationPaths:
    """Keep of the best path what has the gender of the words that name its steps.

    Where the graph says of all that they have the other, none is meant: the path is unlikely.
    """
    said = _find_gendered_words(ctx, search)
    rows = found.rank()[:1].tolist()
    if not said or not rows or found.chances is None:
        return found
    codes = found.step_codes(rows[0])
    routes = follow_codes(search.ways, found.origin(rows[0]), codes)
    genders = await _load_genders(ctx, np.unique(routes.entities))
    if not genders:
        return found
    wanted = await _assign_genders(ctx, said, routes, genders)
    allowed: list[frozenset[int] | None] = [None] * routes.entities.shape[1]
    for place, gender in wanted.items():
        own = set(routes.entities[:, place].tolist())
        fitting = {at for at in own if genders.get(at) == gender}
        open_ones = {at for at in own if at not in genders}
        if not (fitting or open_ones):
            chances = found.chances.copy()
            chances[rows[0]] = min(float(chances[rows[0]]), _CONTRADICTED_CHANCE)
            return replace(found, chances=chances)
        allowed[place] = frozenset(fitting or open_ones)
    return replace(found, allowed=tuple(allowed))


def _find_gendered_words(ctx: Context, search: PathSearchContext) -> list[tuple[str, Gender]]:
    """Return the words of a question that say a gender, from its name outwards."""
    language, shape = question_language(ctx.question), search.shape
    genders = {word: gender for gender in _GENDERS for word in _words(language, gender)}
    if shape.name_position < 0:
        return []
    order = reading_orders(shape)[0].tolist()
    return [
        (shape.words[at], genders[shape.words[at]]) for at in order if shape.words[at] in genders
    ]


def _words(language: str, name: str) -> tuple[str, ...]:
    try:
        return word_class(language, name)
    except KeyError:  # a language without a table, or without this class
        return ()


async def _load_genders(ctx: Context, entities: Ints) -> dict[int, Gender]:
    """Return the genders that the graph says of entities."""
    texts = await load_short_texts(ctx)
    called = {word for language in _VALUE_LANGUAGES for word in _words(language, "gender")}
    labels = [at for at, text in enumerate(texts) if text in called]
    if not labels:
        return {}
    edges = expand_entities(build_traversal(ctx.view), entities)
    edges = edges.select(np.isin(edges.code, np.array(labels, np.int64) * 2))
    names = await fetch_entity_labels(ctx, np.unique(edges.target).tolist())
    by_value = {
        word: gender
        for gender in _GENDERS
        for language in _VALUE_LANGUAGES
        for word in (gender, gender[0], *_words(language, gender))
    }
    found: dict[int, Gender] = {}
    for source, target in zip(edges.source.tolist(), edges.target.tolist(), strict=True):
        value = by_value.get(names[target].name.casefold())
        if value:
            found[int(entities[source])] = value
    return found


async def _assign_genders(
    ctx: Context,
    said: Sequence[tuple[str, Gender]],
    routes: EntityPathTable,
    genders: dict[int, Gender],
) -> dict[int, Gender]:
    """Return the gender that words give each place of a path.

    They stand in its order; of several places each goes where the relation means most like it.
    """
    width = routes.entities.shape[1]
    places = [
        at
        for at in range(1, width)
        if any(entity in genders for entity in routes.entities[:, at].tolist())
    ]
    if not places or not len(routes):
        return {}
    texts = await load_short_texts(ctx)
    labels = [texts[int(code) >> 1] for code in routes.codes[0].tolist()]
    near = await embed_cached(ctx, [word for word, _ in said]) @ (
        (await embed_cached(ctx, labels)).T
    )
    best: tuple[float, dict[int, Gender]] = (-np.inf, {})
    for chosen in combinations_with_replacement(places, len(said)):
        given: dict[int, Gender] = {}
        pairs = zip(chosen, said, strict=True)
        if any(given.setdefault(place, gender) != gender for place, (_, gender) in pairs):
            continue
        alike = sum(float(near[at, place - 1]) for at, place in enumerate(chosen))
        best = max(best, (alike, given), key=lambda one: one[0])
    return best[1]


@dataclass(frozen=True)
class KindLookup:
    """Tells by the graph which entities are of a kind, as a noun names it."""

    ctx: Context
    ways: FactGraph
    nouns: frozenset[str]
    texts: Sequence[str]
    names: Sequence[str]

    async def mark(self, entities: Ints) -> Mask:
        """Mark those of a kind: by type, by the relations they have, or as a known country."""
        keys = self.ctx.view.keys("entity")[entities].tolist()
        fetched = await self.ctx.snapshot.entities(keys)
        types = [fetched[key].type.casefold() for key in keys]
        known = [
            not self.nouns.isdisjoint((kind,)) or self._is_country(fetched[key].name)
            for kind, key in zip(types, keys, strict=True)
        ]
        found: Mask = np.array(known, np.bool_)
        edges = expand_entities(self.ways, entities)
        for source, code in set(zip(edges.source.tolist(), edges.code.tolist(), strict=True)):
            found[source] |= self._says_kind(code)
        return found

    def _says_kind(self, code: int) -> bool:
        """Whether whatever a step starts at is of the kind: by the relation's name."""
        if not 0 <= code >> 1 < len(self.texts):
            return False
        words = self.texts[code >> 1].split() or [""]
        if code % 2:  # the tail of "country" is one
            return words[-1] in self.nouns
        if words[0] in self.nouns and len(words) > 1 and words[1] not in function_words("en"):
            return True  # the head of "ship class" is a ship, that of "country of birth" no country
        if len(words) > 1 and words[-1] in self.nouns and self._joins_like(code >> 1):
            return True
        return head_type(self.names[code >> 1]) in self.nouns

    def _joins_like(self, relation: int) -> bool:
        """Whether the tails of a relation have relations that its heads have: "sister ship"."""
        facts: Ints = np.flatnonzero(self.ways.labels == relation)[:_MOST_LOOKED_AT]
        _, edge = self.ways.members.edges_of(facts)
        roles, members = self.ways.members.weights[edge], self.ways.members.columns[edge]
        said = [
            set(expand_entities(self.ways, np.unique(members[roles == role])).code.tolist())
            for role in (HEAD_CODE, TAIL_CODE)
        ]
        return any(code % 2 == 0 for code in said[0] & said[1])

    def _is_country(self, name: str) -> bool:
        if self.nouns.isdisjoint(_words("en", "countries")):
            return False
        return bool(find_countries(split_words(name))[0])


async def go_on_to_kind(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths
) -> ScoredRelationPaths:
    """Put the best path with the steps to the asked kind first, where its ends are of another.

    "In which country was X born" asks for the country of the town in which X was born. Where the
    graph does not say what is a country, a relation like "located in" suggests it.
    """
    rows, nouns = found.rank()[:1].tolist(), search.shape.nouns[-1:]
    if not rows or found.chances is None or not await _is_known_kind(ctx, nouns):
        return found
    kind = KindLookup(
        ctx,
        build_traversal(ctx.view),
        frozenset(nouns),
        await load_short_texts(ctx),
        await relation_names(ctx),
    )
    if await _share_of_kind(kind, found.end_entities(rows[0])) >= _ENOUGH:
        return found
    grown, row, guess = found, rows[0], -1
    for _ in range(_FURTHER):
        part, place = grown.list_places()[row]
        longer = extend_relation_paths(search.ways, part.select(np.array([place])), returns=False)
        step, sure = await _choose_step(ctx, kind, longer)
        if step < 0:
            break
        row = len(grown.scores)
        grown = grown.append(longer.select(np.array([step])), np.array([-1], np.float32))
        if sure:
            return _put_first(grown, row, rows[0], 1.0)
        guess = row if guess < 0 else guess
    countries = not kind.nouns.isdisjoint(_words("en", "countries"))
    return _put_first(grown, guess, rows[0], _GUESSED_SHARE) if countries and guess >= 0 else found


async def _is_known_kind(ctx: Context, nouns: Sequence[str]) -> bool:
    """Whether the graph has a word for what is asked for: a type, or a relation's end or head."""
    memo = ctx.view.memo
    if "kinds" not in memo:
        ends = (text.split()[-1:] for text in await load_short_texts(ctx))
        types = {name.casefold() for name in await type_names(ctx)}
        heads = {head_type(name) for name in await relation_names(ctx)}
        memo["kinds"] = {*(word for last in ends for word in last), *types, *heads}
    known: set[str] = memo["kinds"]
    return any(noun in known or noun in _words("en", "countries") for noun in nouns)


async def _choose_step(
    ctx: Context, kind: KindLookup, longer: RelationPathTable
) -> tuple[int, bool]:
    """Return the row of the path that leads on to the kind, and whether the graph says so.

    Else that of one to what lies around its end; -1 for none.
    """
    some = min(len(longer), _MOST_STEPS)
    shares = [await _share_of_kind(kind, longer.ends_of(at)) for at in range(some)]
    if shares and max(shares) >= _ENOUGH:
        return int(np.argmax(shares)), True
    forward = [at for at in range(some) if longer.codes[at, -1] % 2 == 0]
    if not forward:
        return -1, False
    labels = [kind.texts[int(longer.codes[at, -1]) >> 1] for at in forward]
    near = (await embed_cached(ctx, labels) @ (await embed_cached(ctx, _WITHIN)).T).max(axis=1)
    best = int(np.argmax(near))
    return (forward[best], False) if near[best] >= _MIN_WITHIN else (-1, False)


def _put_first(
    found: ScoredRelationPaths, row: int, best: int, share: float
) -> ScoredRelationPaths:
    """Put a path before the one that was the best, with a share of its chance."""
    assert found.chances is not None, "only paths that were judged go on"
    scores, chances = found.scores.copy(), found.chances.copy()
    scores[row], chances[row] = scores[best] + 1, share * chances[best]
    return replace(found, scores=scores, chances=chances)


async def _share_of_kind(kind: KindLookup, ends: Ints) -> float:
    """Return the share of a path's ends that are of the kind."""
    some = np.unique(ends)[:_MOST_LOOKED_AT]
    return float((await kind.mark(some)).mean()) if len(some) else 0.0
