"""Replies that are cut at their limit, and models that think before they answer."""

import pytest
from completion_server import calls, completion, completion_server
from pydantic import BaseModel

from clew.config import ModelSettings, RoleSettings
from clew.errors import ParseError
from clew.llm.cache import DictCache
from clew.llm.chat import REPLY_TOKENS, ContextTooLong, EndpointError, Reply, Request
from clew.llm.fit_prompt import PromptRoom, WindowedChat
from clew.llm.openai_chat import OpenAIChat, SdkChat
from clew.llm.prompt import Prompt, TextPrompt
from clew.llm.roles import create_chat
from clew.llm.tools import ToolCall, ToolSpec
from clew.llm.wrappers import CachedChat
from clew.testing.fakes import ScriptedChat
from clew.testing.stub_endpoint import StubEndpoint
from clew.testing.stub_responses import Fault

NAMES = '{"names": ["Ada", "Bob"]}'
THOUGHTS = 400


class Names(BaseModel):
    names: list[str] = []
    wants: list[ToolCall] = []


@pytest.fixture
def find(tmp_path):
    (tmp_path / "find.md").write_text("Find names.\n=== user ===\n$text", encoding="utf-8")
    return Prompt("find", Names, {"text"}, folder=tmp_path)


@pytest.fixture
def say(tmp_path):
    (tmp_path / "say.md").write_text("Say $what.", encoding="utf-8")
    return TextPrompt("say", {"what"}, folder=tmp_path)


def thinking(answer, style="field"):
    """A model that spends 400 tokens on its thoughts, whatever its limit, and then answers."""

    def reply(request):
        room = request.max_tokens - THOUGHTS
        if style == "field":  # hidden in a field of their own
            thought = ""
        else:
            thoughts = range(min(THOUGHTS, request.max_tokens))
            thought = "<think>" + "".join(f"{n:4}" for n in thoughts)
            thought += "</think>" if room > 0 else ""
        said = answer[: max(0, 4 * room)]
        return Reply(thought + said, finish="stop" if said == answer else "length")

    return ScriptedChat(reply)


def limits(chat):
    return [request.max_tokens for request in chat.requests]


@pytest.mark.parametrize("style", ["field", "tags"])
async def test_a_model_that_thinks_pays_twice_only_the_first_time(find, say, style):
    chat = thinking(NAMES, style)
    for _ in range(3):
        assert (await find.ask(chat, text="x", like=Request(max_tokens=100))).names == [
            "Ada",
            "Bob",
        ]
    assert limits(chat) == [100, REPLY_TOKENS, REPLY_TOKENS, REPLY_TOKENS]
    chat = thinking("It is so.", style)
    for _ in range(2):
        assert await say.ask(chat, what="it", like=Request(max_tokens=100)) == "It is so."
    assert limits(chat) == [100, REPLY_TOKENS, REPLY_TOKENS]


async def test_without_a_limit_there_is_one_for_all(find, say):
    chat = ScriptedChat([NAMES, "It is so."])
    await find.ask(chat, text="x")
    await say.ask(chat, what="it")
    assert limits(chat) == [REPLY_TOKENS, REPLY_TOKENS]


async def test_what_is_cut_at_every_limit_is_said_to_be_cut(find, say):
    chat = ScriptedChat(lambda _: Reply('{"names": ["Ada", "Bo', finish="length"))
    answer = await find.ask_detailed(chat, text="x")
    assert (answer.value.names, answer.truncated) == (["Ada"], True)
    assert limits(chat) == [REPLY_TOKENS, 4 * REPLY_TOKENS, 16 * REPLY_TOKENS]
    chat = ScriptedChat(lambda _: Reply("It is", finish="length"))
    assert await say.ask(chat, what="it") == "It is …"
    assert len(chat.requests) == 3


@pytest.mark.parametrize("text", ["", "<think>Let me see", "<think>Hm.</think>"])
async def test_thoughts_are_no_answer(find, say, text):
    for finish in ("length", "stop"):
        chat = ScriptedChat(lambda _, finish=finish: Reply(text, finish=finish))
        with pytest.raises(ParseError, match="without a word"):
            await say.ask(chat, what="it")
        with pytest.raises(ParseError, match="no usable answer"):
            await find.ask(chat, text="x")


async def test_a_whole_answer_that_meets_its_limit_is_whole(find):
    chat = ScriptedChat([Reply(NAMES + " ", finish="length")])
    answer = await find.ask_detailed(chat, text="x")
    assert (answer.value.names, answer.truncated) == (["Ada", "Bob"], False)


async def test_a_loop_gets_no_more_room(find, say):
    text = '{"names": ["Ada"' + ', "Ada"' * 400
    chat = ScriptedChat(lambda _: Reply(text, finish="length"))
    answer = await find.ask_detailed(chat, text="x")
    assert (answer.value.names, answer.truncated) == (["Ada"], True)
    assert limits(chat) == [REPLY_TOKENS]


async def test_a_cut_list_of_calls_is_asked_for_again(find):
    tools = (ToolSpec("look", "Look.", {"type": "object", "properties": {}}),)
    cut = completion(tool_calls=calls(("look", "{}")), finish="length")
    whole = completion(tool_calls=calls(("look", "{}"), ("find", NAMES)))
    async with completion_server(cut, whole) as (url, bodies):
        answer = await find.ask(OpenAIChat("m", url), text="x", tools=tools)
    assert (answer.names, answer.wants) == (["Ada", "Bob"], [ToolCall(tool="look")])
    assert [body["max_tokens"] for body in bodies] == [REPLY_TOKENS, 4 * REPLY_TOKENS]


async def test_reasoning_in_fields_of_its_own_is_not_read(say):
    thought = {"reasoning_content": "I think so.", "reasoning": "I think so."}
    replies = [completion("", "length", **thought), completion("It is.", **thought)]
    async with completion_server(*replies) as (url, bodies):
        assert await say.ask(OpenAIChat("m", url), what="it") == "It is."
    assert len(bodies) == 2


async def test_a_listener_hears_no_thoughts_and_one_attempt(say):
    replies = [
        Reply("<think>Perhaps", finish="length"),
        Reply("<think>Perhaps < this</think>It is a < b", finish="length"),
        Reply("<think>Perhaps</think>It is a < b, and so on."),
    ]
    heard = []
    said = await say.ask(ScriptedChat(replies), what="it", on_text=heard.append)
    assert said == "It is a < b, and so on."
    assert "".join(heard) == "It is a < b"


async def test_a_whole_reply_is_kept_under_the_limit_that_was_asked_for(find):
    inner, cache = thinking(NAMES), DictCache()
    await find.ask(CachedChat(inner, cache), text="x", like=Request(max_tokens=100))
    later = ScriptedChat([], name=inner.name)
    later.name = inner.name
    asked = Request(max_tokens=100)
    assert (await find.ask(CachedChat(later, cache), text="x", like=asked)).names == ["Ada", "Bob"]
    assert later.requests == []


def in_window(chat, window):
    room = PromptRoom(window)

    async def find_room():
        return room

    return WindowedChat(chat, find_room, lambda what: None), room


async def test_limits_stay_within_half_of_the_window(find):
    chat, _ = in_window(
        inner := ScriptedChat(lambda _: Reply('{"names": ["A', finish="length")), 2048
    )
    await find.ask_detailed(chat, text="x")
    assert limits(inner) == [512, 1024]


async def test_a_model_that_may_not_write_more_is_taken_at_its_word(find):
    def reply(request):
        if request.max_tokens > 8192:
            return ContextTooLong("max_tokens is too large: at most 8192 tokens.", status=400)
        return Reply('{"names": ["Ada", "Bo', finish="length")

    chat, room = in_window(inner := ScriptedChat(reply), 128_000)
    answer = await find.ask_detailed(chat, text="x")
    assert (answer.value.names, answer.truncated) == (["Ada"], True)
    assert limits(inner) == [1500, 6000, 24_000, 6000]
    assert (room.window, room.share) == (128_000, 1.0)  # nothing was wrong with the prompt
    failing = ScriptedChat(lambda _: EndpointError("no.", status=400))
    with pytest.raises(EndpointError, match="no"):
        await find.ask(failing, text="x")


class Refusing(StubEndpoint):
    """Knows no `reasoning_effort`."""

    def fault_for(self, body, number):
        told = "Unrecognized request argument supplied: reasoning_effort"
        return Fault(400, message=told) if "reasoning_effort" in body else None


async def test_effort_is_sent_where_it_is_set(say):
    async with StubEndpoint(lambda _: "It is.") as stub:
        settings = ModelSettings(
            model="m",
            base_url=stub.base_url,
            reasoning_effort="low",
            judge=RoleSettings(reasoning_effort=""),
            answer=RoleSettings(reasoning_effort="high"),
        )
        for role in ("plan", "judge", "answer"):
            await say.ask(create_chat(role, settings), what="it")
    efforts = [body.get("reasoning_effort") for body in stub.stats.bodies]
    assert efforts == ["low", None, "high"]


@pytest.mark.parametrize("client", [OpenAIChat, SdkChat])
async def test_effort_is_dropped_where_it_is_refused(say, client):
    if client is SdkChat:
        pytest.importorskip("openai")
    async with Refusing(lambda _: "It is.") as stub:
        chat = client("m", stub.base_url, extra={"reasoning_effort": "low"})
        for _ in range(2):
            assert await say.ask(chat, what="it") == "It is."
        if client is SdkChat:
            await chat.close()
    efforts = [body.get("reasoning_effort") for body in stub.stats.bodies]
    assert efforts == ["low", None, None]
