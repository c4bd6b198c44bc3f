"""The query scorer: how probable it is that a query, a path or a sentence is what is asked for."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.llm.embed_local import count_cores, measure_known_letters, open_session
from clew.llm.embed_weights import missing_packages
from clew.reader.span_reader import knows_words, open_tokenizer
from clew.text.sentences import sentence_spans

SCORER_FILE = Path(__file__).with_name("query_scorer.onnx")
_MAX_TOKENS = 128  # of a question and a text, as it was trained
_MAX_TOLD = 360  # characters of what an answer stands in
_KEPT_QUESTIONS = 256  # of which it is remembered whether their words are known

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class QueryScorer:
    """Compares a question with queries in plain words, on the CPU.

    One pair per run, on all cores: nothing is padded, and no score depends on the other pairs.
    """

    tokenizer: Any
    session: Any
    inputs: frozenset[str]
    """What its file takes; those of `bench.reader.export` have no mask."""
    pool: ThreadPoolExecutor
    measure_known: Callable[[str], float]
    """Tells which share of a text's letters the tokenizer knows as more than letters."""

    @classmethod
    def load(cls, file: Path = SCORER_FILE) -> "QueryScorer":
        """Open the weights of the package, or another file of `bench.reader.export`."""
        session = open_session(file)
        tokenizer = open_tokenizer(file, session)
        tokenizer.enable_truncation(_MAX_TOKENS)
        workers = ThreadPoolExecutor(count_cores(), thread_name_prefix="clew-score")
        inputs = frozenset(one.name for one in session.get_inputs())
        known = lru_cache(_KEPT_QUESTIONS)(partial(measure_known_letters, tokenizer))
        return cls(tokenizer, session, inputs, workers, known)

    def reads(self, question: str) -> bool:
        """Whether it knows the question's script and words."""
        return knows_words(question, self.measure_known)

    def score(self, question: str, texts: Sequence[str]) -> Floats:
        """Return for each text how probable it is that it says what the question asks."""
        return self._score(question, texts)[:, 0]

    def score_statements(self, question: str, texts: Sequence[str]) -> tuple[Floats, Floats]:
        """Return for each text how probable it decides a yes/no question, and that it says yes."""
        chances = self._score(question, texts)
        return chances[:, 0], chances[:, 1]

    def _score(self, question: str, texts: Sequence[str]) -> Floats:
        rows = self.tokenizer.encode_batch([(question, text) for text in texts])
        # Longest first, so that no thread is left with a long pair at the end.
        order = sorted(range(len(rows)), key=lambda at: -len(rows[at].ids))
        logits = np.zeros((len(rows), 2), np.float64)
        if order:
            logits[order] = list(self.pool.map(self._run, (rows[at] for at in order)))
        found: Floats = (1 / (1 + np.exp(-logits))).astype(np.float32)
        return found

    def _run(self, row: Any) -> Floats:
        ids, types = np.array([row.ids], np.int64), np.array([row.type_ids], np.int64)
        feed = {"input_ids": ids, "token_type_ids": types}
        if "attention_mask" in self.inputs:
            feed["attention_mask"] = np.ones_like(ids)
        logits: Floats = self.session.run(None, feed)[0][0, 0]
        return logits


def find_told(text: str, start: int, end: int) -> str:
    """Return the sentence around a span, behind the one before it."""
    spans = sentence_spans(text)
    first = max((at for at, (s, _) in enumerate(spans) if s <= start), default=0)
    last = next((e for _, e in spans[first:] if e >= end), len(text))
    begin = spans[max(0, first - 1)][0] if spans else 0
    return " ".join(text[begin:last].split())


def say_answer(answer: str, home: str, told: str) -> str:
    """Return an answer with its page and the sentences it rests on, the last of them whole."""
    return f"{answer} — {say_statement(home, told)}"


def say_statement(home: str, told: str) -> str:
    """Return sentences with the page they stand on; of many characters the last."""
    if len(told) > _MAX_TOLD:
        told = "…" + told[-_MAX_TOLD:].partition(" ")[2]
    return f"{home}: {told}"


def find_query_scorer() -> QueryScorer | None:
    """Open the scorer, or return None if its packages or weights are missing."""
    if missing_packages() or not SCORER_FILE.is_file():
        return None
    return QueryScorer.load()
