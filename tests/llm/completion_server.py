"""An endpoint that answers with exactly the messages, statuses or bytes it is given."""

import asyncio
import json
from contextlib import asynccontextmanager
from typing import Any


def completion(content: str | None = None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    """Return a completion of one message."""
    message = {"role": "assistant", "content": content, **more}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "model": "m"}


def calls(*functions: tuple[str, str]) -> list[dict[str, Any]]:
    """Return tool calls as the API words them."""
    return [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(functions)
    ]


@asynccontextmanager
async def completion_server(*answers: dict[str, Any] | bytes | int, events: bool = False):
    """Answer call by call, the last one for ever; yields the base URL and the bodies sent."""
    left, bodies = list(answers), []

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        size = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        bodies.append(json.loads(await reader.readexactly(size)))
        answer = left.pop(0) if len(left) > 1 else left[0]
        status, kind = (answer, "json") if isinstance(answer, int) else (200, "json")
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        if isinstance(answer, int):
            raw = b'{"error": {"message": "injected"}}'
        if events:
            kind = "event-stream"
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Type: x/{kind}\r\n\r\n".encode() + raw)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", bodies
