"""Fetches community reports, every point with its citations."""

from collections.abc import Mapping, Sequence

import numpy as np

from clew.context import Context
from clew.graph.forest import TREES, format_marks
from clew.retrieve.grown.grove import get_forest, load_summaries, summary_source
from clew.tree.told import ChunkSpan, SummaryPoint
from clew.types import Chunk, Citation, Hit, Report, Support

_MAX_CITATIONS_PER_POINT = 2  # citations of one point


async def fetch_reports(ctx: Context, hits: Sequence[Hit]) -> tuple[Report, ...]:
    """Fetch names, summaries and the places they cite, in one batch per kind."""
    if not hits:
        return ()
    trees, at = get_forest(ctx), np.array([hit.at for hit in hits], np.int64)
    texts = await load_summaries(ctx, at)
    places = await _find_places(ctx, [point for hit in hits for point in texts[hit.at].points])
    chunk_at = await ctx.snapshot.chunks(
        list({place.chunk for many in places.values() for place in many})
    )
    names = await ctx.snapshot.names([chunk.document for chunk in chunk_at.values()])
    sizes = summary_source(ctx).sizes
    found = []
    for hit, mark in zip(hits, format_marks(trees, at), strict=True):
        one = texts[hit.at]
        cited = [place for point in one.points for place in places[point]]
        found.append(
            Report(
                *(mark, one.name, int(trees.level[hit.at]), one.summary, hit.score),
                tree=TREES[int(trees.tree[hit.at])],
                size=int(sizes[hit.at]),
                keywords=one.keywords,
                citations=_build_citations(cited, chunk_at, names),
                by=hit.by,
            )
        )
    return tuple(found)


async def _find_places(
    ctx: Context, points: Sequence[SummaryPoint]
) -> dict[SummaryPoint, tuple[ChunkSpan, ...]]:
    """Return the places of each point: its own, or those of the facts it rests on."""
    supports = await ctx.snapshot.supports("fact", list({key for p in points for key in p.facts}))
    wanted: dict[SummaryPoint, list[tuple[str, Support]]] = {
        p: [(s.chunk, s) for key in p.facts for s in supports.get(key, [])[:1]] for p in points
    }
    key_of = await _chunk_keys_by_id(ctx, points)
    found = {}
    for point in points:
        from_facts = [
            ChunkSpan(key_of[chunk], s.start, s.end)
            for chunk, s in wanted[point]
            if chunk in key_of
        ]
        found[point] = (*point.places, *from_facts)[:_MAX_CITATIONS_PER_POINT]
    return found


async def _chunk_keys_by_id(ctx: Context, points: Sequence[SummaryPoint]) -> dict[str, int]:
    """Map the ids of the chunks that state the points' facts to their keys."""
    facts, keys = ctx.view.keys("fact"), ctx.view.keys("chunk")
    links = ctx.view.links("fact_chunk")
    wanted = np.unique([key for point in points for key in point.facts]).astype(np.int64)
    _, edges = links.edges_of(np.searchsorted(facts, wanted))
    near = np.unique(links.columns[edges])
    chunks = await ctx.snapshot.chunks([int(keys[at]) for at in near])
    return {chunk.id: key for key, chunk in chunks.items()}


def _build_citations(
    places: Sequence[ChunkSpan], chunk_at: Mapping[int, Chunk], names: Mapping[str, tuple[str, ...]]
) -> tuple[Citation, ...]:
    found = []
    for place in dict.fromkeys(places):
        chunk = chunk_at.get(place.chunk)
        if chunk is None:
            continue
        doc = names.get(chunk.document, ())
        quote = chunk.text[place.start - chunk.start : place.end - chunk.start]
        name = doc[0] if doc else chunk.document
        found.append(Citation(name, chunk.id, place.start, place.end, quote))
    return tuple(found)
