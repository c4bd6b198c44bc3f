import asyncio

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from clew.config import ROLES, ModelSettings, RoleSettings
from clew.errors import AuthError, ConfigError, ModelError
from clew.llm.cache import DictCache
from clew.llm.chat import text_request
from clew.llm.roles import RoleChats, create_chat, resolve_model
from clew.llm.structured import StructuredRequest, ask_structured
from clew.llm.wrappers import UsageMeter
from clew.testing.stub_endpoint import StubEndpoint
from clew.testing.stub_responses import DROP, Fault


class Found(BaseModel):
    entities: list[str]


def test_a_role_falls_back_to_the_settings_for_all():
    settings = ModelSettings(
        model="small",
        base_url="http://one/v1",
        api_key=SecretStr("k1"),
        judge=RoleSettings(model="big"),
        answer=RoleSettings(base_url="http://two/v1"),
    )
    assert resolve_model("extract", settings).model == "small"
    assert resolve_model("judge", settings).model == "big"
    assert resolve_model("judge", settings).api_key == "k1"
    assert resolve_model("answer", settings).model == "small"


def test_a_key_never_travels_to_another_endpoint():
    settings = ModelSettings(
        model="m", api_key=SecretStr("k1"), answer=RoleSettings(base_url="http://two/v1")
    )
    assert resolve_model("answer", settings).api_key == ""
    assert "k1" not in repr(settings) + repr(resolve_model("plan", settings))


def test_a_name_alone_is_enough():
    settings = ModelSettings.model_validate({"model": "a", "plan": "b"})
    assert [resolve_model(role, settings).model for role in ROLES] == ["a", "b", "a", "a"]


def test_no_model_is_one_sentence():
    with pytest.raises(ConfigError, match="no model is set for 'extract': set CLEW_MODEL"):
        create_chat("extract", ModelSettings())


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"modle": "x"}, {"client": "curl"}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ValidationError):
        ModelSettings.model_validate(wrong)


async def test_the_whole_tower_works():
    meter, cache = UsageMeter(), DictCache()
    async with StubEndpoint(lambda _: "hello", faults=[DROP, Fault(500)]) as stub:
        settings = ModelSettings(
            model="m",
            base_url=stub.base_url,
            prices={"m": {"prompt": 1_000_000, "completion": 0}},
            requests_per_minute=6000,
            tokens_per_minute=6_000_000,
        )
        chat = create_chat("answer", settings, cache, meter)
        reply = await chat(text_request("q"))
        again = await chat(text_request("q"))
        assert (reply.text, again.text, stub.stats.chat_calls) == ("hello", "hello", 3)
        assert meter.total.calls == meter.total.cached_calls == 1
        assert meter.total.money == meter.total.prompt_tokens


async def test_the_way_of_asking_for_json_can_be_settled():
    async with StubEndpoint(refuse={"schema": 500, "tool": 500, "json": 500}) as stub:
        settings = ModelSettings(model="m", base_url=stub.base_url, shape_by="text")
        answer = await ask_structured(
            create_chat("extract", settings), StructuredRequest("f", Found, text_request("Ada."))
        )
        assert "Ada" in answer.value.entities
        assert stub.stats.chat_calls == 1


async def test_roles_at_the_same_endpoint_share_its_limits():
    async with StubEndpoint(lambda _: "x", latency=0.01) as stub:
        settings = ModelSettings(model="m", base_url=stub.base_url, concurrency=3)
        chats = RoleChats(settings)
        await asyncio.gather(
            *[chats[role](text_request(str(n))) for role in ROLES for n in range(5)]
        )
        assert stub.stats.most_in_flight == 3


async def test_a_wrong_key_and_a_wrong_model_are_named_at_once():
    async with StubEndpoint(faults=lambda _: Fault(401)) as stub:
        chats = RoleChats(ModelSettings(model="m", base_url=stub.base_url))
        for role in ROLES:
            with pytest.raises(AuthError):
                await chats[role](text_request(role))
        assert stub.stats.chat_calls == len(ROLES)
    async with StubEndpoint(faults=lambda _: Fault(404)) as stub:
        chat = create_chat("plan", ModelSettings(model="m9", base_url=stub.base_url))
        with pytest.raises(ModelError, match=f"{stub.base_url} has no model 'm9'"):
            await chat(text_request("q"))
        assert stub.stats.chat_calls == 1


async def test_a_silent_endpoint_is_given_up():
    from clew.testing.stub_responses import HANG

    async with StubEndpoint(faults=lambda _: HANG) as stub:
        settings = ModelSettings(model="m", base_url=stub.base_url, timeout=0.05, tries=2)
        with pytest.raises(ModelError, match="gave up after 2 attempts"):
            await create_chat("plan", settings)(text_request("q"))


async def test_a_role_without_a_model_troubles_no_other():
    async with StubEndpoint(lambda _: "hello") as stub:
        chats = RoleChats(ModelSettings(base_url=stub.base_url, plan=RoleSettings(model="m")))
        assert (await chats["plan"](text_request("q"))).text == "hello"
        with pytest.raises(ConfigError, match="no model is set for 'answer'"):
            chats["answer"]


async def test_a_role_that_cannot_be_had_stops_only_who_asks_for_it():
    async with StubEndpoint(lambda _: "hello") as stub:
        settings = ModelSettings(
            model="m", base_url=stub.base_url, judge=RoleSettings(base_url="no address")
        )
        chats = RoleChats(settings)
        assert (await chats["extract"](text_request("q"))).text == "hello"
        with pytest.raises(ConfigError, match="no address"):
            chats["judge"]


async def test_roles_at_one_endpoint_are_each_asked_in_their_way():
    async with StubEndpoint() as stub:
        settings = ModelSettings(
            model="m",
            base_url=stub.base_url,
            concurrency=1,
            extract=RoleSettings(shape_by="tool"),
            answer=RoleSettings(shape_by="text"),
        )
        chats = RoleChats(settings)
        asked = [StructuredRequest("f", Found, text_request(f"{role}: Ada.")) for role in ROLES]
        await asyncio.gather(
            *[ask_structured(chats[r], one) for r, one in zip(ROLES, asked, strict=True)]
        )
        by_role = {
            body["messages"][-1]["content"].split(":")[0]: body for body in stub.stats.bodies
        }
        assert "tools" in by_role["extract"]
        assert not {"tools", "response_format"} & by_role["answer"].keys()
        assert by_role["plan"]["response_format"]["type"] == "json_schema"  # auto: the best there
        assert {chats[role].name for role in ROLES} == {chats["plan"].name}
        assert stub.stats.connections == 1  # and with it one limit
