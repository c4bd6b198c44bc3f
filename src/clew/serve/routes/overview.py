"""What a page needs in one request: a large part of the graph, the schema, a document to read."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response
from numpy.typing import NDArray

from clew.doctor import run_checks
from clew.engine import KnowledgeBase
from clew.graph.community_tree import forest_from_arrays
from clew.graph.csr import Ints
from clew.index.view import View
from clew.ingest.schema_store import SchemaStore
from clew.json_output import to_json_value
from clew.serve.core.access import Access, Admin, Reader
from clew.serve.core.originals import find_original, list_names
from clew.serve.core.problems import Problem, not_found
from clew.serve.routes.documents import find_arrivals, labels_of
from clew.store.protocol import Snapshot
from clew.tree.outline import COMMUNITY, OutlineOptions, read_outline
from clew.types import Document, Kind

router = APIRouter(prefix="/workspaces/{workspace}", tags=["overview"])
_MAX_MEMBERS = 12  # members of a fact that are linked with each other
_MAX_EDGES = 60_000
_MAX_FACTS = 200  # facts of a document that are listed
_MAX_GROUPS = 200  # communities that are named
_MAX_ARRIVALS = 1000
_MAX_COUNTED = 50_000  # elements that are looked at one by one for the schema


@router.get("/overview", summary="The entities with most facts, their links and communities")
async def show_overview(
    access: Reader,
    limit: Annotated[int, Query(ge=1, le=20_000)] = 1000,
    label: Annotated[str, Query(max_length=200, description="Such as team=legal.")] = "",
    since: Annotated[float, Query(ge=0, le=1e12, description="Arrived after, in seconds.")] = 0,
) -> Response:
    """Return entities and, as pairs of their numbers with a fact's key, the links among them.

    With `label` or `since`: those that such documents mention. `labels` and `arrivals` are of all
    documents that this key may see; those of an older version of Clew may have no arrival.
    """
    names = await access.run(list_names)
    labels = await labels_of(access, names)
    arrivals = await find_arrivals(access, names)
    wanted = {
        name
        for name in names
        if (not label or label in labels.get(name, ()))
        and (not since or arrivals.get(name, 0.0) >= since)
    }

    async def work(base: KnowledgeBase) -> dict[str, Any]:
        async with base.store.snapshot() as now:
            view = View(now.arrays, {})
            order = np.argsort(-view.links("entity_fact").degrees(), kind="stable")
            if label or since:
                order = order[(await _find_mentioned(base, now, view, wanted))[order]]
            chosen = order[:limit]
            groups, communities = await _read_groups(base, now, len(view.keys("entity")))
            return {
                "all": len(order),
                "labels": sorted({one for some in labels.values() for one in some}),
                "arrivals": sorted(set(arrivals.values()))[-_MAX_ARRIVALS:],
                "nodes": await _show_nodes(now, view, chosen, groups),
                "edges": _find_edges(view, chosen),
                "communities": communities,
            }

    return JSONResponse(await access.run(work))


@router.get("/schema", summary="Types of entities and relations, with counts and history")
async def show_schema(access: Reader) -> Response:
    """Return how many entities have each type, how many facts each relation, and all changes."""

    async def work(base: KnowledgeBase) -> dict[str, Any]:
        history = await SchemaStore(base.store, base.settings.schema_file).load_stored()
        async with base.store.snapshot() as now:
            view = View(now.arrays, {})
            return {
                "types": await _count_names(now, view, "entity", view.types),
                "relations": await _count_names(now, view, "fact", view.relations),
                "history": None if history is None else to_json_value(history.to_json()),
            }

    return JSONResponse(await access.run(work))


@router.get("/reading", summary="One document to read: text, pages, and the facts it states")
async def show_reading(
    access: Reader,
    name: Annotated[str, Query(min_length=1, max_length=2000)],
    facts: Annotated[bool, Query(description="List the facts that it states, too.")] = False,
) -> Response:
    """Return a document by one of its names; spans of citations point into its text."""

    async def work(base: KnowledgeBase) -> tuple[Document, Sequence[dict[str, Any]]]:
        source = (await base.store.sources()).get(name)
        async with base.store.snapshot() as now:
            found = (await now.documents([source.document])) if source else {}
            if source is None or source.document not in found:
                raise not_found()
            document = found[source.document]
            listed = await _list_facts(now, View(now.arrays, {}), document) if facts else []
        return document, listed

    document, listed = await access.run(work)
    return JSONResponse(
        {
            "id": document.id,
            "names": list(document.names),
            "title": document.title,
            "text": document.text,
            "page_starts": list(document.page_starts),
            "metadata": dict(document.metadata),
            **await _describe_original(access, document),
            "facts": listed,
        }
    )


async def _describe_original(access: Access, document: Document) -> dict[str, Any]:
    """Return whether there is a file to send and draw, and if not, why."""
    try:
        await find_original(access, document)
    except Problem as problem:
        return {"original": False, "no_original": problem.detail}
    return {"original": True, "no_original": ""}


@router.get("/checks", summary="What `clew doctor` finds: extras, embedder, model endpoints")
async def show_checks(access: Admin) -> Response:
    """Return one line for each part; a model's endpoint is asked for its models."""

    async def work(base: KnowledgeBase) -> Any:
        return to_json_value(await run_checks(base.settings))

    settings = access.server.settings
    asked = {"recipe": settings.recipe, "extractor": settings.extractor}
    return JSONResponse({**asked, "checks": await access.run(work)})


async def _find_mentioned(
    base: KnowledgeBase, now: Snapshot, view: View, names: Collection[str]
) -> NDArray[np.bool_]:
    """Return for each entity whether one of these documents mentions it."""
    documents = {s.document for name, s in (await base.store.sources()).items() if name in names}
    keys = view.keys("chunk").tolist()
    chunks = await now.chunks(keys)
    inside = np.asarray([chunks[key].document in documents for key in keys], dtype=bool)
    mentions = view.links("chunk_entity")
    found = np.zeros(view.count("entity"), dtype=bool)
    for at in np.flatnonzero(inside).tolist():
        found[mentions.row(at)] = True
    return found


async def _read_groups(
    base: KnowledgeBase, now: Snapshot, entities: int
) -> tuple[Ints, list[dict[str, Any]]]:
    """Return for each entity the number of its community in the first tree, and their names."""
    forest = forest_from_arrays(now.arrays)
    trees = [name for name in forest.tree_names() if len(forest.entities.columns)]
    if not trees:
        return np.full(entities, -1), []
    top = forest.leaf_communities(trees[0], entities).astype(np.int64)
    parent = forest.parent.astype(np.int64)
    while (inner := (top >= 0) & (parent[top] >= 0)).any():
        top[inner] = parent[top[inner]]
    options = OutlineOptions(0, COMMUNITY, _MAX_GROUPS)
    shown = (await read_outline(now, base.store, trees[0], options)).branches
    tops = np.flatnonzero((forest.parent < 0) & np.isin(np.arange(len(parent)), top))
    sizes = forest.sizes()[tops]
    order = tops[np.lexsort((tops, -sizes))]  # as the outline has them: the largest first
    number = np.full(len(parent) + 1, -1)
    number[order] = np.arange(len(order))
    names = [{"name": one.name, "summary": one.summary, "size": one.size} for one in shown]
    return number[top], names


async def _show_nodes(
    now: Snapshot, view: View, chosen: Ints, groups: Ints
) -> list[dict[str, Any]]:
    keys = view.keys("entity")[chosen].tolist()
    found = await now.entities(keys)
    degrees = view.links("entity_fact").degrees()[chosen].tolist()
    rows = zip(keys, degrees, groups[chosen].tolist(), strict=True)
    return [
        {
            "key": key,
            "name": found[key].name,
            "type": found[key].type,
            "facts": degree,
            "community": group,
        }
        for key, degree, group in rows
    ]


def _find_edges(view: View, chosen: Ints) -> list[list[int]]:
    """Return pairs of chosen entities that share a fact, each pair once."""
    number = np.full(view.count("entity"), -1)
    number[chosen] = np.arange(len(chosen))
    members, keys = view.links("fact_entity"), view.keys("fact")
    found: dict[tuple[int, int], int] = {}
    for fact in range(view.count("fact")):
        inside = number[members.row(fact)]
        ends = list(dict.fromkeys(inside[inside >= 0].tolist()))[:_MAX_MEMBERS]
        for at, one in enumerate(ends):
            for other in ends[at + 1 :]:
                found.setdefault((min(one, other), max(one, other)), int(keys[fact]))
        if len(found) >= _MAX_EDGES:
            break
    return [[one, other, fact] for (one, other), fact in found.items()]


async def _count_names(
    now: Snapshot, view: View, kind: Kind, codes: NDArray[np.int32]
) -> list[dict[str, Any]]:
    """Return the types or relations, each with its count; the most frequent first.

    Merged entities may have another type than their number says, so that each is looked at;
    where there are too many, one stands for all that have its number.
    """
    if len(codes) > _MAX_COUNTED:
        _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    else:
        first, counts = np.arange(len(codes)), np.ones(len(codes), np.int64)
    keys = view.keys(kind)[first].tolist()
    if kind == "entity":
        names = {key: one.type for key, one in (await now.entities(keys)).items()}
    else:
        names = {key: one.relation for key, one in (await now.facts(keys)).items()}
    found: Counter[str] = Counter()
    for key, count in zip(keys, counts.tolist(), strict=True):
        found[names[key]] += count
    rows = [{"name": name, "count": count} for name, count in found.items() if name]
    return sorted(rows, key=lambda row: (-int(row["count"]), str(row["name"])))


async def _list_facts(now: Snapshot, view: View, document: Document) -> Sequence[dict[str, Any]]:
    """Return the facts that a document states, in the order of its text."""
    chunks = await now.chunks(view.keys("chunk").tolist())
    own = {c.id for c in chunks.values() if c.document == document.id}
    keys = view.keys("chunk").tolist()
    at = [place for place, key in enumerate(keys) if chunks[key].document == document.id]
    links = view.links("chunk_fact")
    positions = list(dict.fromkeys(fact for c in at for fact in links.row(c).tolist()))
    fact_keys = [int(view.keys("fact")[p]) for p in positions[:_MAX_FACTS]]
    facts, supports = await now.facts(fact_keys), await now.supports("fact", fact_keys)
    rows = []
    for key in fact_keys:
        place = next((one for one in supports.get(key, ()) if one.chunk in own), None)
        if place is not None:
            shown = {"key": key, "text": facts[key].text, "relation": facts[key].relation}
            rows.append({**shown, "start": place.start, "end": place.end})
    return sorted(rows, key=lambda row: (row["start"], row["end"]))
