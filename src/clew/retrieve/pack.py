"""Fetches the texts of what was found from the store, one batch per kind."""

from collections.abc import Mapping, Sequence

from clew.context import Context
from clew.retrieve.grown.report import fetch_reports
from clew.retrieve.texts import fetch_entities, fetch_facts
from clew.types import (
    Chunk,
    Entity,
    Evidence,
    Fact,
    Found,
    Hit,
    Kind,
    NamedEntity,
    Passage,
    Route,
    Statement,
    Support,
)


async def fetch_evidence(ctx: Context, found: Found) -> Evidence:
    """Fetch the texts of everything that was found."""
    on_paths = [at for path in found.paths for at in path.entities]
    facts_on_paths = [at for path in found.paths for at in path.facts]
    chunk_at = await ctx.snapshot.chunks(_element_keys(ctx, "chunk", _positions(found.chunks)))
    fact_at = await fetch_facts(ctx, [*_positions(found.facts), *facts_on_paths])
    entity_at = await fetch_entities(ctx, [*_positions(found.entities), *on_paths])
    supports = await ctx.snapshot.supports(
        "fact", _element_keys(ctx, "fact", _positions(found.facts))
    )
    names = await _document_names(ctx, chunk_at)
    return Evidence(
        chunks=_build_passages(ctx, found.chunks, chunk_at, names),
        entities=_build_entities(found.entities, entity_at),
        facts=await _build_statements(ctx, found, fact_at, supports),
        paths=_build_routes(found, entity_at, fact_at),
        communities=await fetch_reports(ctx, found.communities),
    )


def _positions(hits: Sequence[Hit]) -> list[int]:
    return [hit.at for hit in hits]


def _element_keys(ctx: Context, kind: Kind, positions: Sequence[int]) -> list[int]:
    keys = ctx.view.keys(kind)
    return [int(keys[at]) for at in dict.fromkeys(positions)]


async def _document_names(ctx: Context, chunk_at: Mapping[int, Chunk]) -> dict[str, str]:
    """Map each document id to the first name it was added under."""
    documents = await ctx.snapshot.names([chunk.document for chunk in chunk_at.values()])
    return {key: names[0] if names else key for key, names in documents.items()}


def _build_passages(
    ctx: Context, hits: Sequence[Hit], chunk_at: Mapping[int, Chunk], names: Mapping[str, str]
) -> tuple[Passage, ...]:
    keys = ctx.view.keys("chunk")
    found = []
    for hit in hits:
        chunk = chunk_at.get(int(keys[hit.at]))
        if chunk is not None:
            doc = names.get(chunk.document, chunk.document)
            found.append(
                Passage(
                    *(chunk.id, doc, chunk.title, hit.score, chunk.text, chunk.start, chunk.end),
                    page=chunk.page,
                    by=hit.by,
                )
            )
    return tuple(found)


def _build_entities(
    hits: Sequence[Hit], entity_at: Mapping[int, Entity]
) -> tuple[NamedEntity, ...]:
    pairs = [(hit, entity_at.get(hit.at)) for hit in hits]
    return tuple(
        NamedEntity(entity.id, entity.name, entity.type, hit.score, hit.by)
        for hit, entity in pairs
        if entity is not None
    )


async def _build_statements(
    ctx: Context,
    found: Found,
    fact_at: Mapping[int, Fact],
    supports: Mapping[int, Sequence[Support]],
) -> tuple[Statement, ...]:
    keys, members = ctx.view.keys("fact"), ctx.view.links("fact_entity")
    wanted = [int(m) for hit in found.facts for m in members.row(hit.at)]
    entity_at = await fetch_entities(ctx, wanted)
    chunk_links = ctx.view.links("fact_chunk")
    # A fact of an imported graph is stated in no document.
    first = {hit.at: int(row[0]) for hit in found.facts if len(row := chunk_links.row(hit.at))}
    chunk_at = await ctx.snapshot.chunks(_element_keys(ctx, "chunk", list(first.values())))
    names = await _document_names(ctx, chunk_at)
    statements = []
    for hit in found.facts:
        fact = fact_at.get(hit.at)
        if fact is None:
            continue
        places = supports.get(int(keys[hit.at]), ())
        at = first.get(hit.at)
        chunk = chunk_at.get(int(ctx.view.keys("chunk")[at])) if at is not None else None
        nowhere = places[0] if places else Support("", 0, 0)
        place = next((p for p in places if chunk and p.chunk == chunk.id), nowhere)
        statements.append(
            Statement(
                *(fact.id, fact.text, fact.relation),
                tuple(entity_at[int(m)].name for m in members.row(hit.at)),
                hit.score,
                doc=names.get(chunk.document, "") if chunk else "",
                chunk=place.chunk,
                start=place.start,
                end=place.end,
                by=hit.by,
                title=chunk.title if chunk else "",
                quote=_quote_at(chunk, place),
            )
        )
    return tuple(statements)


def _quote_at(chunk: Chunk | None, place: Support) -> str:
    """Return the document's own words at a place, if this chunk holds it."""
    if chunk is None or chunk.id != place.chunk:
        return ""
    return chunk.text[place.start - chunk.start : place.end - chunk.start]


def _build_routes(
    found: Found, entity_at: Mapping[int, Entity], fact_at: Mapping[int, Fact]
) -> tuple[Route, ...]:
    return tuple(
        Route(
            tuple(entity_at[at].name for at in path.entities),
            tuple(fact_at[at].text for at in path.facts),
            path.score,
            path.by,
        )
        for path in found.paths
    )
