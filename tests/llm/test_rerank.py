"""Rerankers: an endpoint's answers in any order, and bad ones; a cross-encoder's files."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from clew.config import RerankSettings
from clew.errors import AuthError, ConfigError, ModelError, ParseError
from clew.llm.factory import create_reranker
from clew.llm.http_response import ResponseHead
from clew.llm.limits import RetryPolicy
from clew.llm.rerank import CrossEncoder, EndpointReranker


class Posted:
    """Stands for the network: says what it was told."""

    def __init__(self, answer: object, *failing: int) -> None:
        self.answer, self.failing = answer, list(failing)
        self.sent: list[tuple[str, dict[str, object]]] = []

    async def post_for_numbers(self, path: str, raw: bytes) -> tuple[ResponseHead, bytes]:
        self.sent.append((path, json.loads(raw)))
        said = self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()
        return ResponseHead(self.failing.pop(0) if self.failing else 200, {}), said


CreateReranker = Callable[[Posted], EndpointReranker]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> CreateReranker:
    """Return a function that makes a reranker whose network is a script."""

    def create(post: Posted) -> EndpointReranker:
        monkeypatch.setattr("clew.llm.openai_api.HttpClient", lambda *_: post)
        patience = RetryPolicy(tries=4, first_wait=0)
        return EndpointReranker("m", "http://localhost:9/v1", "key", retry_policy=patience)

    return create


@pytest.fixture
async def texts() -> AsyncIterator[list[str]]:
    yield ["one", "two", "三"]


async def test_answers_may_come_in_any_order(asked: CreateReranker, texts: list[str]) -> None:
    post = Posted(
        {
            "results": [
                {"index": 2, "relevance_score": 0.9},
                {"index": 0, "relevance_score": 0.1},
                {"index": 1, "relevance_score": 0.5},
            ]
        }
    )
    assert (await asked(post)("q", texts)).tolist() == pytest.approx([0.1, 0.5, 0.9])
    [(path, body)] = post.sent
    assert (path, body["query"], body["documents"]) == ("/rerank", "q", texts)
    bare = Posted([{"index": at, "score": at} for at in (1, 0, 2)])
    assert (await asked(bare)("q", texts)).tolist() == [0, 1, 2]
    assert len(await asked(post)("q", [])) == 0


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        {"results": []},
        {"results": [{"index": 7, "relevance_score": 1}]},
        {"results": [{"index": 0}, {"index": 1}, {"index": 2}]},
        {"error": "no"},
    ],
)
async def test_what_is_no_ranking_is_said_to_be_none(
    asked: CreateReranker, texts: list[str], answer: object
) -> None:
    with pytest.raises(ParseError, match="a ranking of 3 texts"):
        await asked(Posted(answer))("q", texts)


async def test_an_endpoint_that_refuses_is_named(asked: CreateReranker, texts: list[str]) -> None:
    with pytest.raises(ModelError):
        await asked(Posted({"error": {"message": "no such model"}}, 404))("q", texts)


def test_settings_choose(tmp_path: Path) -> None:
    assert create_reranker(RerankSettings()) is None
    assert isinstance(create_reranker(RerankSettings(folder=tmp_path)), CrossEncoder)
    made = create_reranker(RerankSettings(model="m", base_url="http://x/v1"))
    assert isinstance(made, EndpointReranker) and made.name == "m"
    with pytest.raises(ConfigError, match="not the address"):
        create_reranker(RerankSettings(model="m", base_url="x"))


async def test_a_folder_without_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no model.onnx"):
        await CrossEncoder(tmp_path)("q", ["text"])


async def test_a_passing_failure_is_tried_again(asked: CreateReranker, texts: list[str]) -> None:
    scores = [{"index": at, "score": at} for at in range(3)]
    post = Posted(scores, 429, 503)
    assert (await asked(post)("q", texts)).tolist() == [0, 1, 2]
    assert len(post.sent) == 3
    tired = Posted(scores, *[503] * 9)
    with pytest.raises(ModelError, match="gave up after 4 attempts"):
        await asked(tired)("q", texts)
    refused = Posted(scores, 401)
    with pytest.raises(AuthError):
        await asked(refused)("q", texts)
    assert len(refused.sent) == 1
