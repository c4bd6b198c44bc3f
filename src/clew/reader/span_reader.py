"""The reader: answers as spans of passages, each with a score against "no answer here"."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError, ModelError
from clew.llm.embed_local import count_cores, open_session
from clew.llm.embed_weights import missing_packages
from clew.llm.loaded_once import once_per_file
from clew.reader.windows import MAX_POSITIONS, Window, WindowMaker
from clew.text.language import is_unspaced
from clew.text.sentences import sentence_spans
from clew.version import pip_install_command

READER_FILE = Path(__file__).with_name("reader.onnx")
TOKENIZER_KEY = "tokenizer"
"""The model's metadata entry that holds its tokenizer, so that the two cannot be mixed up."""
MAX_ANSWER_TOKENS = 40
_KNOWN = 0.5  # share of a question's letters in words or parts of words that it knows
_MAX_JUDGED_CHARS = 400
_BEST_ENDS = 24  # starts and ends of a window that are combined

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ReadSpan:
    """One candidate answer: characters of a passage, and how far it is ahead of no answer."""

    passage: int
    start: int
    end: int
    text: str
    score: float
    """Logit of the span minus the logit of "no answer"; above 0 the passage says it."""


@dataclass(frozen=True)
class SpanReader:
    """Reads on the CPU, one window per run: a score does not depend on the other windows."""

    windows: WindowMaker
    session: Any
    inputs: frozenset[str]
    """What its file takes; those of `bench.reader.export` have no mask: nothing is padded."""
    pool: ThreadPoolExecutor

    @classmethod
    def load(
        cls, file: Path | None = None, *, max_tokens: int = 384, workers: int = 0
    ) -> "SpanReader":
        """Open the weights of the package, or another file of `bench.reader.export`."""
        if absent := missing_packages():
            raise ConfigError(
                f"The reader needs {' and '.join(absent)}: run `{pip_install_command('local')}`."
            )
        if not 128 <= max_tokens <= MAX_POSITIONS:
            raise ConfigError(f"max_tokens is {max_tokens}: choose 128 to {MAX_POSITIONS}.")
        path = file or READER_FILE
        if not path.is_file():
            raise ConfigError(
                f"The reader's weights {path} are missing: reinstall clew, or set `file` under "
                "[spans]."
            )
        session = open_session(path)
        return cls(
            WindowMaker(open_tokenizer(path, session), max_tokens),
            session,
            frozenset(one.name for one in session.get_inputs()),
            ThreadPoolExecutor(workers or count_cores(), thread_name_prefix="clew-read"),
        )

    def reads(self, question: str) -> bool:
        """Whether it knows the question's script and words: they are parted by spaces, and known.

        In a script of which it knows single letters alone it would name spans at random.
        """
        return knows_words(question, self.windows.measure_known)

    def read(
        self,
        question: str,
        passages: Sequence[str],
        *,
        titles: Sequence[str] | None = None,
        most: int = 5,
    ) -> list[ReadSpan]:
        """Find the best spans over all passages, each passage read alone."""
        windows = self.windows.separate(question, passages, titles)
        return choose_apart(self._read_windows(windows, passages, most), most)

    def _read_windows(
        self, windows: Sequence[Window], passages: Sequence[str], most: int
    ) -> Iterator[ReadSpan]:
        # Longest first, so that no thread is left with a long window at the end.
        ordered = sorted(windows, key=lambda window: -len(window.ids))
        for window, logits in zip(ordered, self.pool.map(self._run, ordered), strict=True):
            yield from find_spans(window, logits, passages, most)

    def _run(self, window: Window) -> Floats:
        ids = np.array([window.ids], np.int64)
        feed = {"input_ids": ids, "token_type_ids": np.array([window.types], np.int64)}
        if "attention_mask" in self.inputs:
            feed["attention_mask"] = np.ones_like(ids)
        logits: Floats = self.session.run(None, feed)[0][0]
        return logits


def knows_words(question: str, measure: Callable[[str], float]) -> bool:
    """Whether a question's words are parted by spaces and known; `measure` tells the share."""
    cut = question[:_MAX_JUDGED_CHARS]
    return not is_unspaced(cut) and measure(cut) >= _KNOWN


@once_per_file
def open_tokenizer(path: Path, session: Any) -> Any:
    """Return the tokenizer that a model file holds."""
    from tokenizers import Tokenizer

    held = session.get_modelmeta().custom_metadata_map.get(TOKENIZER_KEY)
    if held is None:
        raise ModelError(
            f"{path} holds no tokenizer: write it with `python -m bench.reader.export`."
        )
    return Tokenizer.from_str(held)


def find_spans(
    window: Window, logits: Floats, passages: Sequence[str], most: int
) -> list[ReadSpan]:
    """The best spans from a likely start to a likely end in one passage; no two overlap."""
    where = np.array(window.passages)
    null = float(logits[0].sum())
    begins = np.array(window.whole)
    closes = np.append(begins[1:], True)
    starts = _best(np.where((where >= 0) & begins, logits[:, 0], -np.inf))
    ends = _best(np.where((where >= 0) & closes, logits[:, 1], -np.inf))
    first, last = np.repeat(starts, len(ends)), np.tile(ends, len(starts))
    fits = (first <= last) & (last < first + MAX_ANSWER_TOKENS) & (where[first] == where[last])
    sentences = _number_sentences(window, where, passages)
    fits &= sentences[first] == sentences[last]
    first, last = first[fits], last[fits]
    scores = logits[first, 0] + logits[last, 1]
    order = np.lexsort((first, -scores))
    found: list[ReadSpan] = []
    while len(order) and len(found) < most:
        a, b = int(first[order[0]]), int(last[order[0]])
        number, start, end = int(where[a]), window.starts[a], window.ends[b]
        score = float(scores[order[0]]) - null
        found.append(ReadSpan(number, start, end, passages[number][start:end], score))
        order = order[(last[order] < a) | (first[order] > b)]
    return found


def _number_sentences(
    window: Window, where: NDArray[np.int64], passages: Sequence[str]
) -> NDArray[np.int64]:
    """Number each token by its sentence: no answer runs from one into the next."""
    numbers, starts = np.zeros(len(where), np.int64), np.array(window.starts)
    for passage in set(window.passages) - {-1}:
        own = where == passage
        numbers[own] = np.searchsorted(_find_begins(passages[passage]), starts[own], side="right")
    return numbers


@lru_cache(maxsize=256)  # a passage is read for several questions
def _find_begins(text: str) -> NDArray[np.int64]:
    return np.array([start for start, _ in sentence_spans(text)], np.int64)


def _best(scores: Floats) -> NDArray[np.intp]:
    order = np.argsort(-scores, kind="stable")[:_BEST_ENDS]
    return order[np.isfinite(scores[order])]


def choose_apart(spans: Iterable[ReadSpan], most: int) -> list[ReadSpan]:
    """The best spans of which no two share a character."""
    chosen: list[ReadSpan] = []
    for span in sorted(spans, key=lambda one: (-one.score, one.passage, one.start)):
        if len(chosen) == most:
            break
        if not any(_overlap(span, other) for other in chosen):
            chosen.append(span)
    return chosen


def _overlap(one: ReadSpan, other: ReadSpan) -> bool:
    return one.passage == other.passage and one.start < other.end and other.start < one.end


def find_reader(file: Path | None) -> SpanReader | None:
    """Open the reader, or return None if its packages or the package's own weights are missing."""
    if missing_packages() or (file is None and not READER_FILE.is_file()):
        return None
    return SpanReader.load(file)
