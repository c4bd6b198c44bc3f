"""OpenAI's API, called with its official client; and Ollama's."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from serving import Listening, fill, make_key, make_server, running

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


def test_a_chat_pages_side_requests_are_answered_without_a_search(client: openai.OpenAI) -> None:
    history = f"<chat_history>\nUSER: {QUESTION}\nASSISTANT: In Hallowmere.\n</chat_history>"
    for name, shape in (("title", '{ "title": "..." }'), ("tags", '{ "tags": ["a"] }')):
        task = f"### Task:\nMake a {name}.\n### Output:\nJSON format: {shape}\n{history}"
        done = client.chat.completions.create(
            model="valley/clew", messages=[{"role": "user", "content": task}]
        )
        reply = json.loads(done.choices[0].message.content or "")
        assert reply[name] == (QUESTION.strip("?") if name == "title" else ["General"])


def test_ollamas_chat_and_tags(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        models = client.get("/api/tags").json()["models"]
        assert models[0]["name"] == "valley/clew"
        body = {"model": "valley", "messages": [{"role": "user", "content": QUESTION}]}
        lines = [json.loads(line) for line in client.post("/api/chat", json=body).text.splitlines()]
        assert "Hallowmere" in lines[0]["message"]["content"] and lines[-1]["done"]
        whole = client.post("/api/chat", json={**body, "stream": False}).json()
        assert whole["message"]["content"] == lines[0]["message"]["content"]
        wrong = client.post("/api/chat", json={**body, "model": "nowhere"})
        assert wrong.status_code == 404 and wrong.json()["error"]
