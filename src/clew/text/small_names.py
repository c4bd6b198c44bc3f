"""Which names are written small, but for their first word: "Grey hill tick", "batch-oven"."""

import re
from functools import partial

from clew.text.names import STOP_WORDS, Tokens, strip_disambiguation, tokenize

NOT_KNOWN, NOT_SMALL, SMALL, SMALL_WORD = range(4)
"""What `small_code` tells, and a number for what was stored without it."""
MAX_WORDS = 6  # of a name that may be written small
_SMALL_LETTER = re.compile(r"(?:^|[\W_])[a-z]")  # at the beginning of a word


def small_code(name: str) -> int:
    """Tell how a name is written, a disambiguation in brackets apart.

    SMALL: it has several words, and other than its first some without a capital. SMALL_WORD: it is
    one word without any.
    """
    name = strip_disambiguation(name)
    if name.isascii() and not _SMALL_LETTER.search(name):  # most names
        return NOT_SMALL
    t = tokenize(name)
    if len(t) == 1:
        return SMALL_WORD if name.islower() and _says_something(t, 0) else NOT_SMALL
    if not 1 < len(t) <= MAX_WORDS or name.startswith("-"):
        return NOT_SMALL
    says = partial(_says_something, t)
    is_small = any(map(says, range(1, len(t)))) and not all(key in STOP_WORDS for key in t.keys)
    return SMALL if is_small else NOT_SMALL


def _says_something(t: Tokens, at: int) -> bool:
    key = t.keys[at]
    return key.isalpha() and key not in STOP_WORDS and not t.upper[at] and not t.unspaced[at]
