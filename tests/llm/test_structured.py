import asyncio
import json
from dataclasses import replace

import pytest
from pydantic import BaseModel

from clew.errors import AuthError, ParseError
from clew.llm.cache import DictCache, cache_key, encode_reply
from clew.llm.chat import EndpointError, Reply, text_request
from clew.llm.limits import RetryingChat, RetryPolicy
from clew.llm.openai_chat import OpenAIChat
from clew.llm.parse import example_json, json_schema
from clew.llm.structured import CAPABILITIES, StructuredRequest, ask_structured
from clew.llm.wrappers import CachedChat
from clew.testing.fakes import ScriptedChat
from clew.testing.stub_endpoint import StubEndpoint
from clew.testing.stub_responses import CUT, DROP, GARBAGE, HUGE, Fault


class Found(BaseModel):
    entities: list[str]
    triples: list[tuple[str, str, str]] = []


QUESTION = StructuredRequest(
    "found", Found, text_request("Who? Ada Lovelace met Charles Babbage.", "Extract.")
)
GOOD = '{"entities": ["Ada Lovelace"], "triples": []}'


def modes(chat):
    return [
        request.response_format.mode if request.response_format else "text"
        for request in chat.requests
    ]


def refusing(*refused, status=400):
    """An endpoint that turns down some ways of asking."""

    def reply(request):
        mode = request.response_format.mode if request.response_format else "text"
        return EndpointError(f"{mode} is unknown.", status=status) if mode in refused else GOOD

    return ScriptedChat(reply)


async def test_the_best_way_is_tried_first_and_kept():
    chat = refusing()
    for _ in range(3):
        assert (await ask_structured(chat, QUESTION)).value.entities == ["Ada Lovelace"]
    assert modes(chat) == ["schema"] * 3
    assert CAPABILITIES[chat.name].proven == {"schema"}


@pytest.mark.parametrize("status", [400, 422, 501])
async def test_a_refused_way_is_learnt_once(status):
    chat = refusing("schema", "tool", status=status)
    for _ in range(3):
        await ask_structured(chat, QUESTION)
    assert modes(chat) == ["schema", "tool", "json", "json", "json"]


async def test_a_careless_500_is_asked_twice_before_it_counts():
    chat = refusing("schema", status=500)
    await ask_structured(chat, QUESTION)
    await ask_structured(chat, QUESTION)
    assert modes(chat) == ["schema", "schema", "tool", "tool"]


async def test_one_mishap_costs_no_ability():
    chat = ScriptedChat([EndpointError("oops.", status=500, transient=True), GOOD, GOOD])
    await ask_structured(chat, QUESTION)
    await ask_structured(chat, QUESTION)
    assert modes(chat) == ["schema"] * 3


async def test_the_lower_rungs_show_the_shape():
    chat = refusing("schema", "tool", "json")
    await ask_structured(chat, QUESTION)
    schema, *_, text = chat.requests
    assert example_json(Found) not in schema.messages[-1].content
    assert text.messages[-1].content.endswith(example_json(Found))
    assert text.messages[0] == schema.messages[0]


async def test_a_failure_of_the_server_teaches_nothing():
    chat = ScriptedChat(lambda _: EndpointError("too long.", status=400))
    with pytest.raises(EndpointError, match="too long"):
        await ask_structured(chat, QUESTION)
    assert not CAPABILITIES[chat.name].proven | CAPABILITIES[chat.name].refused


async def test_once_proven_a_refusal_is_an_error_and_no_descent():
    chat = ScriptedChat([GOOD, EndpointError("context too long.", status=400), GOOD])
    await ask_structured(chat, QUESTION)
    with pytest.raises(EndpointError, match="context"):
        await ask_structured(chat, QUESTION)
    await ask_structured(chat, QUESTION)
    assert modes(chat) == ["schema"] * 3


async def test_an_echoed_schema_is_answered_with_an_example_and_rules_nothing_out():
    def reply(request):
        shown = example_json(Found) in request.messages[-1].content
        return GOOD if shown else json.dumps(json_schema(Found))

    chat = ScriptedChat(reply)
    await ask_structured(chat, QUESTION)
    await ask_structured(chat, QUESTION)
    assert modes(chat) == ["schema"] * 4
    assert not CAPABILITIES[chat.name].refused


async def test_a_bad_answer_is_mended_in_one_turn():
    chat = ScriptedChat(['{"triples": "none"}', GOOD])
    answer = await ask_structured(chat, QUESTION)
    assert answer.repaired
    assert answer.value.entities == ["Ada Lovelace"]
    assert answer.usage.calls == 2
    *_, said, told = chat.requests[1].messages
    assert (said.role, said.content) == ("assistant", '{"triples": "none"}')
    assert "entities: Field required" in told.content
    assert example_json(Found) in told.content


async def test_two_bad_answers_are_one_clear_error():
    chat = ScriptedChat([GOOD, "I would rather not.", "Really not."])
    await ask_structured(chat, QUESTION)
    with pytest.raises(ParseError, match=r"scripted .* no usable answer .*Really not.*larger"):
        await ask_structured(chat, QUESTION)


async def test_prose_is_asked_for_as_json_once_and_rules_nothing_out():
    replies = ["I would rather not."] * 2
    chat = ScriptedChat([*replies, *replies, GOOD])
    for _ in range(2):
        with pytest.raises(ParseError, match="gave no usable answer"):
            await ask_structured(chat, QUESTION)
    assert (await ask_structured(chat, QUESTION)).value.entities == ["Ada Lovelace"]
    assert modes(chat) == ["schema"] * 5


async def test_an_answer_without_room_says_so():
    chat = ScriptedChat([GOOD, Reply("", finish="length"), Reply("{", finish="length")])
    await ask_structured(chat, QUESTION)
    with pytest.raises(ParseError, match="gave no usable answer"):
        await ask_structured(chat, QUESTION)
    assert [turn.role for turn in chat.requests[-1].messages] == ["system", "user", "user"]


async def test_a_refusing_model_is_not_pressed():
    chat = ScriptedChat([Reply("I can't.", finish="refusal")])
    with pytest.raises(ParseError, match="refuses to answer 'found'.*I can't"):
        await ask_structured(chat, QUESTION)


async def test_a_cut_reply_gives_its_complete_items():
    text = '{"entities": ["a"], "triples": [["a","r","b"], ["a","r","b"], ["a","r'
    answer = await ask_structured(ScriptedChat([Reply(text, finish="length")]), QUESTION)
    assert answer.value.triples == [("a", "r", "b")]
    assert (answer.truncated, answer.dropped, answer.repaired) == (True, 0, False)


async def test_the_shape_is_asked_for_in_the_prompts_language():
    chat = refusing("schema", "tool", "json")
    await ask_structured(chat, StructuredRequest("found", Found, text_request("谁？"), "zh"))
    assert "只回答 JSON" in chat.requests[-1].messages[-1].content


async def test_many_at_once_find_out_together_and_only_once():
    async with StubEndpoint(refuse={"schema": 422, "tool": 400}, latency=0.02) as stub:
        chat = OpenAIChat("m", stub.base_url)
        for _ in range(2):
            answers = await asyncio.gather(*[ask_structured(chat, QUESTION) for _ in range(5)])
            assert all(answer.value.entities for answer in answers)
        assert stub.stats.chat_calls == 5 * 3 + 5


async def test_against_a_server_that_does_everything_wrong_nothing_is_lost():
    faults = [DROP, Fault(503), Fault(429, retry_after="0"), CUT]
    async with StubEndpoint(refuse={"schema": 500}, faults=faults) as stub:
        chat = RetryingChat(OpenAIChat("m", stub.base_url), RetryPolicy(first_wait=0.01))
        answer = await ask_structured(chat, QUESTION)
        assert answer.value.entities == ["Who", "Ada Lovelace", "Charles Babbage"]
        assert answer.value.triples == [("Ada Lovelace", "met", "Charles Babbage")]


@pytest.mark.parametrize("fault", [GARBAGE, pytest.param(HUGE, marks=pytest.mark.slow)])
async def test_nonsense_of_any_size_is_a_parse_error_or_what_fits(fault):
    async with StubEndpoint(faults=lambda _: fault) as stub:
        chat = OpenAIChat("m", stub.base_url)
        try:
            answer = await ask_structured(chat, QUESTION)
        except ParseError as error:
            assert len(str(error)) < 500
        else:
            assert answer.value.entities[0].startswith("caf")


async def test_a_wrong_key_goes_straight_through():
    async with StubEndpoint(faults=lambda _: Fault(401)) as stub:
        with pytest.raises(AuthError):
            await ask_structured(RetryingChat(OpenAIChat("m", stub.base_url)), QUESTION)
        assert stub.stats.chat_calls == 1


async def test_a_reply_that_cannot_be_used_is_not_given_again():
    inner = ScriptedChat(['{"entities": 1}', '{"entities": 2}', GOOD])
    chat = CachedChat(inner, DictCache())
    with pytest.raises(ParseError):
        await ask_structured(chat, QUESTION)
    for _ in range(2):  # the repair is asked for once more, then known
        assert (await ask_structured(chat, QUESTION)).value.entities == ["Ada Lovelace"]
    assert len(inner.requests) == 3


async def test_a_kept_reply_that_cannot_be_used_is_asked_for_again():
    inner, cache = ScriptedChat(['{"entities": 1}', '{"entities": 2}', GOOD]), DictCache()
    with pytest.raises(ParseError):
        await ask_structured(CachedChat(inner, cache), QUESTION)
    repair = inner.requests[-1]
    cache.items[cache_key(inner.name, repair)] = encode_reply(Reply('{"entities": 2}'))
    assert (await ask_structured(CachedChat(inner, cache), QUESTION)).value.entities


async def test_a_refusal_is_not_given_again():
    inner = ScriptedChat([Reply("I cannot help.", finish="refusal"), GOOD])
    chat = CachedChat(inner, DictCache())
    with pytest.raises(ParseError, match="refuses"):
        await ask_structured(chat, QUESTION)
    assert (await ask_structured(chat, QUESTION)).value.entities == ["Ada Lovelace"]


async def test_what_is_made_from_one_text_is_kept_as_another_sample_retries_it():
    inner = ScriptedChat(['{"entities": 1}', '{"entities": 2}'])
    chat = CachedChat(inner, DictCache())
    question = replace(QUESTION, request=replace(QUESTION.request, text="Ada met Charles."))
    for _ in range(2):
        with pytest.raises(ParseError):
            await ask_structured(chat, question)
    assert len(inner.requests) == 2
