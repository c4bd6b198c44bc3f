"""Asks every reading route for what a key may not see; also used by `make attack-server`."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi.testclient import TestClient

from clew.labels import is_visible
from clew.types import Document
from conftest import document

TEAMS = ("team=legal", "team=sales", "level=secret")
PEOPLE = ("Ilse Brandvik", "Anton Reeve", "Clara Lindqvist", "Marta Quill")
FORMATS = ("graphml", "jsonl", "cypher", "html", "tsv", "csv")
RECIPES = ("clew", "bm25", "hipporag2", "lightrag")
AT = "/workspaces/valley"
AGENT = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}


def make_documents(count: int, seed: int) -> tuple[list[Document], dict[str, list[str]]]:
    """Documents about the same few people, each with a word of its own, and random labels."""
    rng = random.Random(seed)
    found, labels = [], {}
    for number in range(count):
        one, other = rng.sample(PEOPLE, 2)
        mark = marker(number)
        text = (
            f"{one} designed the {mark} Bridge with {other}. {one}, also called {mark}son, was "
            f"born in {mark}ville in 18{number:02d}. {other} married {one} in {mark}ville."
        )
        found.append(document(f"doc-{number}", text, rng.choice([one, f"{mark} Bridge"])))
        labels[f"doc-{number}"] = rng.sample(TEAMS, rng.randint(0, 2))
    return found, labels


def marker(number: int) -> str:
    """A word that only one document has."""
    return "Zq" + "bcdfghjklm"[number // 10] + "bcdfghjklm"[number % 10] + "ax"


def hidden_markers(labels: Mapping[str, Sequence[str]], granted: Sequence[str]) -> list[str]:
    """The words that a reader with these labels must never see."""
    return [
        marker(int(name.removeprefix("doc-"))).lower()
        for name, some in labels.items()
        if not is_visible(some, granted)
    ]


def read_everything(
    client: TestClient,
    headers: Mapping[str, str],
    documents: Sequence[Document],
    chosen: random.Random | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield the answers of every route that reads, as (what was asked, body).

    Of keys, exports and recipes all are asked for, or a few at random, which is cheaper.
    """
    few = chosen is not None
    rng = chosen or random.Random(0)

    def get(path: str, **params: Any) -> str:
        return client.get(AT + path, params=params, headers=headers).text

    yield "status", get("")
    yield "documents", get("/documents")
    for one in documents:
        for part in ("", "/text", "/original"):
            yield f"document{part}", get(f"/documents/{one.id}{part}")
    for query in ("", *PEOPLE):
        yield "entities", get("/entities", query=query, limit=500)
    for key in rng.sample(range(1, 40), 6) if few else range(1, 40):
        yield "entity", get(f"/entities/{key}")
        yield "neighbours", get(f"/entities/{key}/neighbours", limit=500)
        yield "fact", get(f"/facts/{key}")
    yield "facts", get("/facts", limit=500)
    yield "paths", get("/paths", start=PEOPLE[0], end=PEOPLE[1])
    for name in PEOPLE:
        yield "show", get("/show", name=name)
    yield "tree", get("/tree", depth=4)
    for label in ("", *TEAMS):
        yield "overview", get("/overview", limit=500, label=label)
    yield "overview", get("/overview", since=1)
    yield "schema", get("/schema")
    for one in documents:
        yield "reading", get("/reading", name=one.names[0], facts=True)
        yield "page", get(f"/documents/{one.id}/pages/1")
    for form in rng.sample(FORMATS, 2) if few else FORMATS:
        yield f"export {form}", get("/export", format=form)
    yield from _ask_everything(client, headers, [rng.choice(RECIPES)] if few else RECIPES)
    yield "jobs", get("/jobs")


def _ask_everything(
    client: TestClient, headers: Mapping[str, str], recipes: Sequence[str]
) -> Iterator[tuple[str, str]]:
    question = f"Where was {PEOPLE[0]} born, and what did {PEOPLE[1]} design?"
    for recipe in recipes:
        body: dict[str, Any] = {"question": question, "recipe": recipe, "k": 50}
        yield f"search {recipe}", client.post(f"{AT}/search", json=body, headers=headers).text
        for stream in (False, True):
            asked = client.post(f"{AT}/ask", json={**body, "stream": stream}, headers=headers)
            yield f"ask {recipe}", asked.text
    chat = {"model": "valley/clew", "messages": [{"role": "user", "content": question}]}
    for stream in (False, True):
        body = {**chat, "stream": stream}
        yield "chat", client.post("/v1/chat/completions", json=body, headers=headers).text
        yield "ollama", client.post("/api/chat", json=body, headers=headers).text
    for tool, given in (
        ("search", {"question": question}),
        ("ask", {"question": question}),
        ("show", {"name": PEOPLE[0]}),
        ("neighbours", {"name": PEOPLE[1]}),
        ("path", {"start": PEOPLE[0], "end": PEOPLE[1]}),
    ):
        called = {"name": tool, "arguments": {**given, "workspace": "valley"}}
        sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
        reply = client.post("/mcp", json=sent, headers={**headers, **AGENT})
        yield f"mcp {tool}", reply.text
