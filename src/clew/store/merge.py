"""Merge the mentions of many chunks into one entity or fact.

Every function depends only on the SET of mentions, never on their order, so that adding and
removing documents in any order gives the same result as a fresh build.
"""

import ctypes
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import md5
from itertools import repeat
from types import MappingProxyType
from typing import NamedTuple

from clew.text.names import TOKEN, encode_name, fold_token, name_key, short_forms
from clew.text.small_names import small_code
from clew.text.structure import CRUMB_SEPARATOR
from clew.text.tables import is_row_place
from clew.text.unicode import digest, hash64, normalize_name, to_signed
from clew.types import (
    LITERAL_TYPES,
    Chunk,
    Entity,
    Extraction,
    Fact,
    Participant,
    RawEntity,
    RawFact,
)

EXACT_ID_PREFIX = "="  # prefix of the ids of imported graph nodes
# Characters of a description or an attribute's value, and of all keywords, that are embedded: about
# what encoders read of a text, so that the length of the rest costs nothing.
_MAX_DESCRIPTION_CHARS = 1000
_MAX_KEYWORDS_CHARS = 300
_MAX_ATTRIBUTES = 64  # of one entity that are embedded
_MAX_WEIGHT = 1e308  # of a fact: JSON and Cypher cannot express infinity


class Mention(NamedTuple):
    """What one chunk says about one entity."""

    surface: str
    type: str = ""
    description: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    about: float = 0.0
    aliases: tuple[str, ...] = ()
    attributes: Mapping[str, str] = MappingProxyType({})


class FactMention(NamedTuple):
    """What one chunk says about one fact."""

    text: str
    relation: str = ""
    keywords: tuple[str, ...] = ()
    description: str = ""
    weight: float = 1.0
    span: tuple[int, int] = (0, 0)


FactMentions = dict[str, tuple[tuple[Participant, ...], FactMention]]
"""Participants and mention of each fact, by fact id."""


def node_code(identity: str, name: str) -> int:
    """1 for a node of an imported graph, and twice the number of how its name is written."""
    return identity.startswith(EXACT_ID_PREFIX) + 2 * small_code(name)


@lru_cache(maxsize=1 << 16)  # names recur often
def entity_id(name: str, exact: bool = False) -> str:
    """Id shared by equal normalised names; with `exact`, only by identical names."""
    if exact:
        return EXACT_ID_PREFIX + digest("node", name)
    return digest("entity", normalize_name(name))


def fact_id(fact: RawFact, members: Sequence[Participant]) -> str:
    """Id shared by equal facts: with a relation, the text of the fact does not matter."""
    statement = normalize_name(fact.relation) if fact.relation else " ".join(fact.text.split())
    return digest("fact", statement, *(f"{m.role}:{m.entity}" for m in members))


def compute_fact_id(fact: Fact) -> str:
    """The id that a stored fact must have."""
    return fact_id(RawFact(fact.text, (), fact.relation), fact.participants)


@lru_cache(maxsize=1 << 16)
def name_hash(name: str) -> int:
    """Hash of a name's loose key as a signed 64-bit integer, for SQLite and numpy."""
    return to_signed(hash64(name_key(name)))


@lru_cache(maxsize=1 << 16)
def label_code(label: str) -> int:
    """Hash of a normalised relation or type label; 0 for an empty one."""
    return to_signed(hash64(normalize_name(label))) if label else 0


def id_code(name: str) -> int:
    """Hash of an id, without normalisation."""
    return to_signed(hash64(name))


def content_code(name: str) -> int:
    """Number of an id that any database computes alike: the first half of its MD5."""
    found = md5(name.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    return int.from_bytes(found.digest()[:8], "big", signed=True)


def entity_form_rows(entity: Entity) -> list[tuple[int, int, int]]:
    """Short forms and aliases of an entity: (hash, weight in thousandths, kind as in `names`).

    The tokens of its name are included as kind `TOKEN`, with their position as weight.
    """
    return [] if entity.type in LITERAL_TYPES else name_form_rows(entity.name, entity.aliases)


@lru_cache(maxsize=1 << 15)
def name_form_rows(name: str, aliases: tuple[str, ...] = ()) -> list[tuple[int, int, int]]:
    """The same for a name and its aliases."""
    found = {name_hash(alias): (name_hash(alias), 1000, 0) for alias in aliases}
    for form in short_forms(name):
        key = to_signed(hash64(form.key))
        found.setdefault(key, (key, round(form.weight * 1000), form.kind))
    found.pop(name_hash(name), None)
    tokens = {code: at for at, code in enumerate(encode_name(name))}
    return [*found.values(), *((code, at, TOKEN) for code, at in tokens.items())]


def release_memory() -> None:
    """Empty the caches of names, which hold tens of thousands, and give freed memory back."""
    for cached in (entity_id, name_hash, name_form_rows, normalize_name, name_key, fold_token):
        cached.cache_clear()
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)  # of glibc, which else keeps what lies between what is in use


def embedded_text(element: Chunk | Entity | Fact) -> str:
    """The text of an element that is embedded."""
    match element:
        case Chunk(title=title, heading=heading, text=text):
            # A chunk within a section lacks its headings; elsewhere they are in the text already.
            crumbs = heading.split(CRUMB_SEPARATOR) if heading else []
            missing = [
                part
                for part in crumbs
                if part != title and part not in text and not is_row_place(part)
            ]
            return "\n".join(filter(None, (title, CRUMB_SEPARATOR.join(missing), text)))
        case Entity(name=name):
            return name
        case Fact(text=text):
            return text


def detailed_text(element: Entity | Fact) -> str:
    """The text of an element with its details, of bounded length; empty if it has none."""
    about = _shorten(element.description, _MAX_DESCRIPTION_CHARS)
    if isinstance(element, Entity):
        kind = f" ({element.type})" if element.type else ""
        return f"{element.name}{kind}: {about}" if about else ""
    words = _shorten(", ".join(element.keywords), _MAX_KEYWORDS_CHARS)
    parts = [part for part in (words, about) if part and part not in element.text]
    return "\n".join([element.text, *parts]) if parts else ""


def attribute_texts(entity: Entity) -> list[str]:
    """The texts of an entity's attributes that are embedded, each with the entity's name."""
    listed = sorted(entity.attributes.items())[:_MAX_ATTRIBUTES]
    return [
        f"{entity.name}: {_shorten(name, _MAX_KEYWORDS_CHARS)} {short}"
        for name, value in listed
        if (short := _shorten(value, _MAX_DESCRIPTION_CHARS))
    ]


def _shorten(text: str, most: int) -> str:
    """One line of at most so many characters, cut at a word where there is one."""
    line = " ".join(text[: 2 * most].split())
    if len(line) <= most:
        return line
    return line[:most].rpartition(" ")[0] or line[:most]


def list_participants(fact: RawFact, exact: bool = False) -> tuple[Participant, ...]:
    """The fact's participants in order, each entity once per role."""
    seen = dict.fromkeys(
        [(entity_id(name, exact), role) for name, role in fact.members if name.strip()]
    )
    return tuple([Participant(entity, role) for entity, role in seen])


def group_mentions(extraction: Extraction) -> dict[str, Mention]:
    """Mentions by entity id, including fact members that the extractor did not list."""
    by_id: dict[str, list[RawEntity]] = defaultdict(list)
    for entity in extraction.entities:
        if entity.name.strip():
            by_id[entity_id(entity.name, extraction.exact)].append(entity)
    listed = {entity.name for entity in extraction.entities}
    for fact in extraction.facts:
        for name, _ in fact.members:
            if name in listed or not name.strip():
                continue
            listed.add(name)
            key = entity_id(name, extraction.exact)
            if key not in by_id:
                by_id[key].append(RawEntity(name))
    return {key: _combine_entries(entries) for key, entries in by_id.items()}


def group_fact_mentions(extraction: Extraction) -> FactMentions:
    """Participants and mention by fact id; the weights of repeated facts are summed."""
    found: FactMentions = {}
    for fact in extraction.facts:
        members = list_participants(fact, extraction.exact)
        key = fact_id(fact, members)
        earlier = found[key][1] if key in found else None
        mention = FactMention(
            fact.text,
            fact.relation,
            fact.keywords,
            fact.description,
            _sum_weights((fact.weight, earlier.weight)) if earlier else round(fact.weight, 9),
            min(fact.span, earlier.span) if earlier else fact.span,
        )
        found[key] = (members, mention)
    return found


def _combine_entries(entries: Sequence[RawEntity]) -> Mention:
    """Combine several entries of one chunk for one entity into one mention."""
    if len(entries) == 1:  # fast path for the most common case
        only = entries[0]
        spans = tuple(sorted(set(only.spans))) if len(only.spans) > 1 else only.spans
        aliases = tuple(sorted(set(only.aliases))) if only.aliases else ()
        surface, kind, text = only.name.strip(), only.type, only.description
        return Mention(surface, kind, text, spans, only.about, aliases, only.attributes)
    names = rank_by_frequency(entry.name.strip() for entry in entries)
    return Mention(
        names[0],
        first_or_empty(rank_by_frequency(entry.type for entry in entries)),
        "\n".join(rank_by_frequency(entry.description for entry in entries)),
        tuple(sorted({span for entry in entries for span in entry.spans})),
        max(entry.about for entry in entries),
        tuple(sorted({*names[1:], *(alias for entry in entries for alias in entry.aliases)})),
        merge_attributes(entry.attributes for entry in entries),
    )


def merge_entity(key: str, mentions: Sequence[Mention], times: Sequence[int] = ()) -> Entity:
    """Merge all mentions of one entity; each counts as often as `times` says, or once."""
    support = sum(times) if times else len(mentions)
    if len(mentions) == 1:  # fast path for the most common case
        only = mentions[0]
        aliases = tuple(sorted({*only.aliases} - {only.surface, ""}))
        attributes = dict(sorted(only.attributes.items()))
        return Entity(key, only.surface, only.type, only.description, aliases, attributes, support)
    names = rank_by_frequency((m.surface for m in mentions), times)
    others = {*names[1:], *(alias for m in mentions for alias in m.aliases)} - {names[0], ""}
    return Entity(
        id=key,
        name=names[0],
        type=first_or_empty(rank_by_frequency((m.type for m in mentions), times)),
        description="\n".join(rank_by_frequency((m.description for m in mentions), times)),
        aliases=tuple(sorted(others)),
        attributes=merge_attributes((m.attributes for m in mentions), times),
        support=support,
    )


def merge_fact(key: str, members: tuple[Participant, ...], mentions: Sequence[FactMention]) -> Fact:
    """Merge all mentions of one fact; its weight is the sum of theirs."""
    if len(mentions) == 1:
        only = mentions[0]
        keywords, weight = tuple(sorted({*only.keywords})), round(only.weight, 9)
        return Fact(key, only.text, members, only.relation, keywords, only.description, weight, 1)
    return Fact(
        id=key,
        text=first_or_empty(rank_by_frequency(m.text for m in mentions)),
        participants=members,
        relation=first_or_empty(rank_by_frequency(m.relation for m in mentions)),
        keywords=tuple(sorted({word for m in mentions for word in m.keywords})),
        description="\n".join(rank_by_frequency(m.description for m in mentions)),
        weight=_sum_weights(m.weight for m in mentions),
        support=len(mentions),
    )


def _sum_weights(weights: Iterable[float]) -> float:
    """Finite sum, rounded so that it does not depend on the order of the weights."""
    return round(max(-_MAX_WEIGHT, min(sum(weights), _MAX_WEIGHT)), 9)


def rank_by_frequency(texts: Iterable[str], times: Sequence[int] = ()) -> list[str]:
    """Distinct non-empty texts, the most frequent first, then in code-point order."""
    if times:
        counts: Counter[str] = Counter()
        for text, number in zip(texts, times, strict=True):
            counts[text] += number
        del counts[""]
    else:
        present = [text for text in texts if text]
        if len(present) < 2 or len(set(present)) == 1:
            return present[:1]
        counts = Counter(present)
    return sorted(counts, key=lambda text: (-counts[text], text))


def merge_attributes(
    many: Iterable[Mapping[str, str]], times: Sequence[int] = ()
) -> dict[str, str]:
    """The most frequent value of each attribute."""
    values: dict[str, dict[str, int]] = defaultdict(dict)
    for attributes, number in zip(many, times or repeat(1), strict=False):
        for name, value in attributes.items():
            values[name][value] = values[name].get(value, 0) + number
    return {
        name: first_or_empty(rank_by_frequency(values[name], [*values[name].values()]))
        for name in sorted(values)
    }


def first_or_empty(texts: Sequence[str]) -> str:
    """The first text, or the empty string."""
    return texts[0] if texts else ""
