"""Text with more tokens than one per four bytes: prompts are made shorter, by what is counted."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from agent_asking import asking
from test_every_agent import good

from clew.agents.ask import AskOptions
from clew.agents.base import Answer
from clew.config import ModelSettings
from clew.context import TraceStep
from clew.engine import KnowledgeBase
from clew.llm.chat import ContextTooLong, EndpointError, Message, Reply, Request
from clew.llm.fit_prompt import PromptRoom, WindowedChat
from clew.llm.openai_api import error_from_response, estimate_prompt_tokens
from clew.testing.fakes import ScriptedChat
from clew.testing.stub_endpoint import StubEndpoint
from clew.testing.stub_responses import Fault
from clew.types import Usage
from conftest import OpenFilled, document, one_in_three, stream

WINDOW = 2048
REPLY = 400  # tokens of a reply, less than any prompt reserves
LONG = "Ilse Brandvik kept finches, ledgers and maps of the Grey Coast in her house. " * 60
RECIPES = ("naive", "clew", "lightrag", "tog", "lego-13", "graph-r1", "react", "graphsearch")


def too_long(counted: int) -> Exception:
    """What an endpoint says."""
    said = f"This model's maximum context length is {WINDOW} tokens. However, you sent {counted}"
    body = {"error": {"message": said, "code": "context_length_exceeded"}}
    return error_from_response(400, {}, json.dumps(body).encode(), "m", "http://m/v1")


def dense(script: Callable[[Any], str], bytes_per_token: float, sent: list[bool]) -> Any:
    """A model that reads so many bytes as one token and refuses what does not fit its window."""

    def say(messages: Sequence[dict[str, str]]) -> str:
        counted = sum(len(m["content"].encode()) for m in messages) / bytes_per_token
        sent.append(counted + REPLY <= WINDOW)
        if not sent[-1]:
            raise too_long(int(counted))
        return script(list(messages))

    return say


async def fill_wordy(base: KnowledgeBase) -> None:
    pages = [document(f"d{n}", f"{n}. {LONG}", f"Marrow Bridge {n}") for n in range(6)]
    pages.append(document("d7", "Ilse Brandvik was born in Hallowmere.", "Ilse Brandvik"))
    await base.take(stream(pages))


@pytest.fixture
async def wordy(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_filled(fill_wordy)


def steps_of(trace: Sequence[TraceStep]) -> list[str]:
    return [name for step in trace for name in (step.step, *steps_of(step.steps))]


async def ask(
    base: KnowledgeBase, recipe: str, bytes_per_token: float
) -> tuple[Answer, list[bool]]:
    sent: list[bool] = []
    model = dense(good(), bytes_per_token, sent)
    question = "Where was Ilse Brandvik of Marrow Bridge born?"
    answer = await asking(base)(
        model, question, recipe=recipe, k=10, window=WINDOW, manner=AskOptions(record_prompts=True)
    )
    return answer, sent


@pytest.mark.parametrize("recipe", one_in_three(RECIPES))
async def test_a_prompt_that_is_too_long_is_sent_again_shorter(
    wordy: KnowledgeBase, recipe: str
) -> None:
    answer, sent = await ask(wordy, recipe, 2.2)
    assert sent[-1], "no prompt was accepted"
    assert sent.count(False) <= 2
    assert answer.verdict == "answered"
    assert "retrievals failed" not in answer.note
    assert sent.count(False) == 0 or "cut prompt" in steps_of(answer.trace)


@pytest.mark.parametrize("recipe", ["naive", "clew", "tog", "lego-13"])
async def test_a_model_that_reads_no_prompt_leaves_the_evidence_quoted(
    wordy: KnowledgeBase, recipe: str
) -> None:
    answer, sent = await ask(wordy, recipe, 0.5)
    assert sent and not any(sent)
    assert answer.verdict == "answered" and answer.citations
    assert not answer.complete


class SmallServer(StubEndpoint):
    """A server of a small context that it does not tell beforehand."""

    said = "the prompt has {counted} tokens, too many"
    most = 1500

    def fault_for(self, body: Mapping[str, Any], number: int) -> Fault | None:
        """Refuse what does not fit."""
        counted = sum(len(turn["content"].encode()) for turn in body["messages"]) // 4
        refused = Fault(400, message=self.said.format(counted=counted))
        return refused if counted > self.most else super().fault_for(body, number)


async def ask_server(base: KnowledgeBase, server: SmallServer, recipe: str) -> list[Answer]:
    """Ask two questions one after the other, as in one session."""
    settings = base.settings.model_copy(
        update={"models": ModelSettings(model="m", base_url=server.base_url)}
    )
    other = KnowledgeBase(base.store, settings, base.embed)
    other.reader = base.reader
    asked = ("Where was Ilse Brandvik of Marrow Bridge born?", "Who kept finches and ledgers?")
    return [await other.ask(question, recipe=recipe, k=10) for question in asked]


@pytest.mark.parametrize("recipe", ["naive", "clew"])
async def test_a_server_that_reads_little_is_told_less_for_the_whole_session(
    wordy: KnowledgeBase, recipe: str
) -> None:
    async with SmallServer(good()) as server:
        first, second = await ask_server(wordy, server, recipe)
        sent = [sum(len(t["content"]) for t in body["messages"]) for body in server.stats.bodies]
    assert (first.verdict, second.verdict) == ("answered", "answered")
    assert first.complete and second.complete
    refused = [size > 4 * SmallServer.most + 3 for size in sent]
    assert 0 < sum(refused) <= 2 and not any(refused[3:])  # not once more in the second question


@pytest.mark.parametrize("recipe", ["naive", "clew"])
async def test_a_server_that_reads_nothing_leaves_the_answer_without_a_model(
    wordy: KnowledgeBase, recipe: str
) -> None:
    alone = await wordy.ask("Where was Ilse Brandvik of Marrow Bridge born?", recipe=recipe, k=10)
    server = SmallServer(good())
    server.most = 10
    async with server:
        answer, _ = await ask_server(wordy, server, recipe)
    assert (answer.verdict, answer.complete) == ("answered", False)
    assert answer.answer == alone.answer
    assert "too many" in answer.note


@pytest.mark.parametrize(
    ("status", "said", "window"),
    [
        (
            400,
            "This model's maximum context length is 8,192 tokens. However, you requested 9000",
            8192,
        ),
        (
            400,
            "the request exceeds the available context size (4096 tokens), try increasing it",
            4096,
        ),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", 200000),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000", 4096),
        (400, "Please reduce the length of the messages or completion.", None),
        (400, "the prompt has 4156 tokens, too many", None),
        (400, "Input is too long for requested model.", None),
        (400, "Range of input length should be [1, 30720]", None),
        (400, "the input token count (9000) exceeds the maximum number of tokens (8192)", 8192),
        (413, "Request Entity Too Large", None),
    ],
)
def test_what_endpoints_say_of_a_long_prompt_is_understood(
    status: int, said: str, window: int | None
) -> None:
    raw = json.dumps({"error": {"message": said}}).encode()
    error = error_from_response(status, {}, raw, "m", "http://m/v1")
    assert isinstance(error, ContextTooLong)
    assert error.window == window


@pytest.mark.parametrize(
    ("fields", "window"),
    [
        ({"message": "no", "code": "context_length_exceeded"}, None),
        ({"message": "no", "code": 400, "type": "exceed_context_size_error", "n_ctx": 4096}, 4096),
    ],
)
def test_codes_say_that_a_prompt_is_too_long(fields: dict[str, Any], window: int | None) -> None:
    raw = json.dumps({"error": fields}).encode()
    error = error_from_response(400, {}, raw, "m", "http://m/v1")
    assert isinstance(error, ContextTooLong) and error.window == window


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "'max_tokens' is not supported with this model"),
        (400, "Invalid schema for response_format"),
        (429, "Request too large: tokens per minute exceed the limit of 6000"),
        (400, "Input validation error: `temperature` must be strictly positive"),
        (400, "messages: at least one message is required"),
        (400, "the prompt was filtered by the content management policy; change it and retry"),
    ],
)
def test_other_errors_are_no_long_prompt(status: int, said: str) -> None:
    raw = json.dumps({"error": {"message": said}}).encode()
    error = error_from_response(status, {}, raw, "m", "http://m/v1")
    assert isinstance(error, EndpointError) and not isinstance(error, ContextTooLong)


async def call(room: PromptRoom, tokens: Callable[[int], int], size: int = 8000) -> None:
    async def find() -> PromptRoom:
        return room

    def say(request: Request) -> Reply:
        return Reply("ok", Usage(1, tokens(estimate_prompt_tokens(request.messages)), 1))

    chat = WindowedChat(ScriptedChat(say), find, lambda _: None)
    await chat(Request((Message("user", "x" * size),)))


async def test_the_endpoints_counts_correct_the_estimate() -> None:
    room = PromptRoom(4096)
    await call(room, lambda estimated: estimated)  # no usage told: as estimated
    assert room.beside(96) == 4000
    await call(room, lambda estimated: estimated // 2)  # fewer tokens leave prompts as they are
    assert room.beside(96) == 4000
    await call(room, lambda estimated: 2 * estimated, size=400)  # too short to tell
    assert room.beside(96) == 4000
    await call(room, lambda estimated: 2 * estimated)
    assert room.beside(96) == 2000
    await call(room, lambda estimated: 10**8)  # however much is claimed
    assert room.beside(96) == 1000


async def test_a_guess_is_corrected_by_the_next_count() -> None:
    kept: list[float] = []

    async def save(share: float) -> None:
        kept.append(share)

    room = PromptRoom(4096, save=save)
    await room.shrink(4000, 96, 4096)
    await room.shrink(4000, 96, 4096)  # another of that size, sent before: nothing new
    assert room.share == 0.6
    await call(room, lambda estimated: int(estimated / 0.82))
    assert room.share == 0.8
    assert kept == [0.6, 0.8]
    await room.shrink(3000, 96, 2000)
    assert (room.window, room.share) == (2000, 0.8)


async def test_what_was_too_long_is_not_sent_again() -> None:
    room = PromptRoom(8192)  # assumed: in truth it is 4096
    await room.shrink(3900, 192, None)
    assert room.beside(192) == int(0.6 * 3900)
    for _ in range(3):  # counts of shorter prompts do not lead back to that size
        await call(room, lambda estimated: estimated + 1)
        assert room.beside(192) < 3900
