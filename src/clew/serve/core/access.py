"""The authorised use of one workspace: what every route of a workspace depends on."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Request

from clew.engine import KnowledgeBase
from clew.serve.core.keys import Key, Scope
from clew.serve.core.label_views import Outdated
from clew.serve.core.problems import Problem, not_found
from clew.serve.core.server import Server
from clew.serve.core.workspaces import WatchedBase

_ATTEMPTS = 8  # to read while documents or labels change
T = TypeVar("T")
WorkspaceName = Annotated[
    str, Path(description="The name of a workspace.", examples=["default"], max_length=63)
]


def server_of(request: Request) -> Server:
    """Return the server a request was sent to."""
    server: Server = request.app.state.server
    return server


def key_of(request: Request) -> Key:
    """Return the key that a request was admitted with."""
    key: Key = request.state.key
    return key


@dataclass(frozen=True)
class Access:
    """A key's use of one workspace, with the scope that the route asks for."""

    server: Server
    key: Key
    workspace: str

    async def run(self, work: Callable[[KnowledgeBase], Awaitable[T]]) -> T:
        """Run work on the engine's loop with the knowledge base as this key may see it."""

        async def job() -> T:
            pool, labels = self.server.pool, self.key.labels
            for attempt in range(_ATTEMPTS):
                try:
                    async with pool.use(self.workspace, labels, apart=attempt > 0) as base:
                        return await work(base)
                except Outdated:
                    continue
            raise _changing()

        return await self.server.engine.answer(job())

    def may_know(self, owner: str) -> bool:
        """Whether this key may know of what another sent: its own, or all if it sees everything."""
        return self.key.sees_all or owner == self.key.id

    async def run_on_all(self, work: Callable[[KnowledgeBase], Awaitable[T]]) -> T:
        """Run work with the whole knowledge base, for what concerns all its documents."""
        return await replace(self, key=replace(self.key, labels=None)).run(work)

    def stream(self, work: Callable[[KnowledgeBase], AsyncGenerator[T]]) -> AsyncGenerator[T]:
        """Iterate on the engine's loop over what work yields."""

        async def items() -> AsyncGenerator[T]:
            pool, labels, begun = self.server.pool, self.key.labels, False
            for attempt in range(_ATTEMPTS):
                try:
                    async with (
                        pool.watch(self.workspace, labels, apart=attempt > 0) as seen,
                        aclosing(_confirm_each(seen, work(seen.base))) as found,
                    ):
                        async for item in found:
                            begun = True
                            yield item
                    return
                except Outdated:
                    if begun:  # what was sent cannot be taken back
                        break
            raise _changing()

        return self.server.engine.iterate(items())

    def require_all_labels(self) -> None:
        """Refuse a key that does not see every document: the operation concerns them all."""
        if not self.key.sees_all:
            raise Problem(403, "this needs a key that sees every document, whatever its labels")


async def _confirm_each(seen: WatchedBase, items: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """Yield each item only after it is sure that nothing hidden was read for it."""
    async with aclosing(items):
        try:
            async for item in items:
                await seen.confirm()
                yield item
        except Exception:  # its message may quote what was read
            await seen.confirm()
            raise


def _changing() -> Problem:
    return Problem(429, "documents or labels change too fast; try again", retry_after=1)


def authorise(server: Server, key: Key, workspace: str, scope: Scope) -> Access:
    """Return the access; an unknown workspace and one of others are both not found."""
    if not key.allows(workspace, "read") or not server.folders.exists(workspace):
        raise not_found()
    if not key.allows(workspace, scope):
        raise Problem(403, f"this key has no {scope} scope here")
    return Access(server, key, workspace)


def require(scope: Scope) -> Any:
    """Return the dependency of routes under `/workspaces/{workspace}`."""

    async def check(request: Request, workspace: WorkspaceName) -> Access:
        return authorise(server_of(request), key_of(request), workspace, scope)

    return Depends(check)


Reader = Annotated[Access, require("read")]
Writer = Annotated[Access, require("write")]
Admin = Annotated[Access, require("admin")]
