"""A model that does not run: one error and nothing written, unless it has answered before."""

import json
import socket
from pathlib import Path

import pytest

from clew.config import ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError, ModelError
from clew.llm.chat import EndpointError, Reply, Request, TextCallback
from clew.llm.limits import FailFastChat
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.stub_endpoint import Messages, StubEndpoint
from clew.types import Usage
from conftest import VALLEY, stream


def opened(kb: Path, base_url: str) -> KnowledgeBase:
    models = ModelSettings(
        model="stub",
        base_url=base_url,
        api_key="k",  # type: ignore[arg-type]
        tries=1,
    )
    store = SqliteStore(kb, create=True, durable=False)
    return KnowledgeBase(store, Settings(kb=kb, models=models), HashEmbed())


def nowhere() -> str:
    """An address at which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


async def test_where_nothing_answers_nothing_is_written(tmp_path: Path) -> None:
    base = opened(tmp_path / "kb", nowhere())
    with pytest.raises(ConfigError, match=r"cannot be reached .* nothing is written"):
        await base.take(stream(VALLEY))
    status = await base.status()
    assert (status["documents"], status["failed"]) == (0, 0)
    await base.close()


async def test_what_failed_before_is_left_as_it_is(tmp_path: Path) -> None:
    def reply(messages: Messages) -> str | None:
        return "no json here" if "Hallowmere is a fishing" in json.dumps(list(messages)) else None

    async with StubEndpoint(reply=reply) as stub:
        base = opened(tmp_path / "kb", stub.base_url)
        await base.take(stream(VALLEY))
        assert (await base.status())["failed"] == 1
        await base.close()
    base = opened(tmp_path / "kb", stub.base_url)  # closed by now
    with pytest.raises(ConfigError, match="cannot be reached"):
        await base.add([], retry=True)
    assert (await base.status())["failed"] == 1
    assert (await base.take(stream(VALLEY))).unchanged == len(VALLEY)
    await base.close()


class Falling:
    """Answers as told, call by call."""

    name = "falling"

    def __init__(self, *said: Reply | Exception) -> None:
        self.said = iter(said)

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        one = next(self.said)
        if isinstance(one, Reply):
            return one
        raise one


def failure(cause: Exception | None, status: int | None = None) -> EndpointError:
    inner = EndpointError("http://there failed", status=status)
    inner.__cause__ = cause
    outer = EndpointError("http://there failed; tried twice.", status=status)
    outer.__cause__ = inner  # as the one that tries again tells it
    return outer


PAID = Reply("{}", Usage(calls=1))
REMEMBERED = Reply("{}", Usage(cached_calls=1))
REFUSED = ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize(
    ("said", "stops"),
    [
        ((failure(REFUSED),), True),
        ((REMEMBERED, failure(socket.gaierror(-2, "unknown"))), True),
        ((failure(TimeoutError()), failure(REFUSED)), True),
        ((PAID, failure(REFUSED)), False),
        ((failure(None, 503), failure(REFUSED)), False),  # something is there
        ((failure(ConnectionResetError(104, "reset")),), False),
        ((failure(TimeoutError()),), False),
    ],
)
async def test_only_an_address_that_never_answered_stops_all(
    said: tuple[Reply | Exception, ...], stops: bool
) -> None:
    chat = FailFastChat(Falling(*said))
    for one in said[:-1]:
        if isinstance(one, Reply):
            await chat(Request())
        else:
            with pytest.raises(ModelError):
                await chat(Request())
    with pytest.raises(ConfigError if stops else EndpointError):
        await chat(Request())
    if stops:  # nobody finds out twice
        with pytest.raises(ConfigError):
            await chat(Request())
