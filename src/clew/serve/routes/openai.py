"""OpenAI's API: chat completions, models and embeddings; a model is a recipe of a workspace."""

import base64
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from clew.engine import KnowledgeBase
from clew.llm.openai_api import estimate_tokens
from clew.serve.core.access import key_of, server_of
from clew.serve.core.bodies import LenientBody
from clew.serve.core.chat import (
    ChatModel,
    ChatQuestion,
    ReplyLimits,
    complete_reply,
    find_model,
    list_models,
    read_messages,
    stream_reply,
)
from clew.serve.core.problems import Problem, describe_error
from clew.serve.core.sse import ServerEvent, stream_events
from clew.types import Usage

router = APIRouter(prefix="/v1", tags=["openai"])
_PIECE = 24  # characters of the checked answer in one chunk of a stream
_MAX_TEXTS = 2048
_TEXT_PARTS = ("text", "input_text", "output_text", "refusal")


class ContentPart(LenientBody):
    """A part of a message; only text is read."""

    type: str
    text: str = Field(default="", max_length=200_000)


class ChatMessage(LenientBody):
    """One message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[str, Field(max_length=200_000)] | list[ContentPart] | None = None

    def text(self) -> str:
        """Return the text of all parts."""
        if isinstance(self.content, list):
            other = [part.type for part in self.content if part.type not in _TEXT_PARTS]
            if other:
                raise Problem(400, f"only text is read, so a part of type {other[0]!r} is refused")
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(LenientBody):
    """What a stream ends with."""

    include_usage: bool = False


class ChatRequest(LenientBody):
    """A chat completion."""

    model: str = Field(max_length=300, examples=["default/clew"])
    messages: list[ChatMessage] = Field(min_length=1, max_length=500)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stop: str | Annotated[list[str], Field(max_length=4)] | None = None
    temperature: float | None = Field(default=None, ge=0, le=2, description="Has no effect.")
    top_p: float | None = Field(default=None, ge=0, le=1, description="Has no effect.")
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    n: int | None = None

    def limits(self) -> ReplyLimits:
        """Return where the text is to end."""
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        return ReplyLimits(stop, self.max_completion_tokens or self.max_tokens)


class EmbeddingRequest(LenientBody):
    """Texts to embed."""

    model: str = Field(max_length=300, examples=["default"])
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


@router.get("/models", summary="Every recipe of every workspace that this key may use")
async def models(request: Request) -> dict[str, Any]:
    """Return the models."""
    names = list_models(server_of(request), key_of(request))
    return {"object": "list", "data": [_show_model(name) for name in names]}


@router.get("/models/{name:path}", summary="One model")
async def model(request: Request, name: str) -> dict[str, Any]:
    """Return a model by its name."""
    find_model(server_of(request), key_of(request), name)
    return _show_model(name)


@router.post("/chat/completions", summary="Answer a conversation's last question")
async def chat(request: Request, body: ChatRequest) -> Response:
    """Return the answer with citations as marks in the text and as annotations."""
    if body.n not in (None, 1):
        raise Problem(400, "only n = 1 is supported")
    chosen = find_model(server_of(request), key_of(request), body.model)
    asked = read_messages([(message.role, message.text()) for message in body.messages])
    if body.stream:
        chosen.access.server.remaining_budget(chosen.access.key)
        return stream_events(_stream_chat(chosen, asked, body, find_address(request)))
    reply = await complete_reply(chosen, asked, body.limits())
    message = {
        "role": "assistant",
        "content": reply.text,
        "refusal": None,
        "annotations": add_address(reply.annotations, find_address(request)),
    }
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": reply.finish_reason,
        "logprobs": None,
    }
    made = _envelope(chosen, "chat.completion")
    return JSONResponse({**made, "choices": [choice], "usage": _show_usage(reply.usage)})


@router.post("/embeddings", summary="Vectors of a workspace's embedder")
async def embeddings(request: Request, body: EmbeddingRequest) -> Response:
    """Return one vector for each text; the model is the name of a workspace."""
    workspace = body.model.partition("/")[0]
    chosen = find_model(server_of(request), key_of(request), workspace)
    texts = [body.input] if isinstance(body.input, str) else body.input
    if not 1 <= len(texts) <= _MAX_TEXTS or not all(texts):
        raise Problem(400, f"input must be 1 to {_MAX_TEXTS} texts that are not empty")

    async def work(base: KnowledgeBase) -> tuple[str, Any]:
        if base.embed is None:
            raise Problem(400, "this workspace has no embedder")
        if body.dimensions not in (None, base.embed.dim):
            raise Problem(400, f"this embedder has {base.embed.dim} dimensions")
        return base.embed.name, await base.embed(texts)

    name, vectors = await chosen.access.run(work)
    rows = [
        {"object": "embedding", "index": at, "embedding": _encode(row, body.encoding_format)}
        for at, row in enumerate(np.asarray(vectors, np.float32))
    ]
    tokens = sum(estimate_tokens(text) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JSONResponse({"object": "list", "model": name, "data": rows, "usage": usage})


async def _stream_chat(
    chosen: ChatModel, asked: ChatQuestion, body: ChatRequest, address: str
) -> AsyncIterator[ServerEvent]:
    made = _envelope(chosen, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], reason: str | None = None) -> ServerEvent:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return ServerEvent({**made, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    usage = Usage()
    try:
        async with aclosing(stream_reply(chosen, asked, body.limits())) as items:
            async for item in items:
                if isinstance(item, str):
                    yield chunk({"reasoning_content": f"{item}\n"})
                    continue
                usage = item.usage
                for piece in cut_pieces(item.text):
                    yield chunk({"content": piece})
                cited = add_address(item.annotations, address)
                yield chunk({"annotations": cited}, item.finish_reason)
    except Exception as error:  # noqa: BLE001  (the status is sent: the error becomes an event)
        yield ServerEvent(describe_error(error).to_json("/v1/"))
        return
    if body.stream_options and body.stream_options.include_usage:
        yield ServerEvent({**made, "choices": [], "usage": _show_usage(usage)})
    yield ServerEvent("[DONE]")


def cut_pieces(text: str) -> Iterator[str]:
    """Yield a text in the pieces that a stream sends."""
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def find_address(request: Request) -> str:
    """Return the address under which the caller reached this server; a proxy says if by TLS."""
    here = request.base_url
    if request.headers.get("x-forwarded-proto") == "https":
        here = here.replace(scheme="https")
    return str(here)


def add_address(annotations: list[dict[str, Any]], address: str) -> list[dict[str, Any]]:
    """Return annotations whose places on the server's page have its address."""
    places = [one["url_citation"] for one in annotations]
    return [
        {"type": "url_citation", "url_citation": {**place, "url": address + place["url"]}}
        for place in places
    ]


def _envelope(chosen: ChatModel, kind: str) -> dict[str, Any]:
    made = f"chatcmpl-{secrets.token_hex(12)}"
    return {"id": made, "object": kind, "created": int(time.time()), "model": chosen.name}


def _show_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "clew"}


def _show_usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _encode(row: Any, form: str) -> Any:
    if form == "base64":
        return base64.b64encode(row.astype("<f4").tobytes()).decode()
    return [round(float(value), 7) for value in row]
