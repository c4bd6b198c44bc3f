"""Tool calls at endpoints that have them, refuse them, ignore them, and answer nonsense."""

import json
from typing import Any

import pytest
from completion_server import calls, completion, completion_server
from pydantic import BaseModel

from clew.errors import AuthError, ModelError, ParseError
from clew.llm.cache import DictCache
from clew.llm.openai_chat import OpenAIChat, SdkChat
from clew.llm.prompt import Prompt
from clew.llm.structured import CAPABILITIES
from clew.llm.tools import ToolCall, ToolSpec
from clew.llm.wrappers import CachedChat
from clew.testing.fakes import ScriptedChat
from clew.testing.stub_endpoint import StubEndpoint

SEARCH = ToolSpec(
    "search",
    "Find passages.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for"},
            "limit": {"type": "integer"},
        },
        "required": ["query"],
    },
)
LOOK_UP = ToolSpec("look_up", "Look up a name.", {"type": "object", "properties": {}})
TOOLS = (SEARCH, LOOK_UP)
REFUSED = {"tools": 400, "tools_auto": 400, "tool": 400}


class Step(BaseModel):
    """What to do next."""

    reasoning: str = ""
    wants: list[ToolCall] = []
    answer: str = ""


WANTED = {
    "answer": "not yet",
    "wants": [
        {"tool": "search", "arguments": {"query": "Ada", "limit": 3}},
        {"tool": "look_up", "arguments": {}},
    ],
}
DONE = Step(
    answer="not yet",
    wants=[
        ToolCall(tool="search", arguments={"query": "Ada", "limit": 3}),
        ToolCall(tool="look_up"),
    ],
)


@pytest.fixture
def step(tmp_path):
    (tmp_path / "step.md").write_text("Decide.\n=== user ===\n$question", encoding="utf-8")
    return Prompt("step", Step, {"question"}, folder=tmp_path)


def saying(value: Any):
    text = value if isinstance(value, str) else json.dumps(value)
    return lambda messages: text


@pytest.mark.parametrize("client", [OpenAIChat, SdkChat])
async def test_several_native_calls_become_the_fields_and_the_wants(step, client):
    if client is SdkChat:
        pytest.importorskip("openai")
    async with StubEndpoint(saying(WANTED)) as stub:
        chat = client("m", stub.base_url)
        assert await step.ask(chat, question="Who?", tools=TOOLS) == DONE
        heard: list[str] = []
        answer = await step.ask(Streaming(chat, heard), question="Who?", tools=TOOLS)
        if client is SdkChat:
            await chat.close()
    assert answer == DONE
    assert json.loads("".join(heard)) == {"answer": "not yet"}  # what a listener may show
    body = stub.stats.bodies[0]
    functions = {tool["function"]["name"]: tool["function"] for tool in body["tools"]}
    assert body["tool_choice"] == "required"
    assert functions["search"]["parameters"] == SEARCH.schema
    assert set(functions["step"]["parameters"]["properties"]) == {"reasoning", "answer"}
    assert functions["step"]["description"] == "What to do next."
    assert "search" not in body["messages"][-1]["content"]


class Streaming:
    """Streams every call."""

    def __init__(self, inner, heard):
        self.inner, self.heard, self.name = inner, heard, inner.name

    async def __call__(self, request, /, on_text=None):
        return await self.inner(request, self.heard.append)


async def test_where_a_call_cannot_be_required_it_is_left_to_the_model(step):
    async with StubEndpoint(saying(WANTED), refuse={"tools": 400}) as stub:
        chat = OpenAIChat("m", stub.base_url)
        for _ in range(2):
            assert await step.ask(chat, question="Who?", tools=TOOLS) == DONE
    choices = [body["tool_choice"] for body in stub.stats.bodies]
    assert choices == ["required", "auto", "auto"]


@pytest.mark.parametrize("refuse", [{}, {"schema": 400}, {"schema": 400, "json": 400}])
async def test_where_tools_are_refused_they_are_described(step, refuse):
    async with StubEndpoint(saying(WANTED), refuse=REFUSED | refuse) as stub:
        chat = OpenAIChat("m", stub.base_url)
        assert await step.ask(chat, question="Who?", tools=TOOLS) == DONE
        assert await step.ask(chat, question="Who else?", tools=TOOLS) == DONE
        assert (await step.ask(chat, question="And now?")) == DONE
    body = stub.stats.bodies[-2]
    told = body["messages"][-1]["content"]
    assert "- search(query: string (what to look for), limit?: integer): Find passages." in told
    assert '{"tool": "search", "arguments": {"query": "…"}}' in told
    assert "tools" not in body
    if not refuse:
        wrapped = body["response_format"]["json_schema"]
        call = wrapped["schema"]["$defs"]["ToolCall"]
        assert (wrapped["strict"], call["properties"]["tool"]["enum"]) == (
            False,
            ["search", "look_up"],
        )
    else:
        assert '"wants": [{' in told


@pytest.mark.parametrize(
    "said",
    [
        json.dumps(WANTED),
        f"<think>Which {{tool}}?</think>Here:\n```json\n{json.dumps(WANTED)}\n```",
        '<tool_call>\n{"name": "step", "arguments": {"answer": "not yet"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "search", "arguments": {"query": "Ada", "limit": 3}}\n</tool_call>\n'
        '<tool_call>\n{"name": "look_up", "arguments": {}}\n</tool_call>',
        '{"answer": "not yet", "wants": [{"name": "search", "arguments": "{\\"query\\": \\"Ada\\", '
        '\\"limit\\": 3}"}, {"tool": "look_up"}]}',
    ],
)
async def test_calls_written_as_text_are_read(step, said):
    async with completion_server(completion(said)) as (url, bodies):
        assert await step.ask(OpenAIChat("m", url), question="Who?", tools=TOOLS) == DONE
    assert len(bodies) == 1


async def test_what_is_said_beside_calls_is_the_reasoning(step):
    said = "<think>hm</think>I know nobody."
    reply = completion(said, tool_calls=calls(("search", '{"query": "Ada"}')))
    async with completion_server(reply) as (url, _):
        answer = await step.ask(OpenAIChat("m", url), question="Who?", tools=TOOLS)
    assert answer == Step(
        reasoning="I know nobody.", wants=[ToolCall(tool="search", arguments={"query": "Ada"})]
    )


async def test_prose_is_asked_for_again_with_the_tools_and_the_shape_and_teaches_nothing(step):
    replies = [completion("I would search."), completion(json.dumps(WANTED))]
    async with completion_server(*replies, completion("Prose.")) as (url, bodies):
        chat = OpenAIChat("m", url)
        assert await step.ask(chat, question="Who?", tools=TOOLS) == DONE
        with pytest.raises(ParseError, match="gave no usable answer"):
            await step.ask(chat, question="Who?", tools=TOOLS)
    told = bodies[1]["messages"][-1]["content"]
    assert "the answer holds no JSON" in told
    assert "- look_up(): Look up a name." in told
    assert [body["tool_choice"] for body in bodies] == ["required"] * 4


@pytest.mark.parametrize("same", ["index", "id", "neither"])
async def test_streamed_calls_are_told_apart(step, same):
    functions = [("search", '{"query": "Ada", "limit": 3}'), ("look_up", ""), ("step", "")]
    events = []
    for n, (name, arguments) in enumerate(functions):
        index = {} if same == "index" else {"index": n}
        given = {} if same == "id" else {"id": f"call {n}"}
        head = index | given | {"function": {"name": name, "arguments": ""}}
        parts = [arguments[:9], arguments[9:]] if arguments else []
        more = [index | {"function": {"arguments": part}} for part in parts]
        events += [{"choices": [{"delta": {"tool_calls": [one]}}]} for one in (head, *more)]
    for piece in ('{"answer": ', '"not yet"}'):
        part = {"index": 2, "function": {"arguments": piece}}
        part = {"function": part["function"]} if same == "index" else part
        events.append({"choices": [{"delta": {"tool_calls": [part]}}]})
    events.append({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    raw = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    async with completion_server(raw, events=True) as (url, _):
        heard: list[str] = []
        chat = Streaming(OpenAIChat("m", url), heard)
        assert await step.ask(chat, question="Who?", tools=TOOLS) == DONE
    assert heard == ['{"answer": ', '"not yet"}']


async def test_a_tool_may_have_the_name_of_the_prompt(step):
    tools = (ToolSpec("step", "Take a step.", {"type": "object", "properties": {}}),)
    functions = calls(("step", "{}"), ("step_answer", '{"answer": "yes"}'))
    async with completion_server(completion(tool_calls=functions)) as (url, _):
        answer = await step.ask(OpenAIChat("m", url), question="Who?", tools=tools)
    assert answer == Step(answer="yes", wants=[ToolCall(tool="step")])


async def test_calls_are_kept_like_other_replies(step):
    inner, cache = ScriptedChat([json.dumps(WANTED), json.dumps(WANTED)]), DictCache()
    for tools in (TOOLS, TOOLS, TOOLS[:1]):  # other tools are another question
        assert await step.ask(CachedChat(inner, cache), question="Who?", tools=tools) == DONE
    assert len(inner.requests) == 2


NONSENSE = (
    b"<html><body>Bad gateway</body></html>",
    b"",
    b'{"choices": [{"message": {"content": "{',
    completion(""),
    completion("{]]"),
    completion(tool_calls=calls(("step", "{not json"))),
    401,
    429,
    500,
)


@pytest.mark.parametrize("answer", NONSENSE, ids=str)
async def test_nonsense_is_an_error_that_says_what_it_is(step, answer):
    async with completion_server(answer) as (url, bodies):
        with pytest.raises(ModelError) as caught:
            await step.ask(OpenAIChat("m", url), question="Who?", tools=TOOLS)
        assert isinstance(caught.value, AuthError) == (answer == 401)
        assert len(str(caught.value)) < 500
        chat = OpenAIChat("m", url)
        assert chat.name not in CAPABILITIES or not CAPABILITIES[chat.name].refused
        assert len(bodies) <= 2 or answer == 500
