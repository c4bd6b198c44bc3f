"""Adds to a passage's score what its best unit says: a definition, row, paragraph or list.

A long section has the words of a question here and there; the passage that answers has most of
them in one piece, below a heading with the others. Only the first passages are cut into units.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from clew.context import Context
from clew.graph.csr import Floats, Ints
from clew.index.view import View
from clew.retrieve.pack import fetch_chunks
from clew.retrieve.question import content_words
from clew.text.places import Unit, find_units
from clew.text.unicode import split_words
from clew.types import Chunk

_READ = 10  # passages that are cut into units
# Chosen by the mean over the dev halves of bench.documents, three topics of web pages and SQuAD:
# found and quoted on manuals are as with 0.8 (.932 and .807 for .931 and .799), and long web pages
# gain a point at two and five. A fourth topic was not used for it and gains one at five.
_WEIGHT = 0.4
_HEADINGS = 0.4  # of a word that only the headings have
_STEM = 5  # letters that forms of a word share


async def score_units(ctx: Context, scores: Floats) -> Floats:
    """Return what to add to the score of each chunk: how much of the question one unit says."""
    added = np.zeros_like(scores)
    words = weigh_stems(ctx.view, ctx.question)
    if not words:
        return added
    best: Ints = np.argsort(-scores, kind="stable")[:_READ]
    chunks = await fetch_chunks(ctx, best.tolist())
    units = {at: find_units(chunk.text) for at, chunk in chunks.items()}
    if all(len(found) < 2 for found in units.values()):  # each is one unit: nothing to tell apart
        return added
    for at, chunk in chunks.items():
        added[at] = _WEIGHT * measure_best_unit(words, chunk, units[at])
    # What was not read says as much as the least of those that were, so that none falls behind it.
    rest = np.setdiff1d(np.arange(len(scores)), best)
    added[rest] = min((float(added[at]) for at in chunks), default=0.0)
    return added


def weigh_stems(view: View, question: str) -> dict[str, float]:
    """Return the beginnings of a question's words with their share by rarity."""
    count = max(1, view.count("chunk"))
    weights: dict[str, float] = {}
    for word in content_words(question):
        rarity = math.log(1 + count / (1 + len(view.bm25.chunks_with(word))))
        weights[word[:_STEM]] = max(rarity, weights.get(word[:_STEM], 0.0))
    total = sum(weights.values())
    return {word: weight / total for word, weight in weights.items()} if total else {}


def measure_best_unit(words: Mapping[str, float], chunk: Chunk, units: Sequence[Unit]) -> float:
    """Return the share of the words that the best unit of a chunk and its headings have."""
    best = 0.0
    for unit in units:
        said = stems_of(unit.quote(chunk.text))
        above = stems_of(" ".join((chunk.title, chunk.heading, *unit.section))) - said
        share = sum(weight for word, weight in words.items() if word in said)
        share += _HEADINGS * sum(weight for word, weight in words.items() if word in above)
        best = max(best, share)
    return best


def stems_of(text: str) -> frozenset[str]:
    """Return the beginnings of a text's words."""
    return frozenset(word[:_STEM] for word in split_words(text))
