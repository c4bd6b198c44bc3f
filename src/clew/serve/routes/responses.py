"""OpenAI's responses: the same questions and answers as its chat completions, in newer objects."""

import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from itertools import count
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
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
    read_messages,
    stream_reply,
)
from clew.serve.core.problems import Problem, describe_error
from clew.serve.core.sse import ServerEvent, stream_events
from clew.serve.routes.openai import ChatMessage, add_address, cut_pieces, find_address

router = APIRouter(prefix="/v1", tags=["openai"])


class ResponseRequest(LenientBody):
    """A question, or a conversation whose last message is one."""

    model: str = Field(max_length=300, examples=["default/clew"])
    input: (
        Annotated[str, Field(max_length=200_000)]
        | Annotated[list[ChatMessage], Field(min_length=1, max_length=500)]
    )
    instructions: str | None = Field(default=None, max_length=200_000)
    stream: bool | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    previous_response_id: str | None = None
    background: bool | None = None

    def read(self) -> ChatQuestion:
        """Return the question; raise for what only a server that keeps responses can do."""
        if self.previous_response_id or self.background:
            raise Problem(400, "responses are not kept; send the earlier messages as input")
        given = [("system", self.instructions)] if self.instructions else []
        if isinstance(self.input, str):
            return read_messages([*given, ("user", self.input)])
        return read_messages([*given, *((item.role, item.text()) for item in self.input)])


@router.post("/responses", summary="Answer a conversation's last question, as OpenAI's responses")
async def respond(request: Request, body: ResponseRequest) -> Response:
    """Return the answer with citations as marks in the text and as annotations."""
    chosen = find_model(server_of(request), key_of(request), body.model)
    asked, limits = body.read(), ReplyLimits(max_tokens=body.max_output_tokens)
    made = _Made(chosen, body, find_address(request))
    if body.stream:
        chosen.access.server.remaining_budget(chosen.access.key)
        return stream_events(_stream(chosen, asked, limits, made))
    return JSONResponse(made.show(await complete_reply(chosen, asked, limits)))


class _Made:
    """One response: its id, and how it is shown before and after its answer is there."""

    def __init__(self, chosen: ChatModel, body: ResponseRequest, address: str) -> None:
        self.item = f"msg_{secrets.token_hex(12)}"
        self._address = address
        self._head = {
            "id": f"resp_{secrets.token_hex(12)}",
            "object": "response",
            "created_at": int(time.time()),
            "model": chosen.name,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "error": None,
            "metadata": {},
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
        }

    def show(self, reply: ChatReply | None) -> dict[str, Any]:
        """Return the response; without a reply as it is in work."""
        if reply is None:
            return {**self._head, "status": "in_progress", "output": [], "usage": None}
        usage = reply.usage
        cut = reply.finish_reason == "length"
        return {
            **self._head,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": [self.message(reply)],
            "usage": {
                "input_tokens": usage.prompt_tokens,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": usage.completion_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage.prompt_tokens + usage.completion_tokens,
            },
        }

    def message(self, reply: ChatReply | None) -> dict[str, Any]:
        """Return the output's only item."""
        status = "in_progress"
        if reply is not None:
            status = "incomplete" if reply.finish_reason == "length" else "completed"
        content = [] if reply is None else [self.part(reply)]
        head = {"id": self.item, "type": "message", "role": "assistant"}
        return {**head, "status": status, "content": content}

    def part(self, reply: ChatReply | None) -> dict[str, Any]:
        """Return the item's only part: the text and what it cites."""
        text, cited = ("", []) if reply is None else (reply.text, reply.annotations)
        flat = [
            {"type": one["type"], **one["url_citation"]}
            for one in add_address(cited, self._address)
        ]
        return {"type": "output_text", "text": text, "annotations": flat, "logprobs": []}


async def _stream(
    chosen: ChatModel, asked: ChatQuestion, limits: ReplyLimits, made: _Made
) -> AsyncIterator[ServerEvent]:
    numbers = count()

    def event(kind: str, **more: Any) -> ServerEvent:
        data = {"type": kind, "sequence_number": next(numbers), **more}
        return ServerEvent(data, kind)

    yield event("response.created", response=made.show(None))
    yield event("response.in_progress", response=made.show(None))
    try:
        async with aclosing(stream_reply(chosen, asked, limits)) as items:
            async for item in items:
                if isinstance(item, ChatReply):
                    for kind, more in _events_of(item, made):
                        yield event(kind, **more)
    except Exception as error:  # noqa: BLE001  (the status is sent: the error becomes an event)
        yield event("error", **describe_error(error).to_json("/v1/"))


def _events_of(reply: ChatReply, made: _Made) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the kinds and the data of the events that tell a finished answer."""
    item = {"output_index": 0}
    part = {**item, "item_id": made.item, "content_index": 0}
    yield "response.output_item.added", {**item, "item": made.message(None)}
    yield "response.content_part.added", {**part, "part": made.part(None)}
    for piece in cut_pieces(reply.text):
        yield "response.output_text.delta", {**part, "delta": piece, "logprobs": []}
    whole = made.part(reply)
    for at, cited in enumerate(whole["annotations"]):
        more = {**part, "annotation_index": at, "annotation": cited}
        yield "response.output_text.annotation.added", more
    yield "response.output_text.done", {**part, "text": reply.text, "logprobs": []}
    yield "response.content_part.done", {**part, "part": whole}
    yield "response.output_item.done", {**item, "item": made.message(reply)}
    shown = made.show(reply)
    yield f"response.{shown['status']}", {"response": shown}
