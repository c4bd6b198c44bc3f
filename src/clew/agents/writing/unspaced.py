"""Entailment in scripts without spaces and capitals, by pairs of characters.

Nothing there marks where a name begins. But a name that the quote lacks leaves pairs that it
lacks, and few of these consist of function characters alone.
"""

import re
import unicodedata
from collections.abc import Sequence

from clew.text import split_words

_MIN_PAIR_SHARE = 0.6  # of the pairs of letters
# Function characters; a pair with one of them may differ without changing the sense.
# Characters common in names are left out: 上 is in 上海, 中 in 中国.
_FUNCTION_CHARS = frozenset(
    "的是在于於了和与與及并並也都而或其他她它们們这這那该該为為由被将將把从從给給对對以之者所有个個位名"
    "出生年月日曾则則即因但"
)
_NUMERAL_CLASSIFIER = re.compile("[二三四五六七八九十百千万萬亿億][年月日个個位名岁歲]")
# Han and Katakana: Hiragana is mostly grammar, and of other scripts too little is known.
_CONTENT_CHARS = re.compile("[\u3005-\u3007\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
# Hangul attaches particles to the end of a word: the beginning carries the content.
_HANGUL = re.compile("[\uac00-\ud7a3]{2,}")
_HANGUL_FUNCTION_CHARS = frozenset("그이저있없하했한되된됐는은의가를을에서로와과도다")
_CJK_PRONOUN = re.compile("[他她它其彼]|그는|그녀|それ")


def is_content_pair(pair: str) -> bool:
    """Whether a pair carries content: part of a name, a thing, a number of things."""
    if _NUMERAL_CLASSIFIER.fullmatch(pair):
        return True
    return _CONTENT_CHARS.fullmatch(pair) is not None and not set(pair) & _FUNCTION_CHARS


def _has_unsupported_pair(pairs: Sequence[str], heard: set[str]) -> bool:
    """Whether a content pair is missing from `heard`, other than where two known words meet."""
    around = zip(["", *pairs], pairs, [*pairs[1:], ""], strict=False)
    return any(
        is_content_pair(pair)
        and pair not in heard
        and not _is_word_boundary(before, pair, after, heard)
        for before, pair, after in around
    )


def _is_word_boundary(before: str, pair: str, after: str, heard: set[str]) -> bool:
    joins = before[-1:] == pair[0] and after[:1] == pair[-1]
    return joins and before in heard and after in heard


def _hangul_prefixes(text: str) -> set[str]:
    """Return the first two characters of each Hangul word."""
    found = {run[:2] for run in _HANGUL.findall(unicodedata.normalize("NFC", text))}
    return {pair for pair in found if not set(pair) <= _HANGUL_FUNCTION_CHARS}


def is_supported_cjk(sentence: str, text: str, title: str, before: str) -> bool:
    """Whether a page's sentence supports another: most pairs, and every content pair.

    The title, or the text before a pronoun, may supply the subject, unless the sentence begins with
    another one.
    """
    pairs, text_pairs, title_pairs = (
        split_words(sentence),
        split_words(text),
        set(split_words(title)),
    )
    available = set(text_pairs)
    distinct = set(pairs)
    if len(distinct & available) < _MIN_PAIR_SHARE * len(distinct):
        return False
    opening = text_pairs[: next(at for at, pair in enumerate(text_pairs) if pair in distinct)]
    if not any(is_content_pair(pair) and pair not in title_pairs for pair in opening):
        available |= title_pairs | (
            set(split_words(before)) if _CJK_PRONOUN.search(text) else set()
        )
    return not _has_unsupported_pair(pairs, available) and _hangul_prefixes(sentence) <= available
