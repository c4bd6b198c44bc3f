"""The query scorer of the package: a pair of texts is scored by itself, and by its first token."""

from pathlib import Path

import numpy as np
import pytest

from clew.llm.embed_local import open_session
from clew.reader.query_scorer import QueryScorer
from clew.reader.span_reader import READER_FILE, open_tokenizer

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

QUESTION = "Who designed the Marrow Bridge?"
TOLD = "Ilse Brandvik — Marrow Bridge: It was designed by the engineer Ilse Brandvik."
UNTOLD = (
    "Hallowmere — Hallowmere: Hallowmere is a fishing town on the Grey Coast, with a lighthouse, "
    "two churches and a market that is held on the first Monday of every month."
)


@pytest.fixture(scope="module")
def scorer() -> QueryScorer:
    return QueryScorer.load()


def test_a_score_does_not_depend_on_the_other_texts(scorer: QueryScorer) -> None:
    together = scorer.score(QUESTION, [TOLD, UNTOLD, TOLD])
    assert together[0] == scorer.score(QUESTION, [TOLD])[0] == together[2]
    assert together[1] == scorer.score(QUESTION, [UNTOLD])[0]
    assert together[0] > 0.5 > together[1]
    assert len(scorer.score(QUESTION, [])) == 0


def test_what_decides_a_question_is_scored_with_what_it_says(scorer: QueryScorer) -> None:
    asked = "Was the Marrow Bridge designed by Ilse Brandvik?"
    decides, yes = scorer.score_statements(asked, [TOLD.partition("— ")[2], UNTOLD])
    assert decides[0] > decides[1]
    assert yes[0] > 0.5


def test_a_last_layer_for_the_first_token_alone_gives_its_logits(tmp_path: Path) -> None:
    from bench.reader.graph import keep_first, make_windows, run_windows

    model, short = onnx.load(str(READER_FILE)), tmp_path / "first.onnx"
    keep_first(model)
    onnx.save(model, str(short))
    windows = make_windows(open_tokenizer(READER_FILE, open_session(READER_FILE)))
    for whole, first in zip(
        run_windows(READER_FILE, windows), run_windows(short, windows), strict=True
    ):
        assert first.shape == (1, 1, 2)
        assert np.abs(whole[:, :1] - first).max() < 0.1  # what is rounded together differs


def test_knowledge_bases_of_a_process_share_the_models() -> None:
    one, other = QueryScorer.load(), QueryScorer.load()
    assert one.session is other.session
    assert one.tokenizer is other.tokenizer
