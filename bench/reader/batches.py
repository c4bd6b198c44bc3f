"""Encodes examples with all cores into flat arrays, and cuts those into batches."""

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bench.reader.examples import Encoded, Example, encode_example
from clew.reader.windows import WindowMaker

CHUNK = 512  # examples a worker encodes at a time
_maker: list[WindowMaker] = []  # one per worker process


@dataclass(frozen=True, slots=True)
class EncodedSet:
    """Windows one after the other in flat arrays."""

    ids: NDArray[np.uint16]
    types: NDArray[np.bool_]
    allowed: NDArray[np.bool_]
    lengths: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    soft: NDArray[np.float16] | None = None
    """A teacher's probability of a start and of an end, for every token."""

    def __len__(self) -> int:
        return len(self.lengths)


COLUMNS = ("ids", "types", "allowed", "lengths", "starts", "ends")


def pack_windows(windows: Sequence[Encoded]) -> EncodedSet:
    """Put windows into flat arrays."""
    return EncodedSet(
        np.array([one for window in windows for one in window.ids], np.uint16),
        np.array([one for window in windows for one in window.types], bool),
        np.array([one for window in windows for one in window.allowed], bool),
        np.array([len(window.ids) for window in windows], np.int32),
        np.array([window.start for window in windows], np.int32),
        np.array([window.end for window in windows], np.int32),
    )


def encode_all(
    examples: Sequence[Example], tokenizer: bytes, limit: int, workers: int
) -> EncodedSet:
    """Encode examples, in several processes where `workers` is above 1."""
    parts = [examples[at : at + CHUNK] for at in range(0, len(examples), CHUNK)]
    if workers <= 1:
        _prepare_worker(tokenizer, limit)
        made = [_encode_part(part) for part in parts]
    else:
        # Forked, so that examples and tokenizer need not be sent; before the GPU is first used.
        with get_context("fork").Pool(workers, _prepare_worker, (tokenizer, limit)) as pool:
            made = pool.map(_encode_part, parts, chunksize=1)
    columns: list[NDArray[Any]] = [
        np.concatenate([getattr(part, name) for part in made]) for name in COLUMNS
    ]
    return EncodedSet(*columns)


def _prepare_worker(tokenizer: bytes, limit: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # a forked process must not use threads
    _maker[:] = [WindowMaker(Tokenizer.from_buffer(tokenizer), limit)]


def _encode_part(examples: Sequence[Example]) -> EncodedSet:
    return pack_windows([window for one in examples for window in encode_example(_maker[0], one)])


def cut_batches(
    lengths: NDArray[np.int32], tokens: int, rng: random.Random
) -> list[NDArray[np.int64]]:
    """Random batches of windows of similar length, each of at most `tokens` cells."""
    order = np.array(rng.sample(range(len(lengths)), len(lengths)), np.int64)
    span = max(64, 50 * tokens // max(1, int(lengths.mean())))
    batches: list[NDArray[np.int64]] = []
    for first in range(0, len(order), span):
        part = order[first : first + span]
        part = part[np.argsort(lengths[part], kind="stable")]
        begin = 0
        for at in range(1, len(part) + 1):
            if at == len(part) or int(lengths[part[at]]) * (at + 1 - begin) > tokens:
                batches.append(part[begin:at])
                begin = at
    rng.shuffle(batches)
    return batches


def batch_tensors(
    data: EncodedSet, chosen: NDArray[np.int64], offsets: NDArray[np.int64], device: str
) -> tuple[Any, ...]:
    """Ids, types, mask, allowed, starts, ends and a teacher's view of the chosen windows, padded.

    Without a teacher's view the label has all of the probability.
    """
    lengths = data.lengths[chosen]
    width = -(-int(lengths.max()) // 8) * 8
    at = np.arange(width)[None]
    mask = at < lengths[:, None]
    cells = np.where(mask, offsets[chosen][:, None] + at, 0)
    ids = np.where(mask, data.ids[cells], 0).astype(np.int64)
    types = np.where(mask, data.types[cells], 0).astype(np.int64)
    allowed = mask & data.allowed[cells]
    starts, ends = data.starts[chosen].astype(np.int64), data.ends[chosen].astype(np.int64)
    soft = np.zeros((*mask.shape, 2), np.float32)
    if data.soft is not None:
        soft = np.where(mask[..., None], data.soft[cells].astype(np.float32), 0)
    rows, unseen = np.arange(len(chosen)), soft.sum((1, 2)) < 0.5
    soft[rows[unseen], starts[unseen], 0] = 1
    soft[rows[unseen], ends[unseen], 1] = 1
    columns = (ids, types, mask, allowed, starts, ends, soft)
    return tuple(torch.from_numpy(one).to(device, non_blocking=True) for one in columns)


def iterate_batches(
    data: EncodedSet, tokens: int, rng: random.Random, device: str
) -> Iterator[tuple[Any, ...]]:
    """All windows once, in random batches."""
    offsets = np.concatenate([[0], np.cumsum(data.lengths[:-1], dtype=np.int64)])
    for chosen in cut_batches(data.lengths, tokens, rng):
        yield batch_tensors(data, chosen, offsets, device)
