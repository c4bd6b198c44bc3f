"""Search and ask."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from pydantic import AfterValidator, Field

from clew.agents.ask import AskOptions
from clew.agents.base import Answer
from clew.json_output import answer_json, event_json, search_json
from clew.layout import Modality
from clew.llm.budget import UsageLimits
from clew.serve.core.access import Access, Reader
from clew.serve.core.bodies import StrictBody, check_words
from clew.serve.core.chat import (
    ask_within_budget,
    make_options,
    search_within_budget,
    stream_answer_items,
)
from clew.serve.core.problems import describe_error
from clew.serve.core.sse import ServerEvent, stream_events

router = APIRouter(prefix="/workspaces/{workspace}", tags=["questions"])
Question = Annotated[
    str,
    Field(min_length=1, max_length=20_000, examples=["Who designed the Marrow Bridge?"]),
    AfterValidator(check_words),
]
RecipeName = Annotated[
    str | None,
    Field(max_length=200, description="A name from `/recipes`.", examples=["clew"]),
]


class LimitedRequest(StrictBody):
    """What may be used of models, at most."""

    max_calls: int | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=0)
    max_seconds: float | None = Field(default=None, ge=0)
    max_money: float | None = Field(default=None, ge=0)

    def limits(self) -> UsageLimits:
        """Return the limits that the caller sets."""
        return UsageLimits(self.max_calls, self.max_tokens, self.max_seconds, self.max_money)


class SearchRequest(LimitedRequest):
    """What to search for."""

    question: Question
    recipe: RecipeName = None
    k: int = Field(default=10, ge=1, le=200)
    entities: list[str] = Field(default_factory=list, max_length=50)


class Turn(StrictBody):
    """An earlier question of a conversation and its answer."""

    question: str = Field(max_length=20_000)
    answer: str = Field(default="", max_length=100_000)


class AskRequest(LimitedRequest):
    """What to answer, and how."""

    question: Question
    recipe: RecipeName = None
    mode: Literal["open", "reject"] = "open"
    k: int | None = Field(default=None, ge=1, le=200)
    entities: list[str] = Field(default_factory=list, max_length=50)
    history: list[Turn] = Field(default_factory=list, max_length=50)
    stream: bool = Field(default=False, description="Answer as server-sent events.")
    evidence: Modality = Field(default="all", description="What the model is shown.")
    confidence: float | None = Field(
        default=None, ge=0, le=1, description="The least one of an answer in `reject` mode."
    )
    style: str = Field(
        default="", max_length=20_000, description="How an answer is worded; not what it may say."
    )


@router.post("/search", summary="Find evidence for a question; needs no model")
async def search(access: Reader, body: SearchRequest) -> Response:
    """Return passages, entities, facts, paths and communities, best first."""
    found = await search_within_budget(
        access, body.question, body.recipe, body.k, body.entities, body.limits()
    )
    return JSONResponse(search_json(found))


@router.post("/ask", summary="Answer a question, every sentence cited")
async def ask(access: Reader, body: AskRequest) -> Response:
    """Return the answer with its citations; with `stream` steps and tokens as they happen.

    Events: `step-started`, `step`, `token`, then `answer` with the whole result, or `error`.
    """
    manner = replace(
        make_options(access, body.limits(), [(t.question, t.answer) for t in body.history]),
        evidence=body.evidence,
        confidence=body.confidence,
        style=body.style,
    )
    how = {
        "recipe": body.recipe,
        "mode": body.mode,
        "k": body.k,
        "entities": tuple(body.entities),
    }
    if body.stream:
        return stream_events(_stream(access, body.question, manner, how))
    answer = await ask_within_budget(access, body.question, manner, how)
    return JSONResponse(answer_json(answer))


async def _stream(
    access: Access, question: str, manner: AskOptions, how: dict[str, Any]
) -> AsyncIterator[ServerEvent]:
    try:
        async with aclosing(stream_answer_items(access, question, manner, how)) as items:
            async for item in items:
                if isinstance(item, Answer):
                    yield ServerEvent(answer_json(item), "answer")
                else:
                    name, data = event_json(item)
                    yield ServerEvent(data, name)
    except Exception as error:  # noqa: BLE001  (the status is sent: the error becomes an event)
        reply = describe_error(error)
        yield ServerEvent({"status": reply.status, "detail": reply.detail}, "error")
