"""Gold documents of questions that were made from a knowledge base."""

import pytest

from clew.evaluate.datasets import Question
from clew.evaluate.scoring import RecipeOutput, Scorer


@pytest.mark.parametrize("gold", ["7", "corpus.jsonl#7", "notes/corpus.jsonl#7"])
async def test_gold_is_told_by_its_id_in_the_corpus_or_by_its_name(gold: str) -> None:
    question = Question("q1", "Who designed it?", gold=(gold,))
    values = await Scorer(["recall@2"]).score(question, RecipeOutput(found=("7",)))
    assert values.values["recall@2"] == 1
