"""What is estimated does not depend on the order in which documents were added."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from clew.config import Settings
from clew.index import view
from clew.retrieve import walk
from clew.store import sign_bits
from clew.store.sign_bits import make_sign_bits
from clew.testing.hashed_kb import open_hashed
from clew.text.unicode import digest
from clew.types import Document

PLACES = "Marrow Kell Oslen Vessen Tarn Aske Hollin Brandvik Selm Ruun".split()
QUESTIONS = [f"Who built the Mill of {place}?" for place in PLACES]


async def _stream(texts: Sequence[str]) -> AsyncIterator[Document]:
    for text in texts:
        yield Document(digest(text), text, names=(f"{digest(text)}.txt",))


async def test_another_order_gives_the_same_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MIN_ESTIMATED", 20)
    monkeypatch.setattr(sign_bits, "COUNTED_ROWS", 40)
    monkeypatch.setattr(walk, "MAX_NEAR", 8)
    texts = [
        f"{one} Lind{n} built the {thing} of {other}. {other} lies near {one}."
        for n, one in enumerate(PLACES)
        for other in PLACES
        for thing in ("Mill", "Weir")
    ]
    scores = []
    for number, order in enumerate((texts, texts[::-1], [*texts[71:], *texts[:71]])):
        base = await open_hashed(
            Settings(kb=tmp_path / str(number), extractor="offline"), create=True
        )
        await base.take(_stream([*order[:90], "Of Selm there is no Mill."]))
        await base.take(_stream(order[90:]))
        await base.remove([f"{digest('Of Selm there is no Mill.')}.txt"])
        found = [(await base.search(one, recipe="clew")).evidence.chunks for one in QUESTIONS]
        scores.append([[(hit.doc, round(hit.score, 5)) for hit in hits] for hits in found])
    assert scores[1] == scores[0]
    assert scores[2] == scores[0]


def test_rows_that_are_counted_are_chosen_by_what_they_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sign_bits, "COUNTED_ROWS", 500)
    numbers = np.random.default_rng(7)
    vectors = numbers.standard_normal((9000, 100)).astype(np.float32)
    order = numbers.permutation(9000)
    rows = np.arange(9000)
    sample = make_sign_bits(vectors).find_sample(rows)
    other = make_sign_bits(vectors[order]).find_sample(rows)
    assert sample is not None and other is not None
    assert 300 < len(sample) < 1000
    np.testing.assert_array_equal(np.sort(order[other]), sample)
    # Of equal rows all would be chosen, or none: then all are counted.
    assert make_sign_bits(np.repeat(vectors[:2], 4500, axis=0)).find_sample(rows) is None
