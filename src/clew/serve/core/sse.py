"""Server-sent events with heartbeats, and iteration that ends when the caller is gone."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from fastapi.responses import StreamingResponse

HEARTBEAT_SECONDS = 10.0
_HEARTBEAT = ": heartbeat\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@dataclass(frozen=True)
class ServerEvent:
    """One event; `id` lets a caller resume after it."""

    data: Any
    name: str = ""
    id: str = ""

    def format(self) -> str:
        """Return the event as it is sent."""
        lines = [f"id: {self.id}"] if self.id else []
        lines += [f"event: {self.name}"] if self.name else []
        shown = self.data if isinstance(self.data, str) else _to_json(self.data)
        return "\n".join([*lines, *(f"data: {line}" for line in shown.split("\n"))]) + "\n\n"


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def stream_events(events: AsyncIterator[ServerEvent]) -> StreamingResponse:
    """Answer with events; a comment is sent whenever none came for a while."""
    return StreamingResponse(
        with_heartbeats(events), media_type="text/event-stream", headers=_HEADERS
    )


async def with_heartbeats(
    events: AsyncIterator[ServerEvent], seconds: float = HEARTBEAT_SECONDS
) -> AsyncIterator[str]:
    """Format events, and yield a comment after each pause; proxies then keep the stream open."""
    pending: asyncio.Task[ServerEvent] | None = None
    try:
        while True:
            pending = pending or asyncio.ensure_future(_next(events))
            done, _ = await asyncio.wait({pending}, timeout=seconds)
            if not done:
                yield _HEARTBEAT
                continue
            try:
                event = pending.result()
            except StopAsyncIteration:
                return
            pending = None
            yield event.format()
    finally:
        if pending is not None:
            pending.cancel()
            await asyncio.wait({pending})
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()


async def _next(events: AsyncIterator[ServerEvent]) -> ServerEvent:
    return await anext(events)
