"""The default embedder: all-MiniLM-L6-v2 on the local CPU, without API key or server."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError, ModelError
from clew.llm.embed import EmbedRole, Passage, Vectors, hash_prefix
from clew.llm.embed_rows import TokenVectors, find_columns
from clew.llm.embed_weights import (
    HUB_URL,
    EmbedderWeights,
    Precision,
    explain_packages,
    prepare_weights,
)
from clew.llm.loaded_once import once_per_file
from clew.machine_memory import short_memory_told

if TYPE_CHECKING:
    from tokenizers import Tokenizer

T = TypeVar("T")
TEXTS_PER_THREAD = 32
"""Texts per thread between cancellation points: a cancelled call ends within a second or two."""
MAX_TOKEN_CHARS = 100
"""Characters; a longer word is a single unknown token, so cutting here loses nothing."""
DEFAULT_MAX_TOKENS = 256
# The fused kernel runs on one element at a time; the addition and the normalisation apart do not,
# and take 30 % less time for the whole model.
_SLOW_FUSIONS = ["SkipLayerNormFusion"]
GPU_BATCH = 64
"""Texts per run on a GPU, which is idle with one; on a CPU one by one is the fastest."""
_TOKEN_DIMENSIONS = 3  # of what a model says: texts, tokens, numbers
_CUDA = "CUDAExecutionProvider"
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")  # a character is a word or most of one


@dataclass(frozen=True)
class LocalEmbedder:
    """Embeds on the CPU; loads on first use, and each vector depends on its own text alone."""

    cache: Path
    folder: Path | None = None
    precision: Precision = "int8"
    max_tokens: int = DEFAULT_MAX_TOKENS
    workers: int = 0
    """Number of threads; 0 uses every core available to this process."""
    hub: str = HUB_URL
    gpu: bool = False
    """Run in batches on a GPU, with weights of full precision; 8-bit ones stay on the CPU."""
    passage_prefix: str = ""
    query_prefix: str = ""
    """What some models want before a text: `query: ` and `passage: ` for the E5 family."""
    _weights: "_Lazy[EmbedderWeights]" = field(init=False, repr=False, compare=False)
    _encoder: "_Lazy[_OnnxEncoder]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 3 <= self.max_tokens <= 512:
            raise ConfigError(f"max_tokens is {self.max_tokens}: choose 3 to 512.")
        find = partial(
            prepare_weights, self.folder, cache=self.cache, precision=self.precision, hub=self.hub
        )
        object.__setattr__(self, "_weights", _Lazy(find))
        object.__setattr__(self, "_encoder", _Lazy(self._load))

    @property
    def name(self) -> str:
        """The weights' name, the token limit if it is not the default, and a prefix's hash."""
        cut = "" if self.max_tokens == DEFAULT_MAX_TOKENS else f"/{self.max_tokens}"
        return f"{self.weights.name}{cut}{hash_prefix(self.passage_prefix)}"

    @property
    def dim(self) -> int:
        """The length of every vector; known without loading for the default weights."""
        return self.weights.dim or self._encoder.get().dim

    @property
    def weights(self) -> EmbedderWeights:
        """The files in use; the first access may quantise them, which takes seconds."""
        return self._weights.get()

    def describe(self) -> str:
        """One line about the model in use, and why it is not quantised if so."""
        note = f" ({self.weights.note})" if self.weights.note else ""
        return f"{self.name}, {self.dim} dimensions, weights from {self.weights.source}{note}"

    def measure_known(self, text: str) -> float:
        """Return the share of a text's letters that its vocabulary knows as more than letters.

        A word that falls into single letters, or into unknown tokens, has no meaning to the model.
        """
        return self._encoder.get().measure_known(text)

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Embed in threads, so that the event loop stays free; `role` chooses the prefix."""
        if not texts:
            return np.zeros((0, await asyncio.to_thread(lambda: self.dim)), np.float32)
        step = TEXTS_PER_THREAD * (self.workers or count_cores())
        prefix = self.query_prefix if role == "query" else self.passage_prefix
        texts = [prefix + text for text in texts] if prefix else texts
        parts = [list(texts[at : at + step]) for at in range(0, len(texts), step)]
        # One thread switch per part: on a busy machine a switch costs as much as a short text.
        embed = self._embed if role == "query" else self._embed_passages
        return np.concatenate([await asyncio.to_thread(embed, part) for part in parts])

    async def embed_quotes(self, passages: Sequence[Passage], /) -> Vectors:
        """Embed texts and parts of them: a part's vector is the mean of its tokens' vectors."""
        step = TEXTS_PER_THREAD * (self.workers or count_cores())
        shift = len(self.passage_prefix)
        prefixed = [
            (self.passage_prefix + text, [(start + shift, end + shift) for start, end in spans])
            for text, spans in passages
        ]
        parts = [prefixed[at : at + step] for at in range(0, len(prefixed), step)]
        found = [await asyncio.to_thread(self._embed_quotes, part) for part in parts]
        return np.concatenate([np.zeros((0, self.dim), np.float32), *found])

    def _embed_quotes(self, passages: Sequence[Passage]) -> Vectors:
        return self._encoder.get().embed_quotes(passages)

    def _embed(self, texts: list[str]) -> Vectors:
        return self._encoder.get().embed(texts)

    def _embed_passages(self, texts: list[str]) -> Vectors:
        return self._encoder.get().embed_quotes([(text, ()) for text in texts])

    def _load(self) -> "_OnnxEncoder":
        workers, gpu = self.workers or count_cores(), self.gpu and self.precision == "fp32"
        return _OnnxEncoder.load(self.weights, self.max_tokens, workers, gpu=gpu)


class _Lazy(Generic[T]):
    """A thread-safe lazy value; a failure to create it is not cached.

    A forked child makes its own: the threads of its parent's do not exist there.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = Lock()
        self._values: dict[int, T] = {}  # by process id

    def get(self) -> T:
        with self._lock:
            process = os.getpid()
            if process not in self._values:
                self._values[process] = self._make()
            return self._values[process]


@dataclass(frozen=True)
class _OnnxEncoder:
    """The tokenizer, ONNX session and thread pool."""

    tokenizer: "Tokenizer"
    session: Any
    inputs: frozenset[str]
    pooling: str
    max_chars: int
    dim: int
    pool: ThreadPoolExecutor
    batch: int = 1
    """Texts per run; more than one only where others do not change a text's vector."""
    unknown: str = "[UNK]"
    _tokens: TokenVectors = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tokens", TokenVectors(self._run_token))

    @classmethod
    def load(
        cls, weights: EmbedderWeights, max_tokens: int, workers: int, *, gpu: bool = False
    ) -> "_OnnxEncoder":
        """Open both files; errors name the broken one."""
        session = open_session(weights.model, gpu)
        inputs = frozenset(one.name for one in session.get_inputs())
        batched = gpu and "attention_mask" in inputs and _CUDA in session.get_providers()
        shape = session.get_outputs()[0].shape
        if not isinstance(shape[-1], int):
            raise ModelError(
                f"{weights.model} has no fixed vector length: export it with a fixed hidden size."
            )
        return cls(
            tokenizer=open_tokenizer(weights.tokenizer, max_tokens),
            session=session,
            inputs=inputs,
            batch=GPU_BATCH if batched else 1,
            pooling=weights.pooling if len(shape) == 3 else "none",
            max_chars=max_tokens * MAX_TOKEN_CHARS,
            dim=shape[-1],
            pool=ThreadPoolExecutor(workers, thread_name_prefix="clew-embed"),
        )

    def embed(self, texts: list[str]) -> Vectors:
        """Run the texts one by one on several threads, or in batches on a GPU.

        One text per run on a CPU: 8-bit activations share one scale per run, so other texts or
        padding would change the vector; and it is the fastest as well.
        """
        cut = [_replace_surrogates(text[: self.max_chars]) for text in texts]
        tokens = [encoding.ids for encoding in self.tokenizer.encode_batch(cut)]
        if len(tokens) == 1:
            return self._pool(self._run_model(tokens[0]))[np.newaxis]
        # Longest first, so that no thread is left with a long text at the end.
        order = sorted(range(len(tokens)), key=lambda at: -len(tokens[at]))
        rows = np.empty((len(tokens), self.dim), np.float32)
        rows[order] = [self._pool(one) for one in self._run_all([tokens[at] for at in order])]
        return rows

    def embed_quotes(self, passages: Sequence[Passage]) -> Vectors:
        """Run the texts on several threads, longest first; or in batches."""
        cut = [_replace_surrogates(text[: self.max_chars]) for text, _ in passages]
        encoded = self.tokenizer.encode_batch(cut)
        order = sorted(range(len(encoded)), key=lambda at: -len(cut[at]))
        if self.batch > 1:
            return np.concatenate(self._batch_quotes(passages, encoded))
        made = self.pool.map(lambda at: self._run_quotes(passages[at], encoded[at]), order)
        rows = dict(zip(order, made, strict=True))
        return np.concatenate([rows[at] for at in range(len(encoded))])

    def _batch_quotes(self, passages: Sequence[Passage], encoded: Sequence[Any]) -> list[Vectors]:
        """Run the windows of all texts together; rows of tables are run by their tokens."""
        rows = [
            self._embed_row(text, one) for (text, _), one in zip(passages, encoded, strict=True)
        ]
        windows = [
            [] if row is not None else self._choose_windows(passage, one)
            for passage, one, row in zip(passages, encoded, rows, strict=True)
        ]
        states = iter(self._run_all([window.ids for some in windows for window in some]))
        return [
            self._pool_quotes(passage, some, [next(states) for _ in some])
            if row is None
            else np.repeat(row[np.newaxis], 1 + len(passage[1]), axis=0)
            for passage, some, row in zip(passages, windows, rows, strict=True)
        ]

    def _run_quotes(self, passage: Passage, encoding: Any) -> Vectors:
        """Run a text, in windows if it is long; return its vector and those of its parts.

        A row of a table is not run: its vector is made of its tokens', and its parts have the same.
        """
        text, spans = passage
        row = self._embed_row(text, encoding)
        if row is not None:
            return np.repeat(row[np.newaxis], 1 + len(spans), axis=0)
        windows = self._choose_windows(passage, encoding)
        return self._pool_quotes(passage, windows, [self._run_model(one.ids) for one in windows])

    def _choose_windows(self, passage: Passage, encoding: Any) -> list[Any]:
        """The first window of a text, and those that its parts reach into."""
        last = max((end for _, end in passage[1]), default=0)
        more = encoding.overflowing if self.pooling == "mean" else ()
        return [encoding, *(one for one in more if _begins_before(one, last))]

    def _pool_quotes(
        self, passage: Passage, windows: Sequence[Any], states: Sequence[NDArray[np.float32]]
    ) -> Vectors:
        """The vector of a text, and those of its parts, of the vectors of its tokens."""
        text, spans = passage
        rows, tokens = [self._pool(states[0])], np.concatenate(states)
        offsets = np.concatenate([np.array(window.offsets) for window in windows])
        is_token = (offsets[:, 1] > offsets[:, 0]) & (self.pooling == "mean")
        for start, end in spans:
            inside = is_token & (offsets[:, 0] >= start) & (offsets[:, 1] <= end)
            if inside.any():
                rows.append(_normalise(tokens[inside].mean(axis=0)))
            else:  # no token is of this part alone
                rows.append(self.embed([text[start:end]])[0])
        return np.stack(rows)

    def _embed_row(self, text: str, encoding: Any) -> NDArray[np.float32] | None:
        """Return the vector of a text that is a row of a table; None of another text."""
        columns = find_columns(text) if self.pooling == "mean" and not encoding.overflowing else []
        if not columns:
            return None
        tokens = zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True)
        vector = self._tokens.mean(tokens, columns)
        return None if vector is None else _normalise(vector)

    def _run_token(self, token: int) -> NDArray[np.float32]:
        """Return the vector of a token that stands alone between the marks of begin and end."""
        marked = self.tokenizer.encode("a").ids
        at = len(marked) // 2
        return _normalise(self._run_model([*marked[:at], token, *marked[at + 1 :]])[at])

    def measure_known(self, text: str) -> float:
        """Return the share of the letters in known tokens."""
        return measure_known_letters(self.tokenizer, text[: self.max_chars], self.unknown)

    def _run_all(self, texts: Sequence[list[int]]) -> list[NDArray[np.float32]]:
        """What the model says of each text: one by one on several threads, or in batches."""
        if self.batch == 1:
            return list(self.pool.map(self._run_model, texts))
        order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))  # little padding
        found: dict[int, NDArray[np.float32]] = {}
        for at in range(0, len(order), self.batch):
            some = order[at : at + self.batch]
            found |= zip(some, self._run_batch([texts[one] for one in some]), strict=True)
        return [found[at] for at in range(len(texts))]

    def _run_model(self, ids: list[int]) -> NDArray[np.float32]:
        return self._run_batch([ids])[0]

    def _run_batch(self, texts: Sequence[list[int]]) -> list[NDArray[np.float32]]:
        """Run texts together; shorter ones are padded, and what is said of padding is cut off."""
        tokens = np.zeros((len(texts), max(map(len, texts))), np.int64)
        mask = np.zeros_like(tokens)
        for at, ids in enumerate(texts):
            tokens[at, : len(ids)], mask[at, : len(ids)] = ids, 1
        feed = {"input_ids": tokens}
        if "attention_mask" in self.inputs:
            feed["attention_mask"] = mask
        if "token_type_ids" in self.inputs:
            feed["token_type_ids"] = np.zeros_like(tokens)
        answer = self.session.run(None, feed)[0]
        if answer.ndim < _TOKEN_DIMENSIONS:  # one vector a text
            return list(answer)
        return [one[: len(ids)] for one, ids in zip(answer, texts, strict=True)]

    def _pool(self, answer: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.pooling == "mean":
            answer = answer.mean(axis=0)
        elif self.pooling == "cls":
            answer = answer[0]
        return _normalise(answer)


def _begins_before(window: Any, end: int) -> bool:
    """Whether a window of a text has a token before a place in the text."""
    return any(start < min(end, stop) for start, stop in window.offsets)


def _normalise(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    length = np.linalg.norm(vector)
    return (vector / length if length > 0 else vector).astype(np.float32, copy=False)


def measure_known_letters(tokenizer: "Tokenizer", text: str, unknown: str = "[UNK]") -> float:
    """Return the share of the letters in known tokens, of more than one letter but in Han."""
    encoding = tokenizer.encode(_replace_surrogates(text))
    pieces = Counter(encoding.word_ids)
    known = total = 0
    for token, word, (start, end) in zip(
        encoding.tokens, encoding.word_ids, encoding.offsets, strict=True
    ):
        letters = sum(map(str.isalpha, text[start:end]))
        total += letters
        alone = letters > 1 or pieces[word] == 1 or _HAN.match(text, start)
        if token != unknown and alone:
            known += letters
    return known / total if total else 1.0


@once_per_file
@short_memory_told()
def open_session(model: Path, gpu: bool = False) -> Any:
    """Open an ONNX model to run on one thread, or on a GPU; errors name the file."""
    ort = _import_onnxruntime()
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # texts run in parallel; a single text does not split well
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # each length is a new pattern, cached and never reused
    options.log_severity_level = 3
    # Without the shorter numbers of newer GPUs: vectors are then those of a CPU but for rounding.
    on_gpu = [(_CUDA, {"use_tf32": "0"})] if gpu else []
    try:
        return ort.InferenceSession(
            str(model),
            options,
            providers=[*on_gpu, "CPUExecutionProvider"],
            disabled_optimizers=_SLOW_FUSIONS,
        )
    except _load_error_types(ort) as error:
        raise ModelError(
            f"The model {model} cannot be loaded ({str(error).splitlines()[0]}): "
            "delete it if it is in the cache folder, else export it again."
        ) from error


def has_gpu() -> bool:
    """Whether the installed onnxruntime can use a GPU (the package `onnxruntime-gpu`)."""
    return not explain_packages() and _CUDA in _import_onnxruntime().get_available_providers()


def _load_error_types(ort: Any) -> tuple[type[Exception], ...]:
    """The exceptions of onnxruntime, which share no base class but Exception."""
    state = ort.capi.onnxruntime_pybind11_state
    kinds = (
        "EngineError Fail InvalidArgument InvalidGraph InvalidProtobuf NoModel NoSuchFile NotFound "
        "NotImplemented RuntimeException"
    ).split()
    own = tuple(getattr(state, kind) for kind in kinds if hasattr(state, kind))
    return (RuntimeError, ValueError, *own)


@once_per_file
@short_memory_told()
def open_tokenizer(path: Path, max_tokens: int) -> "Tokenizer":
    """Load a tokenizer that truncates and never pads."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_buffer(path.read_bytes())
    except ValueError as error:
        raise ModelError(f"The tokenizer {path} cannot be read ({error}).") from error
    tokenizer.no_padding()  # the file always pads to 128 tokens
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _import_onnxruntime() -> Any:
    if wrong := explain_packages():
        raise ConfigError(f"{wrong}.")
    import onnxruntime

    return onnxruntime


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def count_cores() -> int:
    """Number of cores available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
