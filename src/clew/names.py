"""Names as they are matched: tokens, the loose key of a name, and its shorter forms.

`text.normal_name` says when two names are the same thing; the loose key here only says when they
may be: it drops punctuation and accents, so `J.R.R. Tolkien` meets `J. R. R. Tolkien`.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

# Scripts without spaces give one token per character, so that any run of them can be matched.
_SOLO = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana, Han
    "\u0e00-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\U00020000-\U0003fffd"  # Thai … Burmese
)
_MARK = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0dff"
_TOKEN = re.compile(rf"[{_SOLO}]|(?:(?![{_SOLO}])[^\W_])(?:(?![{_SOLO}])[^\W_]|[{_MARK}])*")
_IS_SOLO = re.compile(f"[{_SOLO}]")
_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u0652\u0640]")
_BRACKETED = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")

CONNECTORS = frozenset(
    "of the de la le les du des del della di da do dos das van von der den zu zum bin ibn al el y "
    "e st sur i och og et und ben ter ten".split()
)
HONORIFICS = frozenset(
    "sir lord lady dame dr prof professor mr mrs ms miss king queen prince princess emperor "
    "empress duke duchess count countess baron baroness earl saint st pope bishop archbishop "
    "cardinal president captain general colonel major sultan sheikh shah emir rev reverend "
    "father senator governor judge".split()
)


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text's tokens as columns: spans, folded keys, and whether each begins in upper case."""

    starts: list[int]
    ends: list[int]
    keys: list[str]
    upper: list[bool]
    digit: list[bool]
    solo: list[bool]

    def __len__(self) -> int:
        """How many tokens."""
        return len(self.keys)

    def key(self, first: int, last: int) -> str:
        """The loose key of tokens `first` to `last` (exclusive)."""
        return " ".join(self.keys[first:last])


def tokens(text: str) -> Tokens:
    """Split a text of any script into tokens that names are matched by."""
    found = Tokens([], [], [], [], [], [])
    for match in _TOKEN.finditer(text):
        word = match[0]
        found.starts.append(match.start())
        found.ends.append(match.end())
        found.keys.append(_folded(word))
        found.upper.append(word[0].isupper() or word[0].istitle())
        found.digit.append(word[0].isdigit())
        found.solo.append(bool(_IS_SOLO.match(word)))
    return found


@lru_cache(maxsize=65536)
def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()
    if _IS_SOLO.match(word):
        return word
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", word)).casefold()


def name_key(name: str) -> str:
    """The loose key of a name; a leading English article does not count."""
    keys = tokens(name).keys
    if len(keys) > 1 and keys[0] == "the":
        keys = keys[1:]
    return " ".join(keys) or name.strip()


def plain_title(title: str) -> str:
    """A title without the brackets that tell it from its namesakes."""
    return _BRACKETED.sub("", title) or title


@dataclass(frozen=True, slots=True)
class Form:
    """A shorter form that may stand for a name, and how likely it does."""

    key: str
    weight: float
    part: bool = False
    """A mere beginning or end of the name, good only when nothing better is known."""


def forms(name: str) -> list[Form]:
    """The shorter forms of a name, best first, each key once."""
    keys = name_key(name).split()
    found: dict[str, Form] = {}
    for form in (*_variants(keys), *_parts(keys)):
        if form.key not in found and form.key != " ".join(keys):
            found[form.key] = form
    return list(found.values())


def _variants(keys: list[str]) -> list[Form]:
    """Without the honorific; the first and last word of a long name."""
    found = []
    bare = keys[1:] if len(keys) > 1 and keys[0] in HONORIFICS else keys
    joined = any(key in CONNECTORS for key in bare)
    if bare is not keys:
        found.append(Form(" ".join(bare), 0.9))
    if len(bare) > 2 and not joined:
        found.append(Form(f"{bare[0]} {bare[-1]}", 0.7))
    return found


def _parts(keys: list[str]) -> list[Form]:
    """Beginnings and ends of two words and more; the longer, the likelier."""
    found = []
    for size in range(min(len(keys) - 1, 8), 1, -1):
        weight = 0.4 + 0.5 * size / len(keys)
        for part in (keys[:size], keys[-size:]):
            if part[0] not in CONNECTORS and part[-1] not in CONNECTORS:
                found.append(Form(" ".join(part), weight, part=True))
    return found
