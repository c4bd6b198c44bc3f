"""Names as they are matched: tokens, the loose key of a name, and its shorter forms.

`text.normal_name` says when two names are the same thing; the loose key here only says when they
may be: it drops punctuation and accents, so `J.R.R. Tolkien` meets `J. R. R. Tolkien`.
Identifiers too, as people read them: the words of a relation, the last part of an IRI.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from clew.text import clean, hash64

# Scripts without spaces give one token per character, so that any run of them can be matched.
_SOLO = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana, Han
    "\u0e00-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\U00020000-\U0003fffd"  # Thai … Burmese
)
_MARK = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0dff"
_TOKEN = re.compile(rf"[{_SOLO}]|(?:(?![{_SOLO}])[^\W_])(?:(?![{_SOLO}])[^\W_]|[{_MARK}])*")
_ASCII_TOKEN = re.compile("[a-z0-9]+")  # what `_TOKEN` comes to in lower-case ASCII
_IS_SOLO = re.compile(f"[{_SOLO}]")
_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u0652\u0640]")
_BRACKETED = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_JOINTS = re.compile(r"[_\s]+")
_IDENTIFIER_JOINTS = re.compile(r"[_.:/#-]+")
_IRI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:\S+$")

CONNECTORS = frozenset(
    "of the de la le les du des del della di da do dos das van von der den zu zum bin ibn al el y "
    "e st sur i och og et und ben ter ten".split()
)
HONORIFICS = frozenset(
    "sir lord lady dame dr prof professor mr mrs ms miss king queen prince princess emperor "
    "empress duke duchess count countess baron baroness earl saint st pope bishop archbishop "
    "cardinal president captain general colonel major sultan sheikh shah emir rev reverend "
    "father senator governor judge marquess marquis marchioness viscount viscountess margrave "
    "landgrave archduke archduchess elector electress grand dowager".split()
)


# They say next to nothing about which name it is.
LIGHT = CONNECTORS | frozenset(
    "a an and or for in on at to by from with without his her its their our my your this that "
    "these those is are was were be not no as if but so than then into over under after before "
    "s t d ll re m o one two three first last new".split()
)
_MOST_TOKENS = 16  # of a name that are matched by their looks


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


@lru_cache(maxsize=1 << 16)  # hash, forms and codes of a name all begin with it
def name_key(name: str) -> str:
    """The loose key of a name; a leading English article does not count."""
    keys = _ASCII_TOKEN.findall(name.lower()) if name.isascii() else tokens(name).keys
    if len(keys) > 1 and keys[0] == "the":
        keys = keys[1:]
    return " ".join(keys) or name.strip()


@lru_cache(maxsize=1 << 16)
def token_code(key: str) -> int:
    """A folded token as 63 bits that show its looks, so that arrays can tell like from unlike.

    From the highest: light or not (1), its first three letters (9 each), its last two (10), its
    length (6), and a hash of it all (19).
    """
    code = int(key in LIGHT)
    for letter in key[:3].ljust(3, "\0"):
        code = code << 9 | ord(letter) & 511
    code = code << 10 | hash64(key[-2:]) & 1023
    code = code << 6 | min(len(key), 63)
    return code << 19 | hash64(key) & 0x7FFFF


def token_codes(name: str) -> list[int]:
    """The codes of a name's tokens, in order; of very long names the first ones."""
    return [token_code(key) for key in name_key(name).split()[:_MOST_TOKENS]]


def plain_title(title: str) -> str:
    """A title without the brackets that tell it from its namesakes."""
    return _BRACKETED.sub("", title) or title


FORM, PART, TOKEN, HEAD = range(4)


@dataclass(frozen=True, slots=True)
class Form:
    """A shorter form that may stand for a name, and how likely it does.

    A `PART` is a mere beginning or end, good only when nothing better is known; a `HEAD` is what
    stands before a comma or "of", by which the name may mean another but not another it.
    """

    key: str
    weight: float
    kind: int = FORM


def forms(name: str) -> list[Form]:
    """The shorter forms of a name, best first, each key once."""
    keys = name_key(name).split()
    found: dict[str, Form] = {}
    for form in (*_variants(keys), *_heads(name, keys), *_parts(keys)):
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


def _heads(name: str, keys: list[str]) -> list[Form]:
    """ "Albert III" of "Albert III, Duke of Kent", and "Bertha" of "Queen Bertha of Kent"."""
    found = []
    comma = name_key(name.split(",")[0]).split() if "," in name else []
    if comma and comma != keys:
        found.append(Form(" ".join(comma), 0.7, HEAD))
    head = keys[: keys.index("of", 1)] if "of" in keys[1:] else []
    while len(head) > 1 and head[0] in HONORIFICS:
        head = head[1:]
    if head and head[0] not in HONORIFICS:
        found.append(Form(" ".join(head), 0.6, HEAD))
    return found


def _parts(keys: list[str]) -> list[Form]:
    """Beginnings and ends of two words and more; the longer, the likelier."""
    found = []
    for size in range(min(len(keys) - 1, 8), 1, -1):
        weight = 0.4 + 0.5 * size / len(keys)
        for part in (keys[:size], keys[-size:]):
            if part[0] not in CONNECTORS and part[-1] not in CONNECTORS:
                found.append(Form(" ".join(part), weight, PART))
    return found


@lru_cache(maxsize=4096)
def relation_words(relation: str) -> str:
    """`starred_actors`, `starredActors` and `film.starred-actors` as the words they are made of."""
    plain = local_name(relation)
    if not any(map(str.isspace, plain)):  # one identifier, not words already
        humps = any(map(str.islower, plain))
        plain = _IDENTIFIER_JOINTS.sub(" ", _HUMP.sub(" ", plain) if humps else plain)
        if humps:
            plain = " ".join(w if w.isupper() and len(w) > 1 else w.lower() for w in plain.split())
    return _JOINTS.sub(" ", plain).strip() or relation


@lru_cache(maxsize=65_536)
def local_name(iri: str) -> str:
    """What an IRI ends in, decoded; anything else as it is."""
    if not _IRI.match(iri):
        return iri
    last = re.split(r"[/#]", iri.rstrip("/#"))[-1]
    if ":" in last and "/" not in iri:
        last = last.rsplit(":", 1)[-1]
    readable = _JOINTS.sub(" ", clean(unquote(last))).strip()
    return readable or iri
