"""Fetch the texts of what was found, in one batch per kind, and cut them to token budgets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from clew.context import Context
from clew.graph.community_tree import TREES, format_marks
from clew.graph.csr import Csr
from clew.llm.openai_api import estimate_tokens
from clew.retrieve.graph_cache import get_forest, load_summaries, summary_source
from clew.retrieve.rank import hit_positions
from clew.tree.summaries import ChunkSpan, SummaryPoint
from clew.types import (
    Chunk,
    Citation,
    Entity,
    EntityLabel,
    Evidence,
    FactText,
    Found,
    Hit,
    Kind,
    NamedEntity,
    Passage,
    Report,
    Route,
    Statement,
    Support,
)

if TYPE_CHECKING:
    from clew.index.view import View

_Element = TypeVar("_Element", Entity, EntityLabel, FactText, Chunk, list[Support], str)
_Fetch = Callable[[Sequence[int]], Awaitable[Mapping[int, _Element]]]
_MAX_CITATIONS_PER_POINT = 2  # citations of one point
_HEAD_ROLE, _TAIL_ROLE = 2, 3  # codes in the arrays
_ROLE_ORDER = {_HEAD_ROLE: 0, _TAIL_ROLE: 2}  # a triple is written head first
_MAX_MENTIONS = 2  # passages behind the description of an entity
_MAX_LINE_TOKENS = 300  # of one entity or fact: longer ones are cut when they are shown
_MAX_CACHED = 20_000  # cached elements of each kind
_MAX_CACHED_CHUNKS = 4096


async def fetch_evidence(ctx: Context, found: Found, *, full: bool = False) -> Evidence:
    """Fetch the texts of everything that was found.

    With `full`, also where the facts of paths and the descriptions of entities are stated.
    """
    on_paths = [at for path in found.paths for at in path.entities]
    facts_on_paths = [at for path in found.paths for at in path.facts]
    fact_at = await fetch_fact_texts(ctx, [*_positions(found.facts), *facts_on_paths])
    entity_at = await fetch_entities(ctx, _positions(found.entities))
    wanted = _positions(found.facts) + (facts_on_paths if full else [])
    first = _first_chunks(ctx.view, [at for at in dict.fromkeys(wanted) if at in fact_at])
    members = _positions_of_members(ctx.view, list(first))
    label_at = await fetch_entity_labels(ctx, [*on_paths, *members])
    shown = [*_positions(found.chunks), *(at for at in first.values() if at >= 0)]
    chunk_at = await _chunks_by_key(ctx, shown)
    names = await _document_names(ctx, chunk_at)
    stated = await _fetch_statements(ctx, first, (fact_at, chunk_at, label_at), names, found.facts)
    return Evidence(
        chunks=_build_passages(ctx, found.chunks, chunk_at, names),
        entities=await _build_entities(ctx, found.entities, entity_at, full),
        facts=tuple(stated[hit.at] for hit in found.facts if hit.at in stated),
        paths=_build_routes(found, label_at, fact_at, stated if full else {}),
        communities=await fetch_reports(ctx, found.communities),
    )


def _positions(hits: Sequence[Hit]) -> list[int]:
    return [hit.at for hit in hits]


async def _chunks_by_key(ctx: Context, positions: Sequence[int]) -> dict[int, Chunk]:
    keys = ctx.view.keys("chunk")
    return {int(keys[at]): chunk for at, chunk in (await fetch_chunks(ctx, positions)).items()}


async def _document_names(ctx: Context, chunk_at: Mapping[int, Chunk]) -> dict[str, str]:
    """Map each document id to the first name it was added under; a view keeps them."""
    kept: dict[str, str] = ctx.view.memo.setdefault("document names", {})
    wanted = {chunk.document for chunk in chunk_at.values()}
    missing = [key for key in wanted if key not in kept]
    if len(kept) + len(missing) > _MAX_CACHED:
        kept.clear()
        missing = list(wanted)
    if missing:
        documents = await ctx.snapshot.names(missing)
        kept.update({key: names[0] if names else key for key, names in documents.items()})
    return {key: kept[key] for key in wanted if key in kept}


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
                    heading=chunk.heading,
                )
            )
    return tuple(found)


async def _build_entities(
    ctx: Context, hits: Sequence[Hit], entity_at: Mapping[int, Entity], full: bool
) -> tuple[NamedEntity, ...]:
    known = {hit.at: entity_at[hit.at] for hit in hits if hit.at in entity_at}
    described = [at for at, entity in known.items() if entity.description or entity.attributes]
    sources = await _fetch_mentions(ctx, described) if full else {}
    return tuple(
        NamedEntity(
            *(known[hit.at].id, known[hit.at].name, known[hit.at].type, hit.score, hit.by),
            description=known[hit.at].description,
            attributes=tuple(known[hit.at].attributes.items()),
            sources=sources.get(hit.at, ()),
        )
        for hit in hits
        if hit.at in known
    )


async def _fetch_mentions(ctx: Context, entities: Sequence[int]) -> dict[int, tuple[Passage, ...]]:
    """Fetch the passages that mention each entity most: its description comes from them."""
    links = ctx.view.links("entity_chunk")
    chunks = {at: _heaviest(links, at, _MAX_MENTIONS) for at in entities}
    hits = [
        Hit(at, 0.0, "mention") for at in dict.fromkeys(c for some in chunks.values() for c in some)
    ]
    chunk_at = await _chunks_by_key(ctx, _positions(hits))
    names = await _document_names(ctx, chunk_at)
    built = {
        hit.at: passages[0]
        for hit in hits
        if (passages := _build_passages(ctx, [hit], chunk_at, names))
    }
    return {at: tuple(built[c] for c in some if c in built) for at, some in chunks.items()}


def _heaviest(links: Csr, row: int, most: int) -> list[int]:
    begin, end = int(links.starts[row]), int(links.starts[row + 1])
    order = np.argsort(-links.weights[begin:end], kind="stable")[:most]
    return [int(at) for at in links.columns[begin:end][order]]


def _first_chunks(view: View, facts: Sequence[int]) -> dict[int, int]:
    """Return the first chunk that states each fact; -1 for those of an imported graph."""
    links = view.links("fact_chunk")
    rows = {at: links.row(at) for at in facts}
    return {at: int(row[0]) if len(row) else -1 for at, row in rows.items()}


def _positions_of_members(view: View, facts: Sequence[int]) -> list[int]:
    members = view.links("fact_entity")
    _, edge = members.edges_of(np.array(facts, np.int64))
    found: list[int] = members.columns[edge].tolist()
    return found


async def _fetch_statements(
    ctx: Context,
    first: Mapping[int, int],
    fetched: tuple[Mapping[int, FactText], Mapping[int, Chunk], Mapping[int, EntityLabel]],
    names: Mapping[str, str],
    hits: Sequence[Hit],
) -> dict[int, Statement]:
    """Fetch where each fact is stated; `first` has the chunk of each, `hits` the scores.

    `fetched` are the facts, the chunks by key, and the facts' members.
    """
    kept: dict[int, _Stated] = ctx.view.memo.setdefault("statements", {})
    missing = [at for at in first if at not in kept]
    if len(kept) + len(missing) > _MAX_CACHED:
        kept.clear()
        missing = list(first)
    places = await _fetch_places(ctx, first, missing, fetched)
    for at in missing:
        kept[at] = _prepare_statement(ctx.view, at, first[at], places.get(at), fetched, names)
    hit_at, unscored = {hit.at: hit for hit in reversed(hits)}, Hit(-1, 0.0, "")
    return {at: kept[at].make(hit_at.get(at, unscored)) for at in first}


async def _fetch_places(
    ctx: Context,
    first: Mapping[int, int],
    facts: Sequence[int],
    fetched: tuple[Mapping[int, FactText], Mapping[int, Chunk], Mapping[int, EntityLabel]],
) -> dict[int, Support]:
    """Return where each fact is stated: in its first chunk, if it is stated there.

    What stands there tells whether a span is right; a fact in other words than its chunk's has
    what is stored compared with what was extracted.
    """
    fact_at, chunk_at, _ = fetched
    spans = await _fetch_cached(ctx, "fact", facts, ctx.snapshot.fact_spans, "spans")
    found, unsure = dict[int, Support](), list[int]()
    for at in facts:
        chunk = _find_stating(ctx.view, first[at], chunk_at)
        place = _choose_place(chunk, spans.get(at, ()))
        if place is None or _quote_at(chunk, place) != fact_at[at].text:
            unsure.append(at)
        else:
            found[at] = place
    supports = partial(ctx.snapshot.supports, "fact")
    checked = await _fetch_cached(ctx, "fact", unsure, supports, "places")
    for at, places in checked.items():
        chunk = _find_stating(ctx.view, first[at], chunk_at)
        if (place := _choose_place(chunk, places)) is not None:
            found[at] = place
    return found


def _find_stating(view: View, at: int, chunk_at: Mapping[int, Chunk]) -> Chunk | None:
    """Return the chunk at a position, among those that were fetched; None of position -1."""
    return chunk_at.get(int(view.keys("chunk")[at])) if at >= 0 else None


def _choose_place(chunk: Chunk | None, places: Sequence[Support]) -> Support | None:
    """Return the place in a chunk, or else the first one; None if there is none."""
    own = next((place for place in places if chunk and place.chunk == chunk.id), None)
    return own or next(iter(places), None)


@dataclass(frozen=True, slots=True)
class _Stated:
    """A statement but for its score; questions find the same ones."""

    head: tuple[str, str, str, tuple[str, ...]]
    rest: Mapping[str, Any]

    def make(self, hit: Hit) -> Statement:
        """Return the statement as it was found."""
        return Statement(*self.head, hit.score, by=hit.by, **self.rest)


def _prepare_statement(
    view: View,
    at: int,
    stating: int,
    place: Support | None,
    fetched: tuple[Mapping[int, FactText], Mapping[int, Chunk], Mapping[int, EntityLabel]],
    names: Mapping[str, str],
) -> _Stated:
    fact_at, chunk_at, label_at = fetched
    fact = fact_at[at]
    chunk = _find_stating(view, stating, chunk_at)
    place = place or Support("", 0, 0)
    named = [label_at[member] for member in _members_in_order(view, at, fact.text, label_at)]
    rest = {
        "doc": names.get(chunk.document, "") if chunk else "",
        "chunk": place.chunk,
        "start": place.start,
        "end": place.end,
        "title": chunk.title if chunk else "",
        "quote": _quote_at(chunk, place),
        "keywords": fact.keywords,
        "description": fact.description,
    }
    return _Stated((fact.id, fact.text, fact.relation, tuple(one.name for one in named)), rest)


def _members_in_order(
    view: View, fact: int, text: str, label_at: Mapping[int, EntityLabel]
) -> list[int]:
    """Return those who take part in a fact, the head of a triple first and its tail last.

    Others come as the text names them, then by name: positions depend on what was added when.
    """
    members = view.links("fact_entity")
    row, roles = members.row(fact).tolist(), members.row_weights(fact).tolist()
    order = {member: _ROLE_ORDER.get(int(role), 1) for member, role in zip(row, roles, strict=True)}

    def place(member: int) -> tuple[int, int, str]:
        name = label_at[member].name
        at = text.find(name)
        return order[member], at if at >= 0 else len(text), name

    return sorted(row, key=place)


def _quote_at(chunk: Chunk | None, place: Support) -> str:
    """Return the document's own words at a place, if this chunk holds it."""
    if chunk is None or chunk.id != place.chunk:
        return ""
    return chunk.text[place.start - chunk.start : place.end - chunk.start]


def _build_routes(
    found: Found,
    label_at: Mapping[int, EntityLabel],
    fact_at: Mapping[int, FactText],
    stated: Mapping[int, Statement],
) -> tuple[Route, ...]:
    return tuple(
        Route(
            tuple(label_at[at].name for at in path.entities),
            tuple(fact_at[at].text for at in path.facts),
            path.score,
            path.by,
            tuple(stated[at] for at in path.facts) if stated else (),
        )
        for path in found.paths
    )


async def fetch_reports(ctx: Context, hits: Sequence[Hit]) -> tuple[Report, ...]:
    """Fetch names, summaries and the places they cite, in one batch per kind."""
    if not hits:
        return ()
    trees, at = get_forest(ctx), hit_positions(hits)
    texts = await load_summaries(ctx, at)
    places = await _find_places(ctx, [point for hit in hits for point in texts[hit.at].points])
    chunk_at = await ctx.snapshot.chunks(
        list({place.chunk for many in places.values() for place in many})
    )
    names = await _document_names(ctx, chunk_at)
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
    key_of = await _chunk_keys_by_id(ctx, points)
    found = {}
    for point in points:
        first = [support for key in point.facts for support in supports.get(key, [])[:1]]
        from_facts = [
            ChunkSpan(key_of[s.chunk], s.start, s.end) for s in first if s.chunk in key_of
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
    places: Sequence[ChunkSpan], chunk_at: Mapping[int, Chunk], names: Mapping[str, str]
) -> tuple[Citation, ...]:
    found = []
    for place in dict.fromkeys(places):
        chunk = chunk_at.get(place.chunk)
        if chunk is not None:
            quote = chunk.text[place.start - chunk.start : place.end - chunk.start]
            doc = names.get(chunk.document, chunk.document)
            found.append(Citation(doc, chunk.id, place.start, place.end, quote))
    return tuple(found)


async def fetch_entities(ctx: Context, positions: Sequence[int]) -> dict[int, Entity]:
    """Fetch entities by position; unknown positions are left out."""
    return await _fetch_cached(ctx, "entity", positions, ctx.snapshot.entities)


async def fetch_entity_labels(ctx: Context, positions: Sequence[int]) -> dict[int, EntityLabel]:
    """Fetch ids and names of entities by position; unknown positions are left out."""
    return await _fetch_cached(ctx, "entity", positions, ctx.snapshot.entity_labels, "labels")


async def fetch_fact_texts(ctx: Context, positions: Sequence[int]) -> dict[int, FactText]:
    """Fetch what facts say by position; unknown positions are left out."""
    return await _fetch_cached(ctx, "fact", positions, ctx.snapshot.fact_texts, "sayings")


async def fetch_documents(ctx: Context, positions: Sequence[int]) -> list[str]:
    """Fetch the ids of the documents that chunks are of, without the chunks' texts."""
    documents = ctx.snapshot.chunk_documents
    found = await _fetch_cached(ctx, "chunk", positions, documents, "documents")
    return [found[at] for at in positions]


async def fetch_chunks(ctx: Context, positions: Sequence[int]) -> dict[int, Chunk]:
    """Fetch chunks by position; unknown positions are left out."""
    return await _fetch_cached(ctx, "chunk", positions, ctx.snapshot.chunks)


async def _fetch_cached(
    ctx: Context,
    kind: Kind,
    positions: Sequence[int],
    fetch: _Fetch[_Element],
    what: str = "texts",
) -> dict[int, _Element]:
    cache: dict[int, _Element] = ctx.view.memo.setdefault(f"{kind} {what}", {})
    wanted = list(dict.fromkeys(positions))
    missing = [at for at in wanted if at not in cache]
    most = _MAX_CACHED_CHUNKS if kind == "chunk" else _MAX_CACHED
    if missing and len(cache) + len(missing) > most:
        cache.clear()
        missing = wanted
    if missing:
        keys = ctx.view.keys(kind)
        wanted_keys = keys[missing].tolist()
        fetched = await fetch(wanted_keys)
        pairs = zip(missing, wanted_keys, strict=True)
        cache.update({at: fetched[key] for at, key in pairs if key in fetched})
    return {at: cache[at] for at in positions if at in cache}


NO_LIMIT = 1 << 40


@dataclass(frozen=True)
class Budget:
    """Cuts each kind of evidence to a token budget, best first; passages get what the total leaves.

    A budget of 0 keeps nothing of its kind, but the best passage always stays.
    """

    entities: int = NO_LIMIT
    facts: int = NO_LIMIT
    chunks: int = NO_LIMIT
    total: int = NO_LIMIT

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Cut `entities`, `facts` and `chunks`."""
        entities = await _count_tokens(ctx, "entity", found.entities)
        facts = await _count_tokens(ctx, "fact", found.facts)
        chunks = await _count_tokens(ctx, "chunk", found.chunks)
        entity_count = count_within_budget(entities, self.entities)
        fact_count = count_within_budget(facts, self.facts)
        left = self.total - sum(entities[:entity_count]) - sum(facts[:fact_count])
        chunk_count = max(1, count_within_budget(chunks, min(self.chunks, left)))
        return replace(
            found,
            entities=found.entities[:entity_count],
            facts=found.facts[:fact_count],
            chunks=found.chunks[:chunk_count],
        )


def count_within_budget(sizes: Sequence[int], budget: int) -> int:
    """Count how many leading items fit into the budget together."""
    total = 0
    for count, size in enumerate(sizes):
        total += size
        if total > budget:
            return count
    return len(sizes)


async def _count_tokens(ctx: Context, kind: Kind, hits: Sequence[Hit]) -> list[int]:
    at = [hit.at for hit in hits]
    if kind == "chunk":
        chunks = await fetch_chunks(ctx, at)
        return [
            estimate_tokens(chunks[one].text) + estimate_tokens(chunks[one].title) for one in at
        ]
    if kind == "fact":
        facts = await fetch_fact_texts(ctx, at)
        return [min(estimate_tokens(facts[one].text), _MAX_LINE_TOKENS) for one in at]
    entities = await fetch_entities(ctx, at)
    sizes = [estimate_tokens(entities[one].name + entities[one].description) for one in at]
    return [min(size, _MAX_LINE_TOKENS) for size in sizes]
