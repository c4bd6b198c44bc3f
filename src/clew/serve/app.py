"""The application: routes, error answers and admission around one `Server`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from clew.serve.core.admission import Admission
from clew.serve.core.problems import install_handlers
from clew.serve.core.server import Server
from clew.serve.openapi import describe_api
from clew.serve.page_files import PageFiles
from clew.serve.routes import (
    documents,
    graph,
    jobs,
    keys,
    ollama,
    openai,
    operations,
    overview,
    pages,
    questions,
    responses,
)
from clew.version import __version__

_ABOUT = """\
Agentic GraphRAG: search, answers with citations, and the graph behind them.

Send the key as `Authorization: Bearer KEY`. A workspace that does not exist and one that the key
may not use are both 404. Errors are `application/problem+json`, under `/v1` in OpenAI's shape."""
_ROUTERS = (
    operations.router,
    keys.router,
    questions.router,
    documents.router,
    pages.router,
    jobs.router,
    graph.router,
    overview.router,
    openai.router,
    responses.router,
    ollama.router,
)


def create_app(server: Server) -> FastAPI:
    """Return the ASGI application of one server process."""
    agents = AgentsApi(server)
    settings = server.settings.serve

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        server.start()
        looking = asyncio.ensure_future(server.look_after())
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.wait({looking})
            await agents.close()
            await server.stop()

    app = FastAPI(
        title="Clew",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        openapi_url="/openapi.json" if settings.rest else None,
    )
    app.state.server = server
    for router in (operations.probes, *(_ROUTERS if settings.rest else ())):
        app.include_router(router)
    if settings.mcp and find_spec("mcp") is not None:
        app.router.routes.append(Route("/mcp", endpoint=agents))
    # As FastAPI's manual does it: there is no other way in.
    app.openapi = partial(describe_api, app)  # type: ignore[method-assign]
    install_handlers(app)
    app.add_middleware(Admission, server=server)
    app.add_middleware(PageFiles, settings=settings)
    return app


class AgentsApi:
    """The Model Context Protocol at `/mcp`; made at the first call, as its import takes a while."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._app: ASGIApp | None = None
        self._making = asyncio.Lock()
        self._closing = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        async with self._making:
            if self._app is None:
                self._app = await self._start()
        await self._app(scope, receive, send)

    async def close(self) -> None:
        """End what is open."""
        self._closing.set()
        if self._running is not None:
            await self._running

    async def _start(self) -> ASGIApp:
        made = await asyncio.to_thread(import_module, "clew.serve.mcp_server")
        settings = self._server.settings.serve
        agents = made.create_mcp(self._server, allow_add=settings.mcp_add)
        app: ASGIApp = made.create_mcp_app(agents, settings)
        started = asyncio.Event()

        async def run() -> None:
            async with agents.session_manager.run():
                started.set()
                await self._closing.wait()

        self._running = asyncio.ensure_future(run())
        await started.wait()
        return app
