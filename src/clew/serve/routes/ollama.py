"""The part of Ollama's API that chat programs use: tags, version and chat."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import Field

from clew.serve.core.access import key_of, server_of
from clew.serve.core.bodies import LenientBody
from clew.serve.core.chat import (
    ChatModel,
    ChatQuestion,
    ChatReply,
    ReplyLimits,
    complete_reply,
    find_model,
    list_models,
    read_messages,
    stream_reply,
)
from clew.serve.core.problems import describe_error
from clew.version import __version__

router = APIRouter(prefix="/api", tags=["ollama"])


class OllamaMessage(LenientBody):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = Field(default="", max_length=200_000)


class OllamaChatRequest(LenientBody):
    """A conversation; Ollama streams unless told otherwise."""

    model: str = Field(max_length=300, examples=["default/clew"])
    messages: list[OllamaMessage] = Field(min_length=1, max_length=500)
    stream: bool = True


@router.get("/version", summary="The version of this server")
async def version() -> dict[str, str]:
    """Return the version."""
    return {"version": __version__}


@router.get("/tags", summary="Every recipe of every workspace that this key may use")
async def tags(request: Request) -> dict[str, Any]:
    """Return the models as Ollama lists them."""
    names = list_models(server_of(request), key_of(request))
    details = {"family": "clew", "format": "", "parameter_size": "", "quantization_level": ""}
    return {"models": [{"name": name, "model": name, "details": details} for name in names]}


@router.post("/chat", summary="Answer a conversation's last question")
async def chat(request: Request, body: OllamaChatRequest) -> Response:
    """Return the answer as JSON lines, or as one object without `stream`."""
    chosen = find_model(server_of(request), key_of(request), body.model)
    asked = read_messages([(message.role, message.content) for message in body.messages])
    if body.stream:
        chosen.access.server.remaining_budget(chosen.access.key)
        return StreamingResponse(_stream(chosen, asked), media_type="application/x-ndjson")
    reply = await complete_reply(chosen, asked, ReplyLimits())
    return JSONResponse(_line(chosen, reply.text, done=True))


async def _stream(chosen: ChatModel, asked: ChatQuestion) -> AsyncIterator[str]:
    try:
        async with aclosing(stream_reply(chosen, asked, ReplyLimits())) as items:
            async for item in items:
                if isinstance(item, ChatReply):
                    yield json.dumps(_line(chosen, item.text, done=False)) + "\n"
    except Exception as error:  # noqa: BLE001  (the status is sent: the error becomes a line)
        yield json.dumps(describe_error(error).to_json("/api/")) + "\n"
        return
    yield json.dumps(_line(chosen, "", done=True)) + "\n"


def _line(chosen: ChatModel, text: str, *, done: bool) -> dict[str, Any]:
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    message = {"role": "assistant", "content": text}
    line = {"model": chosen.name, "created_at": made, "message": message, "done": done}
    return {**line, "done_reason": "stop"} if done else line
