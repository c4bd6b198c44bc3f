"""A beam of hypotheses: paths of passages, scored as a whole, that end when nothing is missing."""

import numpy as np

from clew.engine import KnowledgeBase
from clew.retrieve.facts import score_sentences
from clew.retrieve.follow_up import score_words
from clew.retrieve.hypotheses import HypothesisSearch
from conftest import document, stream

PAGES = (
    document("song", "Grey Harbour is a song. It was sung by Tilda Varn.", "Grey Harbour"),
    document("singer", "Tilda Varn was a singer. She was born in Osmere.", "Tilda Varn"),
    document("town", "Osmere is a town. It has a mayor and a lighthouse.", "Osmere"),
    document("other", "Vessen is a town. It has a mayor.", "Vessen"),
    document("lake", "Ember is a lake.", "Ember"),
)


async def score(base: KnowledgeBase, question: str, first: str) -> dict[str, float]:
    """Score every document by its best hypothesis, where the walk has found only `first`."""
    await base.take(stream(PAGES))
    async with base.store.snapshot() as now:
        ctx = await base.context(now, question)
        keys = ctx.view.keys("chunk")
        chunks = await now.chunks(keys.tolist())
        names = await now.names([chunk.document for chunk in chunks.values()])
        docs = [names[chunks[int(key)].document][0] for key in keys]
        total = np.array([1.0 if doc == first else 0.01 for doc in docs], np.float32)
        vector = await ctx.vector()
        fits = await score_sentences(ctx, vector)
        known = np.zeros(0, np.int64)
        search = HypothesisSearch(ctx, total, fits, vector, known, score_words(ctx))
        return dict(zip(docs, (await search.score_passages()).tolist(), strict=True))


async def test_a_hypothesis_goes_on_to_what_is_missing(base: KnowledgeBase) -> None:
    question = "Which lighthouse has the town of the singer of Grey Harbour?"
    scores = await score(base, question, "song")
    assert scores["song"] == scores["singer"] == scores["town"] == 1
    assert scores["other"] < 1 and scores["lake"] < 1


async def test_a_hypothesis_ends_when_nothing_is_missing(base: KnowledgeBase) -> None:
    scores = await score(base, "Grey Harbour", "song")
    assert scores["song"] == 1
    assert scores["singer"] < 1 and scores["town"] < 1
