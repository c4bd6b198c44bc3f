"""Details of the documents and entities with one name, for `clew show`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clew.errors import StoreError
from clew.index.view import View
from clew.store.protocol import DocumentSource, Snapshot


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
    if name in sources:
        documents.append(await _describe_document(name, now, view, sources[name].document))
    found = view.find_by_name_or_alias(name)
    entities = [await describe_entity(now, view, int(at)) for at in found]
    if not documents and not entities:
        raise StoreError(
            f"no document or entity is named {name!r}; `clew search {name!r}` finds similar ones"
        )
    return NameDetails(name, documents, entities)


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
            "chunk": support.chunk,
            "start": support.start,
            "end": support.end,
        }
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
