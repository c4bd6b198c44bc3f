"""OpenAI's API, called with its official client; and Ollama's."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from serving import Listening, fill, make_key, make_server, running

from clew.serve.core.keys import KeyLimits
from clew.serve.core.side_tasks import answer_side_task

QUESTION = "Where was Ilse Brandvik born?"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[openai.OpenAI]:
    """The official client with a key for one workspace."""
    fill(tmp_path / "valley")
    fill(tmp_path / "other")
    server = make_server(tmp_path)
    key = make_key(server, {"valley": "read"})["Authorization"].split()[1]
    with (
        Listening(server) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as made,
    ):
        yield made


def test_the_official_client_lists_asks_streams_and_embeds(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names[0] == "valley/clew" and "valley/bm25" in names
    assert not any(name.startswith("other/") for name in names)
    assert client.models.retrieve("valley/clew").id == "valley/clew"
    done = client.chat.completions.create(
        model="valley/clew", messages=[{"role": "user", "content": QUESTION}]
    )
    [choice] = done.choices
    assert "Hallowmere" in (choice.message.content or "") and choice.finish_reason == "stop"
    assert done.usage is not None and done.usage.total_tokens == 0  # no model was called
    [cited, *_] = choice.message.annotations or []
    place = cited.url_citation
    assert (choice.message.content or "")[place.start_index : place.end_index] == "[1]"
    assert place.title == "Ilse Brandvik" and "/#/documents?ws=valley&name=ilse" in place.url
    stream = client.chat.completions.create(
        model="clew",
        messages=[{"role": "user", "content": QUESTION}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == choice.message.content
    assert chunks[-1].usage is not None and chunks[-2].choices[0].finish_reason == "stop"
    made = client.embeddings.create(model="valley", input=["one bridge", "two bridges"])
    assert len(made.data) == 2 and len(made.data[0].embedding) == 64
    floats = client.embeddings.create(model="valley", input="one bridge", encoding_format="float")
    assert floats.data[0].embedding == pytest.approx(made.data[0].embedding, abs=1e-6)


def test_earlier_turns_are_used(client: openai.OpenAI) -> None:
    done = client.chat.completions.create(
        model="valley/clew",
        messages=[
            {"role": "system", "content": "Answer like a pirate."},
            {"role": "user", "content": "Who designed the Marrow Bridge?"},
            {"role": "assistant", "content": "Ilse Brandvik [1]"},
            {"role": "user", "content": [{"type": "text", "text": "Where was she born?"}]},
        ],
    )
    assert "Hallowmere" in (done.choices[0].message.content or "")


def test_stop_and_length_end_the_text(client: openai.OpenAI) -> None:
    asked: Any = {"model": "valley/clew", "messages": [{"role": "user", "content": QUESTION}]}
    whole = client.chat.completions.create(**asked).choices[0].message.content or ""
    stopped = client.chat.completions.create(**asked, stop=["Hallowmere"]).choices[0]
    assert stopped.message.content == whole.partition("Hallowmere")[0]
    short = client.chat.completions.create(**asked, max_tokens=5).choices[0]
    assert short.finish_reason == "length" and whole.startswith(short.message.content or "-")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"model": "other/clew"}, openai.NotFoundError),
        ({"model": "valley/nonsense"}, openai.NotFoundError),
        ({"model": "../x"}, openai.NotFoundError),
        ({"messages": []}, openai.BadRequestError),
        ({"messages": [{"role": "assistant", "content": "x"}]}, openai.BadRequestError),
        ({"n": 3}, openai.BadRequestError),
    ],
)
def test_errors_have_openais_shape(
    client: openai.OpenAI, change: dict[str, Any], error: type[openai.APIStatusError]
) -> None:
    asked = {"model": "valley/clew", "messages": [{"role": "user", "content": QUESTION}], **change}
    with pytest.raises(error) as raised:
        client.chat.completions.create(**asked)
    body: Any = raised.value.body
    assert body["message"] and body["type"] and "code" in body


def test_a_wrong_key_is_an_authentication_error(client: openai.OpenAI) -> None:
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="clew_wrong").models.list()


HISTORY = f"""<chat_history>
USER: {QUESTION}
ASSISTANT: Ilse Brandvik was born in Hallowmere [1]. "title": is no reply that is wanted.
</chat_history>"""


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ('{ "title": "..." }', {"title": QUESTION.strip("?")}),
        ('{ "tags": ["a"] }', {"tags": ["Ilse Brandvik", "Hallowmere"]}),
        ('{ "follow_ups": [] }', {"follow_ups": ["What else is known about Hallowmere?"]}),
        ('{ "queries": [] }', {"queries": [QUESTION]}),
        ('{ "text": "" }', {"text": ""}),
        ('{ "prompt": "" }', {"prompt": QUESTION.strip("?")}),
    ],
)
def test_a_chat_pages_side_requests_are_answered_from_what_they_quote(
    wanted: str, expected: dict[str, Any]
) -> None:
    task = f"### Task:\nMake something.\n### Output:\nJSON format: {wanted}\n{HISTORY}"
    assert json.loads(answer_side_task(task) or "") == expected


def test_side_requests_are_told_from_questions(client: openai.OpenAI) -> None:
    title = '### Task:\nMake a title.\n### Output:\nJSON format: { "title": "..." }\n' + HISTORY
    assert json.loads(chat_once(client, {"role": "user", "content": title}))["title"]
    task = "Your task is to choose a fitting emoji.\n\nMessage: ```Who was Ilse Brandvik?```"
    assert chat_once(client, {"role": "user", "content": task}) == "🤔"
    tools = 'Available Tools: []\nReturn only JSON: {"tool_calls": []}'
    offered = {"role": "system", "content": tools}, {"role": "user", "content": "Query: Who?"}
    assert json.loads(chat_once(client, *offered)) == {"tool_calls": []}
    asked = "Your task is to tell where Ilse Brandvik was born."
    assert "Hallowmere" in chat_once(client, {"role": "user", "content": asked})


def chat_once(client: openai.OpenAI, *messages: Any) -> str:
    """Return the reply to some messages."""
    done = client.chat.completions.create(model="valley/clew", messages=list(messages))
    return done.choices[0].message.content or ""


def test_ollamas_chat_and_tags(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    with running(server) as client:
        models = client.get("/api/tags").json()["models"]
        assert models[0]["name"] == "valley/clew"
        body = {"model": "valley", "messages": [{"role": "user", "content": QUESTION}]}
        lines = [json.loads(line) for line in client.post("/api/chat", json=body).text.splitlines()]
        assert "Hallowmere" in lines[0]["message"]["content"] and lines[-1]["done"]
        whole = client.post("/api/chat", json={**body, "stream": False}).json()
        assert whole["message"]["content"] == lines[0]["message"]["content"]
        wrong = client.post("/api/chat", json={**body, "model": "nowhere"})
        assert wrong.status_code == 404 and wrong.json()["error"]
        spent = make_key(server, {"valley": "read"}, limits=KeyLimits(None, 0))
        assert client.post("/api/chat", json=body, headers=spent).status_code == 429
