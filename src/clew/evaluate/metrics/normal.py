"""Answer normalisation of SQuAD, extended to every script.

For ASCII text it is exactly SQuAD's (lower case, no punctuation, no English articles, single
spaces), which HotpotQA, MuSiQue, 2WikiMultiHopQA, Graph-R1 and GraphSearch use too. Punctuation of
other scripts is removed, too, and scripts without spaces are split into characters.
"""

import re
import string
import unicodedata
from functools import lru_cache

from clew.text import UNSPACED, nfc

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TOKEN = re.compile(f"[{UNSPACED}]|[^{UNSPACED}\\s]+")


@lru_cache(maxsize=1 << 14)  # every recipe is compared with the same gold answers
def normalise_answer(text: str) -> str:
    """Lower case, no punctuation, no English articles, single spaces."""
    bare = nfc(text).lower().translate(_PUNCTUATION)
    if not bare.isascii():
        bare = "".join(char for char in bare if unicodedata.category(char)[0] != "P")
    return " ".join(_ARTICLES.sub(" ", bare).split())


@lru_cache(maxsize=1 << 14)
def answer_tokens(text: str) -> tuple[str, ...]:
    """Return the tokens for F1; a text of only articles or punctuation is its own token."""
    found = tuple(_TOKEN.findall(normalise_answer(text)))
    bare = text.strip().lower()
    return found or ((bare,) if bare else ())


def is_same_answer(one: str, other: str) -> bool:
    """Whether two answers are equal after normalisation."""
    return answer_tokens(one) == answer_tokens(other)
