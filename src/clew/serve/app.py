"""The application: routes, error answers and admission around one `Server`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from clew.serve.admission import Admission
from clew.serve.problems import install_handlers
from clew.serve.routes import documents, graph, jobs, operations, questions
from clew.serve.server import Server
from clew.version import __version__

_ABOUT = "Agentic GraphRAG: search, answers with citations, and the graph behind them."
_ROUTERS = (
    operations.router,
    questions.router,
    documents.router,
    jobs.router,
    graph.router,
)


def create_app(server: Server) -> FastAPI:
    """Return the ASGI application of one server process."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        server.start()
        looking = asyncio.ensure_future(server.look_after())
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.wait({looking})
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
        app.include_router(router)
    install_handlers(app)
    app.add_middleware(Admission, server=server)
    return app
