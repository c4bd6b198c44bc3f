"""Programs that others use against a server as `clew serve` starts it: without a key of its own."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import httpx
import openai
import pytest
from serving import make_key, make_server, running

from clew import sync
from clew.config import Settings
from clew.engine import KnowledgeBase
from conftest import VALLEY, stream

QUESTION = "Where was Ilse Brandvik born?"
ASKED: Any = [{"role": "user", "content": QUESTION}]


async def fill_without_vectors(folder: Path) -> None:
    base = await KnowledgeBase.open(Settings(kb=folder), create=True, embed=False)
    await base.take(stream(VALLEY))
    await base.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `clew serve` with no options but its port."""
    folder = tmp_path_factory.mktemp("default")
    sync.wait(fill_without_vectors(folder / "kb"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-m", "clew", "serve", "--port", str(port)]
    process = subprocess.Popen(words, cwd=folder, text=True, stderr=subprocess.PIPE)
    try:
        for _ in range(600):
            try:
                urlopen(f"http://127.0.0.1:{port}/ready").close()
                break
            except URLError:
                assert process.poll() is None, process.stderr and process.stderr.read()
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="anything", max_retries=0) as made:
        yield made


def test_the_official_client_reaches_a_default_server(client: openai.OpenAI) -> None:
    model = client.models.list().data[0].id
    done = client.chat.completions.create(model=model, messages=ASKED)
    assert "Hallowmere" in (done.choices[0].message.content or "")


def test_the_official_client_reads_a_response_and_its_events(client: openai.OpenAI) -> None:
    whole = client.responses.create(model="default", input=QUESTION, instructions="Be brief.")
    assert whole.status == "completed" and "Hallowmere" in whole.output_text
    [message] = whole.output
    assert message.type == "message"
    [part] = message.content
    assert part.type == "output_text"
    cited = part.annotations[0]
    assert cited.type == "url_citation"
    assert part.text[cited.start_index : cited.end_index] == "[1]" and "/#/documents" in cited.url
    assert whole.usage is not None and whole.usage.total_tokens == 0  # no model was called

    events = list(client.responses.create(model="default", input=ASKED, stream=True))
    assert [event.sequence_number for event in events] == [*range(len(events))]
    said = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(said) == whole.output_text
    last = events[-1]
    assert last.type == "response.completed" and last.response.output_text == whole.output_text
    with client.responses.stream(model="default", input=QUESTION) as stream:  # checks their order
        stream.until_done()
        assert stream.get_final_response().output_text == whole.output_text


def test_a_response_reads_a_conversation_and_ends_where_it_is_told(client: openai.OpenAI) -> None:
    turns: Any = [
        {"role": "user", "content": "Who designed the Marrow Bridge?"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Ilse Brandvik [1]"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Where was she born?"}]},
    ]
    assert "Hallowmere" in client.responses.create(model="default", input=turns).output_text
    cut = client.responses.create(model="default", input=QUESTION, max_output_tokens=5)
    assert cut.status == "incomplete"
    assert cut.incomplete_details and cut.incomplete_details.reason == "max_output_tokens"
    with pytest.raises(openai.BadRequestError, match="not kept"):
        client.responses.create(model="default", input="And then?", previous_response_id="resp_1")
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="nowhere", input=QUESTION, stream=True)


def test_open_webuis_requests_are_answered(url: str) -> None:
    """As it sends them to a connection whose key was left empty, and to one with a key."""
    for sent in ("Bearer", "Bearer sk-local"):
        headers = {"Authorization": sent, "X-OpenWebUI-User-Name": "Ada"}
        with httpx.Client(base_url=f"{url}/v1", headers=headers) as page:
            model = page.get("/models").raise_for_status().json()["data"][0]["id"]
            asked = {
                "model": model,
                "messages": ASKED,
                "stream": True,
                "stream_options": {"include_usage": True},
                "params": {},
                "features": {"web_search": False, "code_interpreter": False},
                "variables": {"{{USER_NAME}}": "Ada"},
                "session_id": "s",
                "chat_id": "c",
                "id": "m",
                "background_tasks": {"title_generation": True},
            }
            lines = page.post("/chat/completions", json=asked).raise_for_status().text.splitlines()
        told = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        assert told[-1] == "[DONE]"
        deltas = [part["delta"] for one in told[:-1] for part in json.loads(one)["choices"]]
        assert "Hallowmere" in "".join(delta.get("content") or "" for delta in deltas)


@pytest.mark.filterwarnings("ignore")  # those of another's package
@pytest.mark.parametrize("newer", [False, True])
def test_langchain_asks_and_streams(url: str, newer: bool) -> None:
    langchain: Any = pytest.importorskip("langchain_openai")
    at = {"base_url": f"{url}/v1", "api_key": "anything", "max_retries": 0}
    chat = langchain.ChatOpenAI(model="default", use_responses_api=newer, **at)
    assert "Hallowmere" in chat.invoke(QUESTION).text
    assert "Hallowmere" in "".join(piece.text for piece in chat.stream(QUESTION))


def test_any_key_is_taken_only_while_none_is_needed(tmp_path: Path) -> None:
    (tmp_path / "valley").mkdir()
    server = make_server(tmp_path)
    sent = {"Authorization": "Bearer anything"}
    with running(server) as client:
        assert client.get("/v1/models", headers=sent).status_code == 200
        made = make_key(server, {"*": "read"})
        assert client.get("/v1/models", headers=sent).status_code == 401
        assert client.get("/v1/models", headers=made).status_code == 200
    with running(make_server(tmp_path / "other", host="0.0.0.0")) as client:
        assert client.get("/v1/models", headers=sent).status_code == 401
