"""Entailment in scripts without spaces and capitals, by pairs of characters.

Nothing there marks where a name begins. But a name that the quote lacks leaves pairs that it
lacks, and few of these consist of function characters alone.
"""

import re
import unicodedata
from collections.abc import Sequence

from clew.text import words

_ENOUGH = 0.6  # of the pairs of letters
# Function characters; a pair with one of them may differ without changing the sense.
# Characters common in names are left out: 上 is in 上海, 中 in 中国.
_JOINING = frozenset(
    "的是在于於了和与與及并並也都而或其他她它们們这這那该該为為由被将將把从從给給对對以之者所有个個位名"
    "出生年月日曾则則即因但"
)
_COUNTED = re.compile("[二三四五六七八九十百千万萬亿億][年月日个個位名岁歲]")
# Han and Katakana: Hiragana is mostly grammar, and of other scripts too little is known.
_TELLS = re.compile("[\u3005-\u3007\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
# Hangul attaches particles to the end of a word: the beginning carries the content.
_HANGUL = re.compile("[\uac00-\ud7a3]{2,}")
_HANGUL_JOINING = frozenset("그이저있없하했한되된됐는은의가를을에서로와과도다")
_PRONOUN = re.compile("[他她它其彼]|그는|그녀|それ")


def tells(pair: str) -> bool:
    """Whether a pair carries content: part of a name, a thing, a number of things."""
    if _COUNTED.fullmatch(pair):
        return True
    return _TELLS.fullmatch(pair) is not None and not set(pair) & _JOINING


def _strange(pairs: Sequence[str], heard: set[str]) -> bool:
    """Whether a content pair is missing from `heard`, other than where two known words meet."""
    around = zip(["", *pairs], pairs, [*pairs[1:], ""], strict=False)
    return any(
        tells(pair) and pair not in heard and not _seam(before, pair, after, heard)
        for before, pair, after in around
    )


def _seam(before: str, pair: str, after: str, heard: set[str]) -> bool:
    joins = before[-1:] == pair[0] and after[:1] == pair[-1]
    return joins and before in heard and after in heard


def _begun(text: str) -> set[str]:
    """Return the first two characters of each Hangul word."""
    found = {run[:2] for run in _HANGUL.findall(unicodedata.normalize("NFC", text))}
    return {pair for pair in found if not set(pair) <= _HANGUL_JOINING}


def said_by(sentence: str, text: str, title: str, before: str) -> bool:
    """Whether a page's sentence supports another: most pairs, and every content pair.

    The title, or the text before a pronoun, may supply the subject, unless the sentence begins with
    another one.
    """
    pairs, text_pairs, title_pairs = words(sentence), words(text), set(words(title))
    available = set(text_pairs)
    distinct = set(pairs)
    if len(distinct & available) < _ENOUGH * len(distinct):
        return False
    opening = text_pairs[: next(at for at, pair in enumerate(text_pairs) if pair in distinct)]
    if not any(tells(pair) and pair not in title_pairs for pair in opening):
        available |= title_pairs | (set(words(before)) if _PRONOUN.search(text) else set())
    return not _strange(pairs, available) and _begun(sentence) <= available
