"""Name matching: tokens, the loose key of a name, its short forms, and readable identifiers.

`normalize_name` decides when two names are the same entity; the loose key here only when they may
be: it drops punctuation and accents, so `J.R.R. Tolkien` matches `J. R. R. Tolkien`.
Identifiers are made readable too: the words of a relation, the local name of an IRI.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from clew.text.unicode import clean, hash64

# Scripts without spaces give one token per character, so that any run of them can be matched.
_UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana, Han
    "\u0e00-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\U00020000-\U0003fffd"  # Thai … Burmese
)
_COMBINING_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0dff"
)
# A letter alone says little: its sign is a part of it, as in C++, C#, -p, %s.
_SIGNED_LETTER = (
    r"[A-Za-z](?<![\w+#][A-Za-z])(?:\+\+|#)(?![\w+#])|[%$-](?<![\w%$-][%$-])[A-Za-z](?!\w)"
)
# Each alternative begins with its first character, and the most frequent one is the first: quick.
_LETTER = rf"(?![{_UNSPACED}])[^\W_]"
_REST = rf"(?:[A-Za-z0-9]++|{_LETTER}|[{_COMBINING_MARKS}])*+"
_TOKEN = re.compile(
    rf"[A-Za-z0-9][A-Za-z0-9]++{_REST}|{_SIGNED_LETTER}|[{_UNSPACED}]|[A-Za-z0-9]{_REST}|{_LETTER}{_REST}"
)
_ASCII_TOKEN = re.compile(  # equivalent to `_TOKEN` for ASCII
    rf"[A-Za-z0-9][A-Za-z0-9]++|{_SIGNED_LETTER}|[A-Za-z0-9]"
)
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u0652\u0640]")
_TRAILING_BRACKETS = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_CAMEL_CASE_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNDERSCORES_AND_SPACES = re.compile(r"[_\s]+")
# Neither in capitals only nor an IRI: such are split one by one.
_PLAIN_IDENTIFIER = re.compile(r"[A-Z0-9_./#-]*[a-z][A-Za-z0-9_./#-]*")
_WORD_SEPARATORS = re.compile(r"[_./# -]+")
_IDENTIFIER_SEPARATORS = re.compile(r"[_.:/#-]+")
_SEGMENT_BREAKS = re.compile(r"__+|[./:]")
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
# They carry almost no information about which name it is.
STOP_WORDS = CONNECTORS | frozenset(
    "a an and or for in on at to by from with without his her its their our my your this that "
    "these those is are was were be not no as if but so than then into over under after before "
    "s t d ll re m o one two three first last new".split()
)
_MAX_TOKENS = 16  # of a name that are encoded for fuzzy matching


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text's tokens as columns: spans, folded keys, and whether each begins in upper case."""

    starts: list[int]
    ends: list[int]
    keys: list[str]
    upper: list[bool]
    digit: list[bool]
    unspaced: list[bool]

    def __len__(self) -> int:
        """Number of tokens."""
        return len(self.keys)

    def key(self, first: int, last: int) -> str:
        """The loose key of tokens `first` to `last` (exclusive)."""
        return " ".join(self.keys[first:last])


def tokenize(text: str) -> Tokens:
    """Split a text of any script into tokens that names are matched by."""
    pattern = _ASCII_TOKEN if text.isascii() else _TOKEN
    spans = [match.span() for match in pattern.finditer(text)]
    if not spans:
        return Tokens([], [], [], [], [], [])
    columns = zip(*[_describe_token(text[start:end]) for start, end in spans], strict=True)
    starts, ends = zip(*spans, strict=True)
    return Tokens(list(starts), list(ends), *map(list, columns))


@lru_cache(maxsize=65536)
def _describe_token(word: str) -> tuple[str, bool, bool, bool]:
    """Return the key of a token, and whether it begins in upper case, is a digit, is unspaced."""
    first = word[0]
    return (
        fold_token(word),
        first.isupper() or first.istitle(),
        first.isdigit(),
        not word.isascii() and bool(_IS_UNSPACED.match(word)),
    )


recall_tokens = lru_cache(maxsize=8)(tokenize)
"""The same, kept for the steps that read one passage; the result is shared."""


tokenize_question = lru_cache(maxsize=256)(tokenize)
"""The same, kept, since every step reads the question; the result is shared."""


def lowercase_keys(text: str) -> frozenset[str]:
    """Keys of the words that a text also writes in lower case: not names where a sentence begins.

    The same as from `tokenize`, without the columns of a whole document.
    """
    words = set((_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text))
    told = map(_describe_token, words)
    return frozenset([key for key, upper, _, unspaced in told if not (upper or unspaced)])


@lru_cache(maxsize=65536)
def fold_token(word: str) -> str:
    """A token without case and accents; -p and -P are different options."""
    if word.isascii():
        return word if word[0] in "-%$" else word.lower()
    if _IS_UNSPACED.match(word):
        return word
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", word)).casefold()


def loose_key(text: str) -> str:
    """The folded tokens of a text, in which those of names can be looked for."""
    return " ".join(
        [fold_token(w) for w in (_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text)]
    )


@lru_cache(maxsize=1 << 16)  # called for the hash, the forms and the codes of a name
def name_key(name: str) -> str:
    """The loose key of a name, without a leading English article."""
    keys = [fold_token(w) for w in (_ASCII_TOKEN if name.isascii() else _TOKEN).findall(name)]
    if len(keys) > 1 and keys[0] == "the":
        keys = keys[1:]
    return " ".join(keys) or name.strip()


@lru_cache(maxsize=1 << 16)
def encode_token(key: str) -> int:
    """Encode a folded token in 63 bits, so that similar tokens can be compared as integers.

    From the highest bit: stop word or not (1), first three letters (9 each), hash of the last two
    (10), length (6), and a hash of the whole token (19).
    """
    code = int(key in STOP_WORDS)
    for letter in key[:3].ljust(3, "\0"):
        code = code << 9 | ord(letter) & 511
    code = code << 10 | hash64(key[-2:]) & 1023
    code = code << 6 | min(len(key), 63)
    return code << 19 | hash64(key) & 0x7FFFF


def encode_name(name: str) -> list[int]:
    """Encode a name's tokens in order; of very long names only the first ones."""
    return [encode_token(key) for key in name_key(name).split()[:_MAX_TOKENS]]


def strip_disambiguation(title: str) -> str:
    """A title without its trailing disambiguation in brackets."""
    return _TRAILING_BRACKETS.sub("", title) or title


FORM, PART, TOKEN, HEAD = range(4)


@dataclass(frozen=True, slots=True)
class Form:
    """A short form of a name, and how likely it refers to that name.

    A `PART` is a beginning or end of the name, used only if nothing better matches; a `HEAD` is
    the part before a comma or "of": the full name may refer to the head, but not the reverse.
    """

    key: str
    weight: float
    kind: int = FORM


def short_forms(name: str) -> list[Form]:
    """The short forms of a name, best first, each key once."""
    keys = name_key(name).split()
    found: dict[str, Form] = {}
    for form in (*_shortened_forms(keys), *_head_forms(name, keys), *_partial_forms(keys)):
        if form.key not in found and form.key != " ".join(keys):
            found[form.key] = form
    return list(found.values())


def _shortened_forms(keys: list[str]) -> list[Form]:
    """The name without its honorific, and the first and last word of a long name."""
    found = []
    bare = keys[1:] if len(keys) > 1 and keys[0] in HONORIFICS else keys
    joined = any(key in CONNECTORS for key in bare)
    if bare is not keys:
        found.append(Form(" ".join(bare), 0.9))
    if len(bare) > 2 and not joined:
        found.append(Form(f"{bare[0]} {bare[-1]}", 0.7))
    return found


def _head_forms(name: str, keys: list[str]) -> list[Form]:
    """`Albert III` of `Albert III, Duke of Kent`, and `Bertha` of `Queen Bertha of Kent`."""
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


def _partial_forms(keys: list[str]) -> list[Form]:
    """Beginnings and ends of two or more words; longer ones have a higher weight."""
    found = []
    for size in range(min(len(keys) - 1, 8), 1, -1):
        weight = 0.4 + 0.5 * size / len(keys)
        for part in (keys[:size], keys[-size:]):
            if part[0] not in CONNECTORS and part[-1] not in CONNECTORS:
                found.append(Form(" ".join(part), weight, PART))
    return found


@lru_cache(maxsize=4096)
def relation_to_words(relation: str) -> str:
    """Split `starred_actors`, `starredActors` or `film.starred-actors` into words."""
    plain = local_name(relation)
    if not any(map(str.isspace, plain)):  # one identifier, not words already
        camel_case = any(map(str.islower, plain))
        plain = _IDENTIFIER_SEPARATORS.sub(
            " ", _CAMEL_CASE_BOUNDARY.sub(" ", plain) if camel_case else plain
        )
        if camel_case:
            plain = " ".join(w if w.isupper() and len(w) > 1 else w.lower() for w in plain.split())
    return _UNDERSCORES_AND_SPACES.sub(" ", plain).strip() or relation


def relations_to_words(relations: Sequence[str]) -> list[str]:
    """Split many relations into words, in lower case; plain identifiers all at once."""
    is_plain = _PLAIN_IDENTIFIER.fullmatch
    plain = {at: name for at, name in enumerate(relations) if is_plain(name)}
    text = _CAMEL_CASE_BOUNDARY.sub(" ", "\n".join(plain.values())).lower()
    lines = _WORD_SEPARATORS.sub(" ", text).split("\n")
    words = {at: line.strip() for at, line in zip(plain, lines, strict=False)}
    return [words.get(at) or relation_to_words(name).lower() for at, name in enumerate(relations)]


@lru_cache(maxsize=4096)
def read_relation(relation: str) -> str:
    """Return the last segment in words: "place of birth" of `people.person.place_of_birth`.

    The segments before it repeat the domain and the type of the head.
    """
    return relation_to_words(relation_segments(relation)[-1])


def relation_segments(relation: str) -> list[str]:
    """Split `/people/person/gender`, `people.person.gender` or `__people__person__gender`.

    `/people/person/spouse_s`, one or more of them, ends in `spouse`; `owner/operator` is whole.
    """
    if not _SEGMENT_BREAKS.search(relation):  # nor is it an IRI, which has a colon
        return [relation]
    plain = local_name(relation)
    if any(map(str.isspace, plain)):
        return [plain]
    parts = [part.strip("_") for part in _SEGMENT_BREAKS.split(plain)]
    parts = [part for part in parts if any(map(str.isalpha, part))]
    if len(parts) < 2 or (len(parts) == 2 and "/" in plain[1:] and plain[0] != "/"):
        return parts if len(parts) == 1 else [plain]
    return [*parts[:-1], parts[-1].removesuffix("_s")]


@lru_cache(maxsize=65_536)
def local_name(iri: str) -> str:
    """The decoded local name of an IRI; any other text unchanged."""
    if not _IRI.match(iri):
        return iri
    last = re.split(r"[/#]", iri.rstrip("/#"))[-1]
    if ":" in last and "/" not in iri:
        last = last.rsplit(":", 1)[-1]
    readable = _UNDERSCORES_AND_SPACES.sub(" ", clean(unquote(last))).strip()
    return readable or iri
