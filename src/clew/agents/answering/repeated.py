"""Tell what stands on many pages: captions, standings, "Read more …". It says nothing of a topic.

No form tells a caption from a statement, but a statement that pages with other texts all repeat is
part of a site. Words say which passages may have a text, numbers apart; a sample of them is read.
Copies of one page count once: what a copied page says is not repeated by that.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from clew.context import Context
from clew.graph.csr import Ints
from clew.index.view import View
from clew.retrieve.copies import count_unlike
from clew.retrieve.pack import fetch_chunks
from clew.text.unicode import split_words

_MANY, _FEW = 5, 3  # unlike pages that repeat a text, and where half of all passages may have it
_HALF = 0.5
_LEAST_WORDS = 3  # of a text that can be found again
_READ = 24  # passages that are read for a text


async def find_repeated(ctx: Context, texts: Iterable[str]) -> frozenset[str]:
    """Return those of the texts that stand, but for numbers, on many pages that are unlike."""
    found = set[str]()
    for text in dict.fromkeys(texts):
        words = _split(text)
        if len(set(words)) < _LEAST_WORDS:
            continue
        places = _find_with_words(ctx.view, words)
        if len(places) >= _FEW and await _is_repeated(ctx, words, places):
            found.add(text)
    return frozenset(found)


async def _is_repeated(ctx: Context, words: Sequence[str], places: Ints) -> bool:
    """Whether many of these passages, or a few that are half of all, have the words in a row."""
    step = max(1, len(places) // _READ)
    chunks = await fetch_chunks(ctx, places[::step][:_READ].tolist())
    row = f" {' '.join(words)} "
    having = [at for at, one in chunks.items() if row in f" {' '.join(_split(one.text))} "]
    if len(having) < _FEW:
        return False
    half = len(having) >= _HALF * len(chunks) and len(places) >= _HALF * ctx.view.count("chunk")
    return await count_unlike(ctx, having) >= (_FEW if half else _MANY)


def _find_with_words(view: View, words: Sequence[str]) -> Ints:
    """Return the passages that have all of these words, the rarest first: few are left soon."""
    lists = sorted((view.bm25.chunks_with(word) for word in set(words)), key=len)
    places: Ints = np.asarray(lists[0], np.int64)
    for other in lists[1:]:
        if len(places) < _FEW:
            break
        places = places[np.isin(places, other)]
    return places


def _split(text: str) -> list[str]:
    """Return the words of a text without its numbers."""
    return [word for word in split_words(text) if not any(map(str.isdigit, word))]
