"""BM25 against a straightforward reference, and incremental against fresh."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.store.bm25 import build_index
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
    extended = build_index(both, fresh, first, keys)
    rebuilt = build_index(both, kept | fresh)
    for name in rebuilt.__slots__:
        np.testing.assert_array_equal(getattr(extended, name), getattr(rebuilt, name))


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
