"""The graph: entities, neighbours, facts, paths, trees, corrections, export."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import FileResponse, JSONResponse, Response
from pydantic import Field
from starlette.types import Receive, Scope, Send

from clew.engine import KnowledgeBase
from clew.errors import ConfigError, StoreError
from clew.export.formats import export
from clew.export.graph import ExportGraph, load_communities
from clew.json_output import to_json_value
from clew.serve.core.access import Access, Reader, Writer
from clew.serve.core.bodies import StrictBody
from clew.serve.core.graph_views import GraphReader, read_graph
from clew.serve.core.problems import Problem, not_found
from clew.store.protocol import Counts
from clew.tree.outline import OutlineOptions, read_outline

router = APIRouter(prefix="/workspaces/{workspace}", tags=["graph"])
Limit = Annotated[int, Query(ge=1, le=500)]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]
Name = Annotated[str, Field(min_length=1, max_length=1000)]
NameQuery = Annotated[str, Query(min_length=1, max_length=1000)]
ExportFormat = Literal["graphml", "jsonl", "cypher", "html", "tsv", "csv"]


class PairRequest(StrictBody):
    """Two names."""

    one: Name = Field(examples=["I. Brandvik"])
    other: Name = Field(examples=["Ilse Brandvik"])


class SplitRequest(StrictBody):
    """An entity whose names were merged."""

    name: Name
    other: str | None = Field(default=None, description="Split off only this name.")
    documents: list[str] = Field(
        default_factory=list, max_length=1000, description="Split off mentions in these documents."
    )


class UndoRequest(StrictBody):
    """A correction by its number, or the two names it was about."""

    correction: int | None = Field(default=None, ge=1, description="As the list numbers it.")
    one: str = Field(default="", max_length=1000, examples=["I. Brandvik"])
    other: str = Field(default="", max_length=1000, examples=["Ilse Brandvik"])


async def _read(access: Access, work: Callable[[GraphReader], Awaitable[Any]]) -> Any:
    async def job(base: KnowledgeBase) -> Any:
        async with read_graph(base) as graph:
            return await work(graph)

    return await access.run(job)


@router.get("/entities/corrections", summary="Merges and splits by users, newest first")
async def list_corrections(access: Writer, limit: Limit = 100) -> dict[str, Any]:
    """List the corrections that hold; each can be undone by its number."""
    access.require_all_labels()
    made = await access.run_on_all(lambda base: base.identity.list_corrections(limit))
    return {"corrections": to_json_value(made)}


@router.get("/entities", summary="Entities by name, or the most mentioned")
async def list_entities(
    access: Reader,
    query: Annotated[str, Query(max_length=1000)] = "",
    offset: Offset = 0,
    limit: Limit = 50,
) -> Response:
    """Return entities called like the query first, then similar names."""
    found = await _read(access, lambda g: g.list_entities(query, offset, limit))
    return JSONResponse({"entities": found})


@router.get("/entities/{key}", summary="One entity with its facts and their places")
async def show_entity(access: Reader, key: int) -> Response:
    """Return an entity."""
    return JSONResponse(to_json_value(await _read(access, lambda g: g.show_entity(key))))


@router.get("/entities/{key}/neighbours", summary="Entities that share a fact with this one")
async def list_neighbours(
    access: Reader,
    key: int,
    limit: Limit = 50,
    other: Annotated[int | None, Query(description="Only this one, with all facts.")] = None,
) -> Response:
    """Return neighbours, those with most facts in common first.

    Facts that name both come first; of others `states` is false: they share a passage only.
    """
    found = await _read(access, lambda g: g.list_neighbours(key, limit, other))
    return JSONResponse({"neighbours": found})


@router.get("/facts", summary="Facts in the order they were added")
async def list_facts(access: Reader, offset: Offset = 0, limit: Limit = 50) -> Response:
    """Return facts; `/facts/{key}` has their evidence."""
    return JSONResponse({"facts": await _read(access, lambda g: g.list_facts(offset, limit))})


@router.get("/facts/{key}", summary="One fact with everything that states it, quoted")
async def show_fact(access: Reader, key: int) -> Response:
    """Return a fact."""
    return JSONResponse(await _read(access, lambda g: g.show_fact(key)))


@router.get("/paths", summary="The shortest paths between two entities")
async def find_paths(
    access: Reader,
    start: NameQuery,
    end: NameQuery,
    hops: Annotated[int, Query(ge=1, le=6)] = 4,
) -> Response:
    """Return at most ten paths of equal length; none if they are further apart.

    `facts` has for each step the one that says it best, `more` the others of the same two.
    """
    return JSONResponse({"paths": await _read(access, lambda g: g.find_paths(start, end, hops))})


@router.get("/show", summary="Everything called by one name: documents and entities")
async def show(access: Reader, name: NameQuery) -> Response:
    """Return what `clew show --json` prints."""

    async def work(base: KnowledgeBase) -> Any:
        try:
            return to_json_value(await base.show(name))
        except StoreError as error:
            raise not_found(f"no document or entity is named {name!r}") from error

    return JSONResponse(await access.run(work))


@router.get("/tree", summary="The community tree as an outline")
async def show_tree(
    access: Reader,
    tree: Annotated[str | None, Query(max_length=50)] = None,
    level: Annotated[int | None, Query(ge=0, le=50)] = None,
    depth: Annotated[int, Query(ge=1, le=4)] = 2,
    most: Annotated[int, Query(ge=1, le=200)] = 20,
) -> Response:
    """Return communities with their summaries and keywords; 404 where no tree was built."""

    async def work(base: KnowledgeBase) -> Any:
        async with base.store.snapshot() as now:
            try:
                shown = await read_outline(
                    now, base.store, tree, OutlineOptions(level, depth, most)
                )
            except ConfigError as error:
                raise not_found("there is no such tree here; POST to /trees builds one") from error
        return to_json_value(shown)

    return JSONResponse(await access.run(work))


@router.get("/export", summary="The graph as a file")
async def export_graph(
    access: Reader, form: Annotated[ExportFormat, Query(alias="format")] = "jsonl"
) -> Response:
    """Return the graph as this key may see it; the work ends when the caller goes."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="clew-export-"))
    file = folder / f"graph.{form}"

    async def work(base: KnowledgeBase) -> None:
        try:
            async with base.store.snapshot() as now:
                await export(ExportGraph(now, await load_communities(now, base.store)), file, form)
        except BaseException:  # also where it is cancelled, which this loop alone knows in time
            shutil.rmtree(folder, ignore_errors=True)
            raise

    await access.run(work)
    return _TemporaryFile(file, media_type="application/octet-stream", filename=file.name)


class _TemporaryFile(FileResponse):
    """A file that is removed with its folder once it is sent, or cannot be."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            shutil.rmtree(Path(self.path).parent, ignore_errors=True)


@router.post("/entities/merge", summary="Merge two names into one entity")
async def merge(access: Writer, body: PairRequest) -> Response:
    """Merge, whatever rules and vectors say."""
    return await _correct(access, lambda base: base.identity.merge(body.one, body.other))


@router.post("/entities/split", summary="Split names that were merged")
async def split(access: Writer, body: SplitRequest) -> Response:
    """Split an entity; its names are not merged again."""
    return await _correct(
        access,
        lambda base: base.identity.split(body.name, other=body.other, documents=body.documents),
    )


@router.post("/entities/undo", summary="Undo a merge or a split")
async def undo(access: Writer, body: UndoRequest) -> Response:
    """Undo one correction, or the latest of two names: what was decided before holds again."""
    number, one, other = body.correction, body.one, body.other
    if number is not None:
        return await _correct(access, lambda base: base.identity.undo_correction(number))
    if not one or not other:
        raise Problem(422, "name a correction by its number, or two names as 'one' and 'other'")
    return await _correct(access, lambda base: base.identity.undo(one, other))


async def _correct(access: Access, work: Callable[[KnowledgeBase], Awaitable[Counts]]) -> Response:
    access.require_all_labels()  # a decision holds for everybody
    counts = await access.run_on_all(work)
    return JSONResponse({"entities": counts.entities, "generation": counts.generation})
