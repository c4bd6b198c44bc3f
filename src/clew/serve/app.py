"""The application: routes, error answers and admission around one `Server`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from clew.serve.core.admission import Admission
from clew.serve.core.problems import install_handlers
from clew.serve.core.server import Server
from clew.serve.page_files import PageFiles
from clew.serve.routes import (
    documents,
    graph,
    jobs,
    ollama,
    openai,
    operations,
    overview,
    questions,
)
from clew.version import __version__

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_ABOUT = """\
Agentic GraphRAG: search, answers with citations, and the graph behind them.

Send the key as `Authorization: Bearer KEY`. A workspace that does not exist and one that the key
may not use are both 404. Errors are `application/problem+json`, under `/v1` in OpenAI's shape."""
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"description": "No valid key."},
    404: {"description": "It does not exist, or this key may not see it."},
    429: {"description": "Too many requests; Retry-After says when to try again."},
}
_ROUTERS = (
    operations.router,
    questions.router,
    documents.router,
    jobs.router,
    graph.router,
    overview.router,
    openai.router,
    ollama.router,
)


def create_app(server: Server) -> FastAPI:
    """Return the ASGI application of one server process."""
    agents = _create_agents_api(server)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        server.start()
        sessions = AsyncExitStack()
        if agents is not None:
            await sessions.enter_async_context(agents.session_manager.run())
        looking = asyncio.ensure_future(server.look_after())
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.wait({looking})
            await sessions.aclose()
            await server.stop()

    app = FastAPI(
        title="Clew",
        version=__version__,
        description=_ABOUT,
        root_path=server.settings.serve.root_path,
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
    )
    app.state.server = server
    for router in _ROUTERS:
        app.include_router(router, responses=_PROBLEMS)
    if agents is not None:
        from clew.serve.mcp_server import create_mcp_app

        app.router.routes.extend(create_mcp_app(agents, server.settings.serve).routes)
    install_handlers(app)
    app.add_middleware(Admission, server=server)
    app.add_middleware(PageFiles, root_path=server.settings.serve.root_path)
    return app


def _create_agents_api(server: Server) -> "MCPServer[Any] | None":
    """Return the MCP server, if its package is installed and the settings want it."""
    if not server.settings.serve.mcp or find_spec("mcp") is None:
        return None
    from clew.serve.mcp_server import create_mcp

    return create_mcp(server, allow_add=server.settings.serve.mcp_add)
