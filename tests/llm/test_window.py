"""The window of a model: set, told by its endpoint, known by its name, or assumed."""

import json
from contextlib import asynccontextmanager

import pytest

from clew.config import ModelSettings, RoleSettings
from clew.layout import ASSUMED_WINDOW
from clew.llm.window import OLLAMA_WINDOW, find_known_window
from clew.models import Models
from clew.store.memory import MemoryStore


@asynccontextmanager
async def serving(paths):
    """Answer GET and POST by path, else 404; yields the base URL and the paths asked for."""
    import asyncio

    asked = []

    async def serve(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split("\r\n")[0].split(" ")
        asked.append(f"{method} {path}")
        found = paths.get(path)
        found = found(asked) if callable(found) else found
        status = "200 OK" if found is not None else "404 No"
        raw = json.dumps(found if found is not None else {}).encode()
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", asked
