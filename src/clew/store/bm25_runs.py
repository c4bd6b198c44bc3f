"""The text index of more postings than fit into memory: sorted runs, merged by ranges of terms."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from clew.out_of_core import WorkingMemory
from clew.store.bm25 import Ints, Postings, TextSegment, make_segment, pack_terms, sort_texts

_POSTING_BYTES = 160  # taken by a posting while its run is made, words and their hashes included
_CHARACTERS_PER_POSTING = 4  # fewer than there are, so that runs are rather too small
_SAMPLES = 1024  # terms of each run from which ranges are chosen


def make_segment_in_runs(
    memory: WorkingMemory, keys: Ints, texts: Mapping[int, str]
) -> TextSegment:
    """Index the words of texts: the same as `make_segment`, in bounded memory."""
    most = memory.rows_at_once(_POSTING_BYTES)
    if most is None:
        return make_segment(keys, texts)
    lengths = np.zeros(len(keys), np.int32)
    runs = [
        _keep(sort_texts(keys, some, lengths), memory)
        for some in _split_texts(texts, most * _CHARACTERS_PER_POSTING)
    ]
    return _merge_runs(runs, lengths, keys, memory)


def _split_texts(texts: Mapping[int, str], characters: int) -> Iterator[dict[int, str]]:
    some: dict[int, str] = {}
    size = 0
    for key, text in texts.items():
        some[key] = text
        size += len(text)
        if size >= characters:
            yield some
            some, size = {}, 0
    if some:
        yield some


def _keep(run: Postings, memory: WorkingMemory) -> Postings:
    """Move a run to scratch files."""
    terms, chunks, counts = run
    kept = memory.copy(terms), memory.copy(chunks), memory.copy(counts)
    memory.release()
    return kept


def _merge_runs(
    runs: list[Postings], lengths: NDArray[np.int32], keys: Ints, memory: WorkingMemory
) -> TextSegment:
    """Merge runs whose chunks ascend from run to run."""
    total = sum(len(terms) for terms, _, _ in runs)
    highest = max((int(counts.max(initial=0)) for _, _, counts in runs), default=0)
    chunks = memory.empty(total, np.int32)
    counts = memory.empty(total, np.min_scalar_type(highest))
    found: list[tuple[NDArray[np.uint64], Ints]] = []
    done = 0
    for places in _split_terms([terms for terms, _, _ in runs], total, memory):
        parts = [
            tuple(column[some] for column in run) for run, some in zip(runs, places, strict=True)
        ]
        terms, where, times = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(terms, kind="stable")
        some = slice(done, done + len(terms))
        chunks[some], counts[some] = where[order], times[order]
        distinct, starts = pack_terms(terms[order])
        found.append((distinct, starts[:-1] + done))
        done = some.stop
        memory.release()
    listed = [np.zeros(0, np.uint64), *(terms for terms, _ in found)]
    begins = [np.zeros(0, np.int64), *(starts for _, starts in found)]
    starts = np.append(np.concatenate(begins), total).astype(np.int64)
    return TextSegment(np.concatenate(listed), starts, chunks, counts, lengths, np.asarray(keys))


def _split_terms(
    runs: list[NDArray[np.uint64]], total: int, memory: WorkingMemory
) -> Iterator[list[slice]]:
    """For each range of terms, where it is in each run; equal terms are in one range."""
    parts = -(-total * _POSTING_BYTES // (memory.limit or 1)) * 4  # some are larger than others
    sample = np.sort(np.concatenate([np.zeros(0, np.uint64), *map(_sample, runs)]))
    edges = np.unique(sample[np.linspace(0, len(sample), parts + 1).astype(int)[1:-1]])
    begins = [0] * len(runs)
    for edge in [*edges, None]:
        ends = [
            len(terms) if edge is None else int(np.searchsorted(terms, edge, "left"))
            for terms in runs
        ]
        if begins != ends:
            yield [slice(*both) for both in zip(begins, ends, strict=True)]
        begins = ends


def _sample(terms: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return terms[:: max(1, len(terms) // _SAMPLES)]
