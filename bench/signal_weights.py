"""How much meaning, words and best sentence should count: recall for each mix of the three.

`python -m bench.signal_weights --data DIR --kbs DIR --sets A,B,C [--sample 150] [--show 12]`.
The three signals of plain relevance are computed once for each question, mixed in every way of a
grid, and spread over pages as the default recipe does. Printed are the best mixes by the sum of
recall@2, recall@5 and mean reciprocal rank, each averaged over the sets, and the mix in use. The
reciprocal rank is there because on so few questions the recalls jump by whole questions.

Leave a set out of `--sets` to test the choice on it with `python -m bench.generalise`.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from bench.generalise import DEPTH, Asked, read_questions
from bench.machine import print_result, require_path
from clew.config import Settings
from clew.context import Context
from clew.engine import KnowledgeBase
from clew.evaluate.metrics.registry import recall
from clew.retrieve.blend import PLAIN_SHARES, PlainScores, score_plainly
from clew.retrieve.copies import drop_copies
from clew.retrieve.linking.link_names import LinkNames
from clew.retrieve.question import tidy_question
from clew.retrieve.rank import top_hits
from clew.retrieve.sections import fetch_places
from clew.retrieve.spread import Spread
from clew.retrieve.tidy import restore_capitals
from clew.types import Found

MEANINGS = (0.2, 0.3, 0.35, 0.4, 0.45, 0.5)
WORDS = (0.2, 0.25, 0.3, 0.35)
LEADS = (0.1, 0.2, 0.3)
Mix = tuple[float, float, float, float]
"""Shares of meaning, words and best sentence, and what a lead counts."""


@dataclass(frozen=True)
class Recorded:
    """One question with its context, its scores and the documents that answer it."""

    ctx: Context
    asked: Asked
    scores: PlainScores


async def record_set(
    kb: KnowledgeBase, asked: Sequence[Asked], mixes: Sequence[Mix]
) -> dict[Mix, list[float]]:
    """Return the mean recall@2, recall@5 and reciprocal rank of each mix on one set."""
    async with kb.store.snapshot() as snapshot:
        names = {one.document: name for name, one in (await kb.store.sources()).items()}
        recorded = []
        for one in asked:
            ctx = await kb.context(snapshot, one.text, "clew")
            ctx = ctx.with_question(await restore_capitals(ctx, tidy_question(one.text)))
            found = await LinkNames()(ctx, Found())
            recorded.append(Recorded(ctx, one, await score_plainly(ctx, found)))
        return {
            mix: np.mean([await measure(one, names, mix) for one in recorded], axis=0).tolist()
            for mix in mixes
        }


async def measure(one: Recorded, names: dict[str, str], mix: Mix) -> list[float]:
    """Rank the documents by one mix; recall@2, recall@5 and the gold's mean reciprocal rank."""
    *shares, lead = mix
    meaning, words, sentence = shares
    ctx = one.ctx
    scores = await drop_copies(ctx, one.scores.mix((meaning, words, sentence), lead))
    hits = top_hits(scores, ctx.view.keys("chunk"), 100, "relevance")
    ranked = (await Spread()(ctx, Found(chunks=hits))).chunks
    places = await fetch_places(ctx, [hit.at for hit in ranked])
    pages = [names.get(place.document, place.document) for place in places]
    first, every = list(dict.fromkeys(pages[:DEPTH])), list(dict.fromkeys(pages))
    gold = one.asked.gold
    inverse = [1 / (1 + every.index(name)) if name in every else 0.0 for name in gold]
    return [recall(first[:2], gold), recall(first[:5], gold), float(np.mean(inverse))]


async def main() -> None:
    """Parse the arguments, measure every mix on every set and print the best."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--kbs", type=Path, required=True)
    parser.add_argument("--sets", required=True, help="names of sets")
    parser.add_argument("--sample", type=int, default=150, help="questions of each set")
    parser.add_argument("--show", type=int, default=12, help="mixes that are printed")
    given = parser.parse_args()
    data = require_path(given.data, "--data")
    shares = [(m, w, round(1 - m - w, 2)) for m, w in product(MEANINGS, WORDS)]
    mixes = [(*one, lead) for one in dict.fromkeys([PLAIN_SHARES, *shares]) for lead in LEADS]
    by_set = {}
    for name in given.sets.split(","):
        kb = await KnowledgeBase.open(Settings(kb=given.kbs / name))
        try:
            by_set[name] = await record_set(kb, read_questions(data / name, given.sample), mixes)
        finally:
            await kb.close()
    means = {mix: np.mean([rows[mix] for rows in by_set.values()], axis=0) for mix in mixes}
    best = sorted(mixes, key=lambda mix: -float(means[mix].sum()))[: given.show]
    for mix in dict.fromkeys([*best, (*PLAIN_SHARES, LEADS[0])]):
        rows = ["/".join(f"{value:.3f}" for value in by_set[name][mix]) for name in by_set]
        print(mix, "/".join(f"{value:.4f}" for value in means[mix]), *rows)
    figures = {str(mix): [round(float(v), 4) for v in means[mix]] for mix in best}
    print_result("signal_weights", figures, {"sets": given.sets, "sample": given.sample})


if __name__ == "__main__":
    asyncio.run(main())
