"""BM25 against a straightforward reference, and incremental against fresh."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.store import bm25
from clew.store.bm25 import build_index, index_from_arrays, index_to_arrays
from clew.text.unicode import split_words

TEXTS = st.lists(st.lists(st.sampled_from("ab cd ef 北京 ä".split()), max_size=6).map(" ".join))


def _bm25(texts: list[str], query: list[str]) -> list[float]:
    bags = [Counter(split_words(text)) for text in texts]
    mean = max(1.0, sum(map(Counter.total, bags)) / len(bags))
    found = []
    for bag in bags:
        score = 0.0
        for word in query:
            having = sum(1 for other in bags if word in other)
            if word in bag:
                idf = math.log(1 + (len(bags) - having + 0.5) / (having + 0.5))
                norm = 1.2 * (1 - 0.75 + 0.75 * bag.total() / mean)
                score += idf * bag[word] * 2.2 / (bag[word] + norm)
        found.append(score)
    return found


@given(TEXTS.filter(bool))
def test_scores_are_bm25(texts: list[str]) -> None:
    index = build_index(np.arange(len(texts)), dict(enumerate(texts)))
    query = ["ab", "ef", "nowhere", "ab"]
    np.testing.assert_allclose(index.scores(query), _bm25(texts, query), rtol=1e-5)


@given(TEXTS, st.sets(st.integers(0, 5)), TEXTS)
def test_extending_equals_indexing_afresh(old: list[str], gone: set[int], new: list[str]) -> None:
    keys = np.arange(len(old), dtype=np.int64) * 2
    first = build_index(keys, dict(zip(keys.tolist(), old, strict=True)))
    kept = {int(k): t for i, (k, t) in enumerate(zip(keys, old, strict=True)) if i not in gone}
    fresh = {1000 + i: text for i, text in enumerate(new)}
    both = np.array(sorted(kept | fresh), np.int64)
    extended = index_to_arrays(build_index(both, fresh, first))
    rebuilt = index_to_arrays(build_index(both, kept | fresh))
    assert extended.keys() == rebuilt.keys()
    for name, column in rebuilt.items():
        np.testing.assert_array_equal(extended[name], column)
        assert extended[name].dtype == column.dtype


def test_a_rarer_word_weighs_more_and_an_unknown_one_nothing() -> None:
    texts = {0: "salt bridge", 1: "salt coast", 2: "salt tarn tarn", 3: "moss"}
    index = build_index(np.arange(4), texts)
    rare, common = math.log(1 + 3.5 / 1.5), math.log(1 + 1.5 / 3.5)
    # With k1 = 0 a score is the word's inverse document frequency, however often it occurs.
    assert index.scores(["tarn"], k1=0.0).tolist() == pytest.approx([0, 0, rare, 0])
    assert index.scores(["salt"], k1=0.0).tolist() == pytest.approx([common] * 3 + [0])
    assert index.scores(["nowhere"]).tolist() == [0, 0, 0, 0]
    assert index.chunks_with("salt").tolist() == [0, 1, 2]
    assert index.chunks_with("nowhere").tolist() == []


def _make_texts(first: int, count: int) -> dict[int, str]:
    words = [f"w{n}" for n in range(40)]
    rng = np.random.default_rng(first)
    return {first + n: " ".join(rng.choice(words, rng.integers(0, 9))) for n in range(count)}


def test_segments_score_and_find_like_one_index_and_merge_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bm25, "MIN_SEGMENTED", 500)
    monkeypatch.setattr(bm25, "MIN_COMMON", 180)  # some words are common, some are not
    texts = _make_texts(0, 2000)
    index = build_index(np.arange(2000), texts)
    large = index.segments[0]
    sizes = []
    for step in range(12):
        fresh = _make_texts(3000 + 10 * step, 8)
        gone = [7 + 50 * step, 900 + step, *(list(fresh)[:1] if step % 3 else [])]
        texts = {key: text for key, text in (texts | fresh).items() if key not in gone}
        keys = np.array(sorted(texts), np.int64)
        given = {key: text for key, text in fresh.items() if key in texts}
        # Read back, as the next write does.
        arrays = {**index_to_arrays(index), "chunk_keys": index.keys}
        index = build_index(keys, given, index_from_arrays(arrays))
        whole = build_index(keys, texts)
        query = ["w1", "w7", "w1", "nowhere", "w39"]
        np.testing.assert_array_equal(index.scores(query), whole.scores(query))
        np.testing.assert_array_equal(index.chunks_with("w7"), whole.chunks_with("w7"))
        together = index.chunks_with_all(["w3", "w4"])
        np.testing.assert_array_equal(together, whole.chunks_with_all(["w3", "w4"]))
        sizes.append(len(index.segments))
        if sizes[-1] == 1:
            for name, column in index_to_arrays(whole).items():
                np.testing.assert_array_equal(index_to_arrays(index)[name], column)
        elif 1 not in sizes:
            assert index.segments[0].chunks is large.chunks
    # Most writes leave the large segment alone; when the small one has grown, they are merged.
    assert sizes.count(2) > sizes.count(1) > 0


def test_a_removal_alone_leaves_both_segments_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "MIN_SEGMENTED", 500)
    first = build_index(np.arange(1000), _make_texts(0, 1000))
    second = build_index(np.arange(1010), _make_texts(1000, 10), first)
    third = build_index(np.delete(np.arange(1010), 5), {}, second)
    assert third.segments == second.segments
    assert third.segments[0] is first.segments[0]
    assert len(third.scores(["w1"])) == 1009


def test_scores_of_common_words_are_those_of_their_postings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = {key: f"{text} every" for key, text in _make_texts(0, 300).items()}
    query = ["every", "w1", "w2", "every", "w3"]
    plain = [build_index(np.arange(300), texts).scores(words) for words in (query, query[:2])]
    monkeypatch.setattr(bm25, "MIN_COMMON", 10)
    monkeypatch.setattr(bm25, "MAX_COMMON_TERMS", 2)
    index = build_index(np.arange(300), texts)
    for _ in range(2):
        for words, scores in zip((query, query[:2]), plain, strict=True):
            np.testing.assert_array_equal(index.scores(words), scores)
