"""How what many chunks say becomes one element.

Every function here depends only on the SET of contributions, never on their order, so that
adding and removing documents in any order gives what a fresh build would give.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from clew.names import TOKEN, forms, name_key, token_codes
from clew.text import digest, hash64, normal_name
from clew.types import (
    LITERALS,
    Chunk,
    Entity,
    Extraction,
    Fact,
    FoundEntity,
    FoundFact,
    Participant,
)

_HEAVIEST = 1e308  # that a fact can weigh: JSON and Cypher have no word for what is beyond it


class Mention(NamedTuple):
    """One chunk's word on one entity."""

    surface: str
    type: str = ""
    description: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    about: float = 0.0
    aliases: tuple[str, ...] = ()
    attributes: Mapping[str, str] = MappingProxyType({})


class Saying(NamedTuple):
    """One chunk's word on one fact."""

    text: str
    relation: str = ""
    keywords: tuple[str, ...] = ()
    description: str = ""
    weight: float = 1.0
    span: tuple[int, int] = (0, 0)


EXACT = "="  # how the id of a node of the user's own graph begins


@lru_cache(maxsize=1 << 16)  # the same names come again and again
def entity_id(name: str, exact: bool = False) -> str:
    """The id under which equal names meet; in a graph the user made, only the very same do."""
    return EXACT + digest("node", name) if exact else digest("entity", normal_name(name))


def fact_id(fact: FoundFact, members: Sequence[Participant]) -> str:
    """The id under which equal facts meet: a relation's wording of the text does not matter."""
    said = normal_name(fact.relation) if fact.relation else " ".join(fact.text.split())
    return digest("fact", said, *(f"{m.role}:{m.entity}" for m in members))


@lru_cache(maxsize=1 << 16)
def name_hash(name: str) -> int:
    """A name's loose key as a signed 64-bit number, as SQLite and numpy can hold it."""
    return _signed(hash64(name_key(name)))


@lru_cache(maxsize=1 << 16)
def label_code(label: str) -> int:
    """A relation's or a type's wording as a number, the same for equal wordings; 0 for none."""
    return _signed(hash64(normal_name(label))) if label else 0


def id_code(name: str) -> int:
    """The same for an id, which has no other wordings."""
    return _signed(hash64(name))


def name_forms(entity: Entity) -> list[tuple[int, int, int]]:
    """The other forms an entity may go by: (hash, weight in thousandths, kind as in `names`).

    The tokens of its name come along as forms of kind `TOKEN`, their place for a weight.
    """
    return [] if entity.type in LITERALS else forms_of(entity.name, entity.aliases)


@lru_cache(maxsize=1 << 15)
def forms_of(name: str, aliases: tuple[str, ...] = ()) -> list[tuple[int, int, int]]:
    """The same for a name that stands for a thing."""
    found: dict[int, tuple[int, int, int]] = {}
    for alias in aliases:
        found[name_hash(alias)] = (name_hash(alias), 1000, 0)
    for form in forms(name):
        key = _signed(hash64(form.key))
        found.setdefault(key, (key, round(form.weight * 1000), form.kind))
    found.pop(name_hash(name), None)
    tokens = {code: at for at, code in enumerate(token_codes(name))}
    return [*found.values(), *((code, at, TOKEN) for code, at in tokens.items())]


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def embedded_text(element: Chunk | Entity | Fact) -> str:
    """What of an element is embedded."""
    match element:
        case Chunk(title=title, text=text):
            return f"{title}\n{text}" if title else text
        case Entity(name=name):
            return name
        case Fact(text=text):
            return text


def members_of(fact: FoundFact, exact: bool = False) -> tuple[Participant, ...]:
    """The fact's participants, each entity once per role, in the order said."""
    seen = dict.fromkeys(
        [(entity_id(name, exact), role) for name, role in fact.members if name.strip()]
    )
    return tuple([Participant(entity, role) for entity, role in seen])


def mentions_of(extraction: Extraction) -> dict[str, Mention]:
    """Entity id → mention; members of facts that the extractor forgot to list count too."""
    by_id: dict[str, list[FoundEntity]] = defaultdict(list)
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
                by_id[key].append(FoundEntity(name))
    return {key: _joined(said) for key, said in by_id.items()}


Said = dict[str, tuple[tuple[Participant, ...], Saying]]


def sayings_of(extraction: Extraction) -> Said:
    """Fact id → its members and this chunk's word on it; said twice, it weighs twice."""
    found: Said = {}
    for fact in extraction.facts:
        members = members_of(fact, extraction.exact)
        key = fact_id(fact, members)
        earlier = found[key][1] if key in found else None
        saying = Saying(
            fact.text,
            fact.relation,
            fact.keywords,
            fact.description,
            _added((fact.weight, earlier.weight)) if earlier else round(fact.weight, 9),
            min(fact.span, earlier.span) if earlier else fact.span,
        )
        found[key] = (members, saying)
    return found


def _joined(said: Sequence[FoundEntity]) -> Mention:
    """Several entries of one chunk for one entity, as one mention."""
    if len(said) == 1:
        one = said[0]
        return Mention(
            one.name.strip(),
            one.type,
            one.description,
            tuple(sorted(set(one.spans))) if len(one.spans) > 1 else one.spans,
            one.about,
            tuple(sorted(set(one.aliases))) if one.aliases else (),
            one.attributes,
        )
    names = most_said(one.name.strip() for one in said)
    return Mention(
        names[0],
        first(most_said(one.type for one in said)),
        "\n".join(most_said(one.description for one in said)),
        tuple(sorted({span for one in said for span in one.spans})),
        max(one.about for one in said),
        tuple(sorted({*names[1:], *(alias for one in said for alias in one.aliases)})),
        merged_attributes(one.attributes for one in said),
    )


def merge_entity(key: str, mentions: Sequence[Mention]) -> Entity:
    """One entity from all its mentions."""
    if len(mentions) == 1:  # most are spoken of once, and then there is nothing to weigh
        one = mentions[0]
        aliases = tuple(sorted({*one.aliases} - {one.surface, ""}))
        attributes = dict(sorted(one.attributes.items()))
        return Entity(key, one.surface, one.type, one.description, aliases, attributes, 1)
    names = most_said(m.surface for m in mentions)
    others = {*names[1:], *(alias for m in mentions for alias in m.aliases)} - {names[0], ""}
    return Entity(
        id=key,
        name=names[0],
        type=first(most_said(m.type for m in mentions)),
        description="\n".join(most_said(m.description for m in mentions)),
        aliases=tuple(sorted(others)),
        attributes=merged_attributes(m.attributes for m in mentions),
        support=len(mentions),
    )


def merge_fact(key: str, members: tuple[Participant, ...], sayings: Sequence[Saying]) -> Fact:
    """One fact from all the places that say it; its weight is the sum of theirs."""
    if len(sayings) == 1:
        one = sayings[0]
        words, weight = tuple(sorted({*one.keywords})), round(one.weight, 9)
        return Fact(key, one.text, members, one.relation, words, one.description, weight, 1)
    return Fact(
        id=key,
        text=first(most_said(s.text for s in sayings)),
        participants=members,
        relation=first(most_said(s.relation for s in sayings)),
        keywords=tuple(sorted({word for s in sayings for word in s.keywords})),
        description="\n".join(most_said(s.description for s in sayings)),
        weight=_added(s.weight for s in sayings),
        support=len(sayings),
    )


def _added(weights: Iterable[float]) -> float:
    """Their sum, rounded so that the order cannot show in the last bits; it is never infinite."""
    return round(max(-_HEAVIEST, min(sum(weights), _HEAVIEST)), 9)


def most_said(texts: Iterable[str]) -> list[str]:
    """Distinct non-empty texts, the most frequent first, then in code-point order."""
    said = [text for text in texts if text]
    if len(said) < 2 or len(set(said)) == 1:
        return said[:1]
    counts = Counter(said)
    return sorted(counts, key=lambda text: (-counts[text], text))


def merged_attributes(many: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """For each attribute the value said most often."""
    values: dict[str, list[str]] = defaultdict(list)
    for attributes in many:
        for name, value in attributes.items():
            values[name].append(value)
    return {name: first(most_said(values[name])) for name in sorted(values)}


def first(texts: Sequence[str]) -> str:
    """The first text, or none."""
    return texts[0] if texts else ""
