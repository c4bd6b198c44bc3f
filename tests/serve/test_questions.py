"""Search and ask over HTTP."""

import json
from pathlib import Path

import pytest
from serving import fill, make_server, running


def test_search_answers_like_the_command(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        reply = client.post(
            "/workspaces/valley/search",
            json={"question": "Who designed the Marrow Bridge?", "k": 2},
        )
        assert reply.status_code == 200
        assert reply.json()["chunks"][0]["doc"] == "bridge"
        assert len(reply.json()["chunks"]) == 2


def test_ask_cites(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        body = {"question": "Where was Ilse Brandvik born?"}
        answer = client.post("/workspaces/valley/ask", json=body).json()
        assert answer["candidate"] == "Hallowmere"
        assert answer["citations"][0]["doc"] == "ilse"


def test_a_streamed_answer_comes_in_steps(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        body = {"question": "Where was Ilse Brandvik born?", "stream": True}
        text = client.post("/workspaces/valley/ask", json=body).text
    events = [part.split("\n") for part in text.strip().split("\n\n")]
    names = [lines[0].removeprefix("event: ") for lines in events]
    assert names[0] == "step-started" and names[-1] == "answer"
    last = json.loads(events[-1][1].removeprefix("data: "))
    assert last["verdict"] == "answered"


@pytest.mark.parametrize(("recipe", "walks"), [("reader", True), ("reader+bm25", False)])
def test_a_retrieval_tells_the_paths_it_walked(tmp_path: Path, recipe: str, walks: bool) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        body = {"question": "Who designed the Marrow Bridge?", "stream": True, "recipe": recipe}
        text = client.post("/workspaces/valley/ask", json=body).text
    data = [json.loads(part.partition("\ndata: ")[2]) for part in text.strip().split("\n\n")]
    walked = [path for one in data for path in one.get("walked", ())]
    assert bool(walked) == walks
    assert not walks or "Marrow Bridge" in walked[0]["entities"]
    assert all(fact["quote"] and fact["doc"] for path in walked for fact in path["facts"])


def test_an_error_while_streaming_is_an_event(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        body = {"question": "Where?", "stream": True, "recipe": "nonsense"}
        text = client.post("/workspaces/valley/ask", json=body).text
    assert text.startswith("event: error\n") and "no recipe 'nonsense'" in text
