"""The extraction schema: entity types, relations and attribute types, and its file format.

The file is TOML (or the same as JSON), meant to be edited: three tables from a type's name to its
description.

    [entities]
    person = "a human being, real or invented"

    [relations]
    "born in" = "a person's place or date of birth"

    [attributes]
    occupation = "what a person does for a living"
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from clew.errors import ConfigError
from clew.text.unicode import clean, digest, normalize_name

TypeKind = Literal["entity", "relation", "attribute"]
TYPE_KINDS: tuple[TypeKind, ...] = get_args(TypeKind)
TABLES: dict[TypeKind, str] = {
    "entity": "entities",
    "relation": "relations",
    "attribute": "attributes",
}
MAX_TYPE_CHARS = 60
_SEPARATORS = re.compile(r"[\s_\-]+")
_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")


@lru_cache(maxsize=4096)
def type_key(name: str) -> str:
    """Normalise a type name, so that `bornIn`, `born_in` and `Born in` are the same type."""
    return normalize_name(_SEPARATORS.sub(" ", _CAMEL_CASE.sub(" ", name)))


@dataclass(frozen=True, slots=True)
class SchemaType:
    """One type: its kind, name and description."""

    kind: TypeKind
    name: str
    description: str = ""


@dataclass(frozen=True)
class Schema:
    """The types allowed in extraction, each (kind, name) once, in the order given."""

    types: tuple[SchemaType, ...] = ()

    def types_of(self, kind: TypeKind) -> tuple[SchemaType, ...]:
        """All types of one kind."""
        return tuple(one for one in self.types if one.kind == kind)

    def find(self, kind: TypeKind, name: str) -> SchemaType | None:
        """The type with this name in any spelling, or None."""
        return self._by_key.get((kind, type_key(name)))

    @cached_property
    def _by_key(self) -> dict[tuple[str, str], SchemaType]:
        return {(one.kind, type_key(one.name)): one for one in self.types}

    def with_types(self, added: Sequence[SchemaType]) -> "Schema":
        """A copy with the types of `added` that it lacks."""
        known = dict(self._by_key)
        for one in added:
            known.setdefault((one.kind, type_key(one.name)), one)
        return Schema(tuple(known.values()))

    def without_types(self, removed: Sequence[SchemaType]) -> "Schema":
        """A copy without these types."""
        removed_keys = {(one.kind, type_key(one.name)) for one in removed}
        return Schema(
            tuple(one for one in self.types if (one.kind, type_key(one.name)) not in removed_keys)
        )

    def digest(self) -> str:
        """Short hash of the content, for document stamps."""
        return digest(*(part for t in self.types for part in (t.kind, t.name, t.description)))[:12]

    def to_json(self) -> dict[str, dict[str, str]]:
        """The three tables as plain values."""
        return {
            table: {one.name: one.description for one in self.types_of(kind)}
            for kind, table in TABLES.items()
        }


def parse_schema(tables: Any, source: str = "the schema") -> Schema:
    """Parse the three tables; errors name the table and the type."""
    if not isinstance(tables, Mapping):
        raise ConfigError(f"{source} is not a set of tables: start it with a line [entities].")
    unknown = sorted(set(tables) - set(TABLES.values()))
    if unknown:
        raise ConfigError(
            f"{source} has an unknown table [{unknown[0]}]: use {_format_names(TABLES.values())}."
        )
    found: list[SchemaType] = []
    for kind, table in TABLES.items():
        found += _parse_types(kind, tables.get(table, {}), f"[{table}] in {source}")
    schema = Schema().with_types(found)
    if len(schema.types) < len(found):
        twice = next(one for at, one in enumerate(found) if _is_repeated(one, found[:at]))
        raise ConfigError(
            f"{source} names the {twice.kind} {twice.name!r} twice: spellings that differ in case, "
            "hyphens or underscores are the same type; delete one."
        )
    if not schema.types_of("entity"):
        raise ConfigError(f"{source} has no entity types: add at least one under [entities].")
    return schema


def _is_repeated(one: SchemaType, before: Sequence[SchemaType]) -> bool:
    """Whether a type of this name is in `before`."""
    return Schema(tuple(before)).find(one.kind, one.name) is not None


def _parse_types(kind: TypeKind, table: Any, where: str) -> list[SchemaType]:
    if isinstance(table, list):  # names only, as is common in JSON files
        table = {name: "" for name in table} if all(isinstance(x, str) for x in table) else None
    if not isinstance(table, Mapping):
        raise ConfigError(f'{where} is not a table: write lines like person = "a human being".')
    found = []
    for name, description in table.items():
        if not type_key(name) or len(name) > MAX_TYPE_CHARS:
            raise ConfigError(
                f"{where} has a type named {name[:20]!r}: use 1 to {MAX_TYPE_CHARS} characters."
            )
        if not isinstance(description, str):
            raise ConfigError(f"{where}: the description of {name!r} must be a quoted string.")
        found.append(
            SchemaType(kind, " ".join(clean(name).split()), " ".join(clean(description).split()))
        )
    return found


def load_schema(path: Path) -> Schema:
    """Load a schema file, TOML or JSON by its suffix."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(
            f"the schema file {path} cannot be read ({error.strerror}): check its path."
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the schema file {path} is not UTF-8: save it as UTF-8.") from error
    try:
        tables = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the schema file {path} cannot be parsed: {error}.") from error
    return parse_schema(tables, str(path))


def dump_schema(schema: Schema, form: Literal["toml", "json"] = "toml") -> str:
    """Serialise a schema as TOML or JSON."""
    if form == "json":
        return json.dumps(schema.to_json(), ensure_ascii=False, indent=2) + "\n"
    parts = []
    for table, types in schema.to_json().items():
        lines = [f"{_quote(name)} = {_quote(description)}" for name, description in types.items()]
        parts.append("\n".join([f"[{table}]", *lines]))
    return "\n\n".join(parts) + "\n"


def _quote(text: str) -> str:
    # JSON escapes are valid TOML, but TOML also requires DEL to be escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _format_names(names: Any) -> str:
    return ", ".join(f"[{name}]" for name in names)


DEFAULT_SCHEMA = parse_schema(
    {
        "entities": {
            "person": "a human being, real or invented",
            "organisation": "a company, school, party, band, team, agency or other body",
            "place": "a country, region, town, building, river or other location",
            "event": "something that happens at a time: a war, a match, a disaster, a ceremony",
            "work": "a book, film, song, painting, law, article or other creation",
            "product": "something made to be used or sold: a machine, vehicle, drug, program",
            "living being": "a species, plant, animal or breed",
            "substance": "a material, chemical or food",
            "condition": "an illness, symptom or state",
            "idea": "a concept, theory, method, field or language",
            "award": "a prize, title, rank or office",
            "group": "a people, nationality, religion, family or class",
            "date": "a day, year, century or span of time",
            "number": "an amount, measure or sum",
        },
        "relations": {
            "born in": "place or date of birth",
            "died in": "place or date of death",
            "parent of": "father or mother of",
            "married to": "husband, wife or partner of",
            "relative of": "any other family tie",
            "member of": "belongs to an organisation, team or group",
            "works for": "is employed by or serves",
            "leads": "heads, directs, rules or manages",
            "educated at": "studied or trained at",
            "founded": "started an organisation or place",
            "created": "wrote, made, composed, designed, invented or discovered",
            "performed in": "acted, played, sang or competed in",
            "located in": "lies in, stands at or takes place in",
            "part of": "is a part, member or stage of something larger",
            "owns": "has or controls",
            "received": "was given an award, title or office",
            "took part in": "joined or was involved in an event",
            "happened in": "time of an event or fact",
            "causes": "brings about or leads to",
            "treats": "helps against or cures",
            "uses": "makes use of or needs",
            "kind of": "is an instance or sort of",
            "about": "has as its subject",
            "followed by": "comes before in time or order",
            "opposed to": "fights, competes with or contradicts",
            "similar to": "is like or the same as",
            "has amount": "is measured by a number",
        },
        "attributes": {
            "occupation": "what a person does",
            "nationality": "the country a person or body belongs to",
            "gender": "a person's gender",
            "other name": "an alias, abbreviation or former name",
            "date of birth": "when a person was born",
            "date of death": "when a person died",
            "founding date": "when something began",
            "release date": "when a work or product came out",
            "genre": "the kind of a work",
            "language": "the language of a person or work",
            "population": "how many live there",
            "size": "area, length, height, weight or capacity",
            "position": "rank or role",
            "status": "present state",
            "purpose": "what it is for",
        },
    },
    "the default schema",
)
