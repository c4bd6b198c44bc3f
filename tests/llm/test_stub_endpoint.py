import asyncio
import json
import sys

import httpx
import numpy as np
import pytest
from pydantic import BaseModel

from clew.llm.chat import EndpointError, Request, text_request
from clew.llm.openai_chat import OpenAIChat
from clew.llm.parse import json_schema
from clew.testing.fakes import ScriptedChat
from clew.testing.stub_endpoint import StubEndpoint
from clew.testing.stub_responses import (
    DROP,
    Fault,
    find_facts,
    hash_vector,
    parse_fault,
    write_schema_reply,
)


class Relation(BaseModel):
    source: str
    target: str
    relation: str
    keywords: list[str] = []
    weight: float = 1.0


class Thing(BaseModel):
    name: str
    type: str
    description: str


class Graph(BaseModel):
    entities: list[Thing]
    relations: list[Relation]


class Hyper(BaseModel):
    class Segment(BaseModel):
        text: str
        entities: list[str]

    segments: list[Segment]


TEXT = "Ada Lovelace wrote to Charles Babbage. Charles Babbage built the Analytical Engine."


def test_a_schema_is_filled_with_the_texts_names_and_facts():
    graph = Graph.model_validate_json(write_schema_reply([{"content": TEXT}], json_schema(Graph)))
    assert [thing.name for thing in graph.entities] == find_facts(TEXT)[0]
    assert (graph.relations[0].source, graph.relations[0].target) == (
        "Ada Lovelace",
        "Charles Babbage",
    )
    assert graph.relations[0].relation == "wrote to"
    hyper = Hyper.model_validate_json(write_schema_reply([{"content": TEXT}], json_schema(Hyper)))
    assert hyper.segments[0].entities == ["Ada Lovelace", "Charles Babbage"]


def test_shared_words_mean_closer_vectors():
    near, far = "the river Thames in London", "a proof about prime numbers"
    query = hash_vector("river Thames", 64)
    assert query @ hash_vector(near, 64) > query @ hash_vector(far, 64)
    assert np.allclose(np.linalg.norm(hash_vector("", 64)), 1)


async def test_other_clients_find_it_compatible():
    async with StubEndpoint(dim=16) as stub, httpx.AsyncClient(base_url=stub.base_url) as client:
        models = (await client.get("/models")).json()
        rows = (await client.post("/embeddings", json={"input": ["a", "b"], "model": "e"})).json()
        lost = await client.get("/nothing")
        stats = (await client.get("/stats")).json()
    assert models["data"][0]["id"] == "stub"
    assert [len(row["embedding"]) for row in rows["data"]] == [16, 16]
    assert lost.status_code == 404
    assert (stats["embed_calls"], stats["texts_embedded"]) == (1, 2)


def test_faults_are_written_in_a_word():
    assert parse_fault("drop") is DROP
    assert parse_fault("ok") is None
    assert parse_fault("429+2") == Fault(429, retry_after="2")


async def test_it_runs_in_a_process_of_its_own():
    words = ["-m", "clew.testing.stub_endpoint", "--refuse", "schema=500", "--faults", "ok,500"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE
    )
    try:
        base_url = (await process.stdout.readline()).decode().strip()
        chat = OpenAIChat("m", base_url)
        reply = await chat(text_request("Ada met Bob."))
        assert json.loads(reply.text)["triples"] == [["Ada", "met", "Bob"]]
        with pytest.raises(EndpointError, match="HTTP 500"):
            await chat(text_request("again"))
    finally:
        process.kill()
        await process.wait()


async def test_a_script_is_followed_and_recorded():
    chat = ScriptedChat(["one", ValueError("two")], failures={2: KeyError("three")})
    request = Request(text_request("q").messages, seed=3)
    assert (await chat(request)).text == "one"
    with pytest.raises(ValueError, match="two"):
        await chat(request)
    with pytest.raises(KeyError):
        await chat(request)
    with pytest.raises(AssertionError, match="was asked once more: 'q'"):
        await chat(request)
    assert chat.requests == [request] * 4
