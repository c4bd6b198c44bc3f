"""Health, readiness, metrics, workspaces and recipes."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from clew.serve.core.access import Reader, WorkspaceName, key_of, server_of
from clew.serve.core.folders import DEFAULT_WORKSPACE, is_workspace_name
from clew.serve.core.keys import EVERY_WORKSPACE
from clew.serve.core.problems import Problem, not_found
from clew.version import __version__

probes = APIRouter(tags=["operations"])
router = APIRouter(tags=["operations"])


@probes.get("/health", summary="Whether the process answers; needs no key")
async def health() -> dict[str, str]:
    """Answer at once."""
    return {"status": "ok"}


@probes.get("/ready", summary="Whether requests are accepted; needs no key")
async def ready(request: Request) -> Response:
    """Answer 503 while the server starts or stops, else also whether requests need a key."""
    server = server_of(request)
    if not server.ready:
        raise Problem(503, "the server is starting or stopping", retry_after=1)
    state = {"status": "ready", "version": __version__, "needs_key": server.needs_key}
    return JSONResponse(state)


@router.get("/metrics", summary="Figures in Prometheus' text format")
async def metrics(request: Request) -> Response:
    """Return the figures of this process; a key needs admin scope in every workspace."""
    server = server_of(request)
    if not key_of(request).allows(EVERY_WORKSPACE, "admin"):
        raise not_found()
    server.metrics.set("clew_open_workspaces", server.pool.open_count)
    for row in server.database.rows("SELECT state, count(*) AS n FROM jobs GROUP BY state"):
        server.metrics.set("clew_jobs", row["n"], state=row["state"])
    return PlainTextResponse(server.metrics.format(), media_type="text/plain; version=0.0.4")


@router.get("/workspaces", summary="The workspaces that this key may use")
async def list_workspaces(request: Request) -> dict[str, Any]:
    """Return names and scopes."""
    server, key = server_of(request), key_of(request)
    found = [{"name": name, "scope": key.scope(name)} for name in server.folders.names()]
    return {"workspaces": [one for one in found if one["scope"] is not None]}


@router.put("/workspaces/{workspace}", status_code=201, summary="Create an empty workspace")
async def create_workspace(request: Request, workspace: WorkspaceName) -> Response:
    """Create it; one that exists is left as it is. Needs admin scope there."""
    server, key = server_of(request), key_of(request)
    if not key.allows(workspace, "admin"):
        raise not_found()
    if not is_workspace_name(workspace):
        raise Problem(
            400, "a workspace's name has up to 63 small letters, digits, - and _, no sign first"
        )
    if server.folders.single and workspace != DEFAULT_WORKSPACE:
        raise Problem(409, "this server has one workspace; start it with --root for several")
    created = await server.engine.run(server.pool.create(workspace))
    return JSONResponse({"name": workspace, "created": created}, 201 if created else 200)


@router.get("/workspaces/{workspace}", summary="Size and state of a workspace")
async def status(access: Reader) -> Response:
    """Return what `clew status --json` prints, as far as this key may see it."""
    return JSONResponse(await access.run(lambda base: base.status()))


@router.get("/recipes", summary="Every recipe: what it needs and where it comes from")
async def list_recipes(request: Request) -> dict[str, Any]:
    """Return retrievers and agents; `agent+retriever` combines two."""
    from clew.recipes.registry import describe_recipes

    return {"recipes": describe_recipes(server_of(request).recipes)}


@router.get("/recipes/{name}", summary="The steps and parameters of one recipe")
async def show_recipe(request: Request, name: str) -> dict[str, Any]:
    """Return a table of steps, each parameter with its source."""
    from clew.recipes.registry import tabulate_recipe

    return {"name": name, "steps": tabulate_recipe(name, server_of(request).recipes)}
