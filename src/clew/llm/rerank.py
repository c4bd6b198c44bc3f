"""Rerankers: score texts jointly with a question."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError, ParseError
from clew.llm.embed_local import open_session, open_tokenizer
from clew.llm.limits import RetryPolicy, call_with_retries
from clew.llm.openai_api import JsonEndpoint, parse_json

Scores = NDArray[np.float32]

_MAX_TEXT_CHARS = 8000  # characters of one text sent to an endpoint
_MAX_SCORE = 1e30  # what a 32-bit number holds with ease
_MODEL_FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx")


class Reranker(Protocol):
    """Scores texts for a question, in the order given; higher is better."""

    @property
    def name(self) -> str:
        """Name of the model."""

    async def __call__(self, question: str, texts: Sequence[str], /) -> Scores:
        """One score for each text."""


@dataclass(eq=False)
class EndpointReranker:
    """Reranks by `POST {base_url}/rerank`, as Jina, Cohere, vLLM and many servers offer it."""

    model: str
    base_url: str
    api_key: str = field(default="", repr=False)
    timeout: float = 60.0
    retry_policy: RetryPolicy = RetryPolicy()

    def __post_init__(self) -> None:
        self._endpoint = JsonEndpoint(self.model, self.base_url, self.api_key, self.timeout)

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model

    async def __call__(self, question: str, texts: Sequence[str], /) -> Scores:
        """One score per text, whatever order the endpoint returns them in."""
        if not texts:
            return np.zeros(0, np.float32)
        shown = [text[:_MAX_TEXT_CHARS] or " " for text in texts]
        body = {"model": self.model, "query": question[:_MAX_TEXT_CHARS], "documents": shown}
        answer = await call_with_retries(
            lambda: self._endpoint.post("/rerank", body), self.retry_policy
        )
        try:
            return _parse_scores(parse_json(answer), len(texts))
        except ValueError as error:
            raise ParseError(
                f"{self.base_url} did not answer with a ranking of {len(texts)} texts "
                f"({error}): check the base URL and that {self.model} reranks."
            ) from error


def _parse_scores(answer: Any, count: int) -> Scores:
    rows = answer.get("results") if isinstance(answer, dict) else answer
    found = np.full(count, np.nan, np.float32)
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            raise ValueError("a result that is no object")
        at, score = row.get("index"), row.get("relevance_score", row.get("score"))
        if type(at) is not int or not isinstance(score, int | float):
            raise ValueError("a result without an index and a score")
        if not 0 <= at < count:
            raise ValueError(f"text {at} of {count}")
        found[at] = score if abs(score) <= _MAX_SCORE else np.nan
    if not np.isfinite(found).all():
        raise ValueError("a text without a score")
    return found


@dataclass(frozen=True)
class CrossEncoder:
    """A local cross-encoder: a folder with ONNX weights and a tokenizer.json."""

    folder: Path
    max_tokens: int = 512

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.name

    async def __call__(self, question: str, texts: Sequence[str], /) -> Scores:
        """One score per text, computed in a thread."""
        return await asyncio.to_thread(self._score_texts, question, list(texts))

    def _score_texts(self, question: str, texts: list[str]) -> Scores:
        session, tokenizer = self._session_and_tokenizer
        inputs = {one.name for one in session.get_inputs()}
        scores = np.zeros(len(texts), np.float32)
        for at, text in enumerate(texts):
            encoded = tokenizer.encode(question, text)
            columns = {
                "input_ids": encoded.ids,
                "attention_mask": encoded.attention_mask,
                "token_type_ids": encoded.type_ids,
            }
            feed = {key: np.array([ids], np.int64) for key, ids in columns.items() if key in inputs}
            logits = np.asarray(session.run(None, feed)[0], np.float32).reshape(-1)
            # Two outputs are "no" and "yes"; one is the score itself.
            scores[at] = logits[-1] - logits[0] if len(logits) > 1 else logits[0]
        return scores

    @cached_property
    def _session_and_tokenizer(self) -> tuple[Any, Any]:
        model = next((p for name in _MODEL_FILES if (p := self.folder / name).is_file()), None)
        tokenizer = self.folder / "tokenizer.json"
        if model is None or not tokenizer.is_file():
            raise ConfigError(
                f"[rerank] folder {self.folder} has no model.onnx and tokenizer.json; "
                "export a cross-encoder to ONNX there"
            )
        return open_session(model), open_tokenizer(tokenizer, self.max_tokens)
