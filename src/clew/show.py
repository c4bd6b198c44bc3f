"""Details of the documents and entities with one name, for `clew show`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clew.errors import StoreError, suggest
from clew.index.view import View
from clew.store.protocol import DocumentSource, Snapshot
from clew.text.structure import is_heading_line
from clew.text.tables import find_file_name, find_row, read_tables, split_place
from clew.text.unicode import split_words

_DENIED = re.compile(r"\b\w+n['’]t\b", re.IGNORECASE)
_MAX_NAMES = 50_000  # names that are looked through for a part of one, or a similar one
_MAX_ENTITIES = 5  # shown for a part of a name


@dataclass(frozen=True)
class NameDetails:
    """Documents and entities with this name, as JSON-ready dicts."""

    name: str
    documents: list[dict[str, Any]]
    entities: list[dict[str, Any]]


async def find_details(
    name: str, now: Snapshot, sources: Mapping[str, DocumentSource]
) -> NameDetails:
    """Find the documents and entities called `name`."""
    view = View(now.arrays, {})
    documents = []
    stored = name if name in sources else find_file_name(name, sources)
    place = None if stored else split_place(name)
    if stored:
        documents.append(await _describe_document(stored, now, view, sources[stored].document))
    elif place is not None:
        file = place[0] if place[0] in sources else find_file_name(place[0], sources)
        if file:
            documents += await _describe_row(name, now, view, sources[file].document)
    found = view.find_by_name_or_alias(name).tolist()
    if not documents and not found:
        known = await _load_names(now, view)
        found = _find_by_words(name, known)
        if not found:
            words = (word for one in known.values() for word in split_words(one))
            near = suggest(name, [*known.values(), *sources]) or suggest(name, words)
            raise StoreError(
                f"no document or entity is named {name!r}"
                + (near or f"; `clew search {name!r}` finds similar ones")
            )
    entities = [await describe_entity(now, view, at) for at in found]
    return NameDetails(name, documents, entities)


async def _load_names(now: Snapshot, view: View) -> dict[int, str]:
    """Return the entities' names by position, the best connected first, at most so many."""
    connected = view.links("entity_chunk").degrees()
    chosen = (-connected).argsort(kind="stable")[:_MAX_NAMES].tolist()
    keys = view.keys("entity")
    stored = await now.entities([int(keys[at]) for at in chosen])
    return {at: stored[int(keys[at])].name for at in chosen}


def _find_by_words(name: str, known: Mapping[int, str]) -> list[int]:
    """Return the few entities whose names have all these words: "dana" is part of "Dana Petrov"."""
    wanted = set(split_words(name))
    found = [at for at, one in known.items() if wanted and wanted <= _whole_words(one)]
    return found[:_MAX_ENTITIES]


def _whole_words(name: str) -> set[str]:
    """Return the words of a name; "don't" has no word "don"."""
    return set(split_words(_DENIED.sub(" ", name)))


async def _describe_document(name: str, now: Snapshot, view: View, key: str) -> dict[str, Any]:
    document = (await now.documents([key]))[key]
    chunks = await now.chunks(view.keys("chunk").tolist())
    own = [chunk for chunk in chunks.values() if chunk.document == key]
    return {
        "id": key,
        "name": name,
        "title": document.title,
        "characters": len(document.text),
        "chunks": len(own),
        "metadata": dict(document.metadata),
        "text": document.text,
    }


async def _describe_row(name: str, now: Snapshot, view: View, key: str) -> list[dict[str, Any]]:
    """Describe the row of a table at a place such as "offices.csv, row 3", if there is one."""
    place = split_place(name)
    document = (await now.documents([key]))[key]
    span = find_row(read_tables(document.text, document.metadata), *place[1:]) if place else None
    if place is None or span is None:
        return []
    chunks = (await now.chunks(view.keys("chunk").tolist())).values()
    held = [one for one in chunks if one.document == key and span[0] <= one.start < span[1]]
    text = document.text[slice(*span)]
    where = {"document": place[0], "start": span[0], "end": span[1]}
    counts = {"characters": len(text), "chunks": len(held)}
    return [{"id": key, "name": name, "title": document.title, **counts, **where, "text": text}]


async def describe_entity(now: Snapshot, view: View, at: int) -> dict[str, Any]:
    """Describe the entity at a position, with its facts and where they are stated."""
    key = int(view.keys("entity")[at])
    entity = (await now.entities([key]))[key]
    fact_keys = [int(view.keys("fact")[f]) for f in view.links("entity_fact").row(at)]
    facts = await now.facts(fact_keys)
    supports = await now.supports("fact", fact_keys)
    chunk_keys = [int(view.keys("chunk")[c]) for c in view.links("entity_chunk").row(at)]
    chunks = {chunk.id: chunk for chunk in (await now.chunks(chunk_keys)).values()}
    names = await now.names([chunk.document for chunk in chunks.values()])
    listed: dict[tuple[Any, ...], dict[str, Any]] = {}
    for fact_key in fact_keys:
        support = supports[fact_key][0]
        chunk_of_fact = chunks.get(support.chunk)
        fact = {
            "text": facts[fact_key].text,
            "relation": facts[fact_key].relation,
            "doc": names[chunk_of_fact.document][0] if chunk_of_fact else "",
            "title": chunk_of_fact.title if chunk_of_fact else "",
            "heading": chunk_of_fact.heading if chunk_of_fact else "",
            "chunk": support.chunk,
            "start": support.start,
            "end": support.end,
        }
        if is_heading_line(facts[fact_key].text):
            continue  # the line of a heading is found by, but says nothing of what it names
        # A merged entity takes part in a sentence once per name, so duplicates are dropped.
        listed.setdefault(tuple(fact.values()), fact)
    return {
        "id": entity.id,
        "name": entity.name,
        "type": entity.type,
        "description": entity.description,
        "aliases": list(entity.aliases),
        "attributes": dict(entity.attributes),
        "support": len(chunks) or entity.support,  # counts a chunk with two of its names once
        "facts": list(listed.values()),
    }
