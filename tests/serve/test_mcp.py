"""The Model Context Protocol, called with its official client, in both eras."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import INVALID_PARAMS
from serving import Listening, fill, make_key, make_server

from clew.agents.tools import TOOLS
from clew.config import ModelSettings
from clew.serve.core.keys import KeyLimits
from clew.serve.mcp_server import create_mcp
from clew.testing.stub_endpoint import StubEndpoint
from conftest import VALLEY, document

ERAS = ("legacy", "2026-07-28")
QUESTION = "Where was Ilse Brandvik born?"


def content(result: Any) -> Any:
    """The JSON of a tool's answer."""
    return json.loads(result.content[0].text)


@pytest.mark.parametrize("era", ERAS)
async def test_the_tools_answer(tmp_path: Path, era: str) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    server.start()
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async with Client(create_mcp(server, local=True), mode=era) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"ask", "show", *TOOLS}
        found = content(await client.call_tool("search", {"question": QUESTION, "k": 2}))
        assert len(found["chunks"]) == 2
        asked = await client.call_tool("ask", {"question": QUESTION}, progress_callback=hear)
        answer = content(asked)
        assert answer["candidate"] == "Hallowmere" and heard
        near = content(await client.call_tool("neighbours", {"name": "Ilse Brandvik"}))
        assert near["facts"]
        shown = content(await client.call_tool("show", {"name": "ilse"}))
        document = shown["documents"][0]["id"]
        paths = {"start": "Marrow Bridge", "end": "Hallowmere"}
        assert content(await client.call_tool("paths", paths))["paths"]
        wrong = content(await client.call_tool("neighbours", {"name": "Nobody"}))
        assert "no entity is named" in wrong["findings"][0]["text"]
        uri = f"clew://valley/documents/{document}"
        assert found["chunks"][0]["uri"].startswith("clew://valley/documents/")
        whole = (await client.read_resource(uri)).contents[0].text
        cited = answer["citations"][0]
        place = f"{uri}/{cited['start']}/{cited['end']}"
        assert (await client.read_resource(place)).contents[0].text == cited["quote"] != whole
        assert cited["uri"] == place and 0 < answer["confidence"] < 1
        for unknown in (f"{uri[:-1]}x", f"{uri}/5/99999999", uri.replace("valley", "nowhere")):
            with pytest.raises(MCPError) as raised:
                await client.read_resource(unknown)
            assert raised.value.error.code == INVALID_PARAMS
    await server.stop()


async def test_adding_is_offered_only_if_allowed(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    server.start()
    looking = asyncio.ensure_future(server.look_after())
    async with Client(create_mcp(server, local=True, allow_add=True)) as client:
        note = {"name": "note", "text": "The Otter Ferry sank in 1901."}
        assert content(await client.call_tool("add", note)) == {
            "added": 1,
            "updated": 0,
            "unchanged": 0,
        }
        assert content(await client.call_tool("add", note))["unchanged"] == 1
        assert (await client.call_tool("add", {**note, "name": "../x"})).is_error
        broken = await client.call_tool("add", {**note, "name": "note.pdf"})
        assert broken.is_error and "PDF" in broken.content[0].text
    looking.cancel()
    await server.stop()


async def test_what_an_agent_adds_is_charged_to_its_key(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    async with StubEndpoint() as stub:
        models = ModelSettings(model="stub", base_url=stub.base_url, tries=1)
        server = make_server(tmp_path, models=models, mcp=True, mcp_add=True)
        writer = make_key(server, {"valley": "write"}, limits=KeyLimits(calls_per_day=1))
        with Listening(server) as url:
            async with httpx2.AsyncClient(headers=writer, timeout=60) as http:
                transport = streamable_http_client(f"{url}/mcp", http_client=http)
                async with Client(transport) as client:
                    note = {"name": "note", "text": "The Otter Ferry sank in 1901."}
                    await client.call_tool("add", note)
                    refused = await client.call_tool("add", {**note, "name": "second"})
                    assert "used up" in refused.content[0].text
                own = (await http.get(f"{url}/keys/own")).json()
        assert own["spent"]["calls"] == 1 == stub.stats.chat_calls
        assert [one.name for one in server.uploads.list("valley")] == ["note"]


@pytest.mark.parametrize("era", ERAS)
async def test_documents_are_listed_as_resources_page_by_page(tmp_path: Path, era: str) -> None:
    notes = [document(f"note {number:03}", f"Note {number}.") for number in range(120)]
    fill(tmp_path / "valley", [*VALLEY, *notes], labels={"ilse": ["team=legal"]})
    server = make_server(tmp_path)
    reader = make_key(server, {"valley": "read"}, [])
    with Listening(server) as url:
        async with httpx2.AsyncClient(headers=reader) as http:
            transport = streamable_http_client(f"{url}/mcp", http_client=http)
            async with Client(transport, mode=era) as client:
                first = await client.list_resources()
                then = await client.list_resources(cursor=first.next_cursor)
                names = [one.name for one in (*first.resources, *then.resources)]
                assert (len(first.resources), then.next_cursor) == (100, None)
                assert names == sorted(names) and {"bridge", "note 119"} <= set(names)
                assert "ilse" not in names
                read = await client.read_resource(then.resources[-1].uri)
                assert read.contents[0].text


@pytest.mark.parametrize(
    ("given", "told"),
    [({}, "question"), ({"question": 5}, "question"), ({"question": " \n"}, "question")],
)
async def test_wrong_arguments_are_told_in_one_sentence(
    tmp_path: Path, given: dict[str, Any], told: str
) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    server.start()
    async with Client(create_mcp(server, local=True)) as client:
        refused = await client.call_tool("search", given)
    await server.stop()
    text = refused.content[0].text
    assert refused.is_error and f"the argument {told!r} of 'search'" in text
    assert "\n" not in text and "http" not in text


@pytest.mark.parametrize("era", ERAS)
async def test_over_http_every_call_has_the_rights_of_its_key(tmp_path: Path, era: str) -> None:
    fill(tmp_path / "valley", labels={"ilse": ["team=legal"]})
    fill(tmp_path / "other")
    server = make_server(tmp_path, hosts=("rag.example",))
    reader = make_key(server, {"valley": "read"}, [])
    with Listening(server) as url:
        async with httpx2.AsyncClient(headers=reader) as http:
            transport = streamable_http_client(f"{url}/mcp", http_client=http)
            async with Client(transport, mode=era) as client:
                body = {"question": QUESTION, "recipe": "bm25"}
                found = content(await client.call_tool("search", body))
                assert "ilse" not in [chunk["doc"] for chunk in found["chunks"]]
                for name in ("other", "nowhere"):
                    refused = await client.call_tool("search", {**body, "workspace": name})
                    assert refused.is_error and "nothing here" in refused.content[0].text
        async with httpx2.AsyncClient() as http:
            keyless = await http.post(f"{url}/mcp", json={})
            assert keyless.status_code == 401
            assert keyless.headers["content-type"] == "application/json"  # else clients hide it
            assert keyless.json()["error"]["message"].startswith("a key is needed; send")
            for host, origin, status in (
                ("[::1]:1", None, 406),  # let in: then it misses an Accept header
                ("rag.example", "https://rag.example", 406),
                ("rag.example:444", "https://rag.example:444", 406),
                ("rag.example", "https://evil.example", 403),
            ):
                sent = {**reader, "Host": host, **({"Origin": origin} if origin else {})}
                reply = await http.post(f"{url}/mcp", json={}, headers={**sent, "Accept": "x/y"})
                assert reply.status_code == status, (host, origin, reply.text)
            evil = {**reader, "Host": "evil.example"}
            assert (await http.post(f"{url}/mcp", json={}, headers=evil)).status_code == 421


async def test_an_agent_is_told_which_workspaces_there_are(tmp_path: Path) -> None:
    for name in ("valley", "hill"):
        fill(tmp_path / name)
    server = make_server(tmp_path)
    server.start()
    async with Client(create_mcp(server, local=True)) as client:
        asked = await client.call_tool("search", {"question": QUESTION})
        assert asked.is_error and "one of hill, valley" in asked.content[0].text
    await server.stop()


async def test_a_server_for_agents_alone(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with Listening(make_server(tmp_path, rest=False)) as url:
        async with Client(f"{url}/mcp") as client:
            found = await client.call_tool("show", {"name": "Ilse Brandvik"})
            assert content(found)["entities"][0]["name"] == "Ilse Brandvik"
        async with httpx2.AsyncClient() as http:
            assert (await http.get(f"{url}/health")).status_code == 200
            for path in ("/", "/workspaces", "/openapi.json", "/v1/models", "/workspaces/valley"):
                assert (await http.get(url + path)).status_code == 404, path


@pytest.mark.slow  # in this process: test_over_http_every_call_has_the_rights_of_its_key
async def test_the_command_speaks_over_http(tmp_path: Path) -> None:
    fill(tmp_path / "kb")
    command = [sys.executable, "-m", "clew", "mcp", "--http", "--port", "0", "--kb", "kb"]
    process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stderr=PIPE)
    assert process.stderr is not None
    said = (await process.stderr.readline()).decode()
    async with Client(said.split()[-1]) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
    process.terminate()
    await process.wait()
    assert said.startswith("serving default at http://127.0.0.1:") and "search" in tools


async def test_the_command_speaks_over_stdio(tmp_path: Path) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "clew", "mcp", "--kb", "kb"], cwd=tmp_path
    )
    fill(tmp_path / "kb")
    async with Client(command) as client:
        found = await client.call_tool("show", {"name": "Ilse Brandvik"})
        assert content(found)["entities"][0]["name"] == "Ilse Brandvik"
