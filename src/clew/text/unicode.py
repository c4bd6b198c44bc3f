"""Unicode text primitives: normalisation, word splitting and hashing.

They are language-independent and keep every letter and digit of every script.
"""

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b

# Scripts without spaces between words (and Hangul, which attaches particles to the word): their
# runs are indexed as character bigrams, which needs no dictionary.
UNSPACED = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff"  # Thai … Khmer
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # Han
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul
)
UNSPACED_CHAR = re.compile(f"[{UNSPACED}]")
# Format characters are not part of a word: spellings that differ only in them match.
_INVISIBLE = re.compile("[\u00ad\u061c\u200c-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_SPACES = re.compile(r"\s+")
_POSSESSIVE = re.compile(r"['’＇]s(?!\w)")
_THOUSANDS_SEPARATOR = re.compile(r",(?<=\d,)(?=\d{3}(?!\d))")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_PLAIN_WORD = re.compile(r"[^\W_]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LIGATURE = re.compile("[\ufb00-\ufb06\ufb13-\ufb17]")  # letters that were set as one sign
_NEWLINE = re.compile("\r\n?|[\u2028\u2029\x85]")
_APOSTROPHES = dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc\u2032`\u00b4"), "'")
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-")
_EQUIVALENT_PUNCTUATION = _APOSTROPHES | _DASHES
# Not `!`, `?` and `#`: they belong to names (Yahoo!, C#).
_EDGE_PUNCTUATION = " '\"“”„‟«»‹›.,;:·•…*_~-、。，；：।۔،؛/|\\"
_BRACKETS = {")": "(", "]": "[", "}": "{", ">": "<", "」": "「", "』": "『", "》": "《", "】": "【"}
_CLOSERS = {opener: closer for closer, opener in _BRACKETS.items()}


def nfc(text: str) -> str:
    """Normalise to NFC."""
    return unicodedata.normalize("NFC", text)


def clean(text: str) -> str:
    """Make external text storable: NFC, `\\n` line ends, U+FFFD for NULs and lone surrogates.

    Ligatures become their letters, so that they are found, and shown, as words.
    """
    if not text.isascii():
        text = _LIGATURE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
        text = _SURROGATE.sub("\ufffd", unicodedata.normalize("NFC", text))
        text = _NEWLINE.sub("\n", text)
    elif "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\0", "\ufffd")


@lru_cache(maxsize=1 << 16)  # the same names recur in a corpus
def normalize_name(name: str) -> str:
    """The key shared by all spellings of a name; never empty for a visible name."""
    if name.isascii():  # fast path
        folded = " ".join(name.lower().replace("`", "'").split())
    else:
        folded = _SPACES.sub(
            " ", _fold(_INVISIBLE.sub("", name)).translate(_EQUIVALENT_PUNCTUATION)
        ).strip()
    bare = folded
    while (inner := _strip_brackets(bare.strip(_EDGE_PUNCTUATION))) != bare:
        bare = inner
    return bare or folded or name.strip()


def split_words(text: str) -> list[str]:
    """Split into folded words of any script; runs without spaces become character bigrams."""
    if text.isascii():
        return _ASCII_WORD.findall(_drop_possessives_and_separators(text.lower()))
    folded = _drop_possessives_and_separators(_fold(_INVISIBLE.sub("", text)))
    if not any(char > "\u02ff" and _needs_full_pattern(char) for char in set(folded)):
        return _PLAIN_WORD.findall(folded)
    found: list[str] = []
    for run, word in _full_word_pattern().findall(folded):
        if word:
            found.append(word)
        else:
            found += _character_bigrams(run)
    return found


def mask_unspaced(text: str) -> str:
    """Replace letters of scripts without spaces by a sign, so that words in others end there.

    "T-05とは" has the code T-05; places in the text stay the same.
    """
    return text if text.isascii() else UNSPACED_CHAR.sub("、", text)


def mark_text(text: str) -> str:
    """Return how the keys of what was made from one text begin."""
    return f"of text {digest(text)} "


def digest(*parts: str) -> str:
    """Hash the parts; the boundaries between them are part of the hash."""
    if len(parts) == 1:  # fast path for the most common case
        raw = parts[0].encode("utf-8", "surrogatepass")
        return blake2b(len(raw).to_bytes(8, "little") + raw, digest_size=16).hexdigest()
    pieces: list[bytes] = []
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        pieces += (len(raw).to_bytes(8, "little"), raw)
    return blake2b(b"".join(pieces), digest_size=16).hexdigest()


def hash64(token: str) -> int:
    """Hash a token to an unsigned 64-bit integer, stable across machines and runs."""
    raw = token.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "little")


def _fold(text: str) -> str:
    # Case folding and composition can undo each other (U+0345), hence several rounds.
    text = unicodedata.normalize("NFKC", text)
    for _ in range(4):
        folded = unicodedata.normalize("NFKC", text.casefold())
        if folded == text:
            break
        text = folded
    return text


def _drop_possessives_and_separators(folded: str) -> str:
    """Reduce `Lothair's` to `lothair` and `1,000` to `1000`."""
    if "s" in folded and ("'" in folded or "’" in folded):
        folded = _POSSESSIVE.sub("", folded)
    return _THOUSANDS_SEPARATOR.sub("", folded) if "," in folded else folded


def _strip_brackets(name: str) -> str:
    """Remove one pair of brackets around the whole name, or one unbalanced bracket."""
    if not name:
        return name
    first, last = name[0], name[-1]
    if last in _BRACKETS and name.count(last) > name.count(_BRACKETS[last]):
        return name[:-1]
    if first in _CLOSERS and name.count(first) > name.count(_CLOSERS[first]):
        return name[1:]
    if _CLOSERS.get(first) == last and name.count(first) == 1 == name.count(last):
        return name[1:-1]
    return name


def _character_bigrams(run: str) -> list[str]:
    letters = _grapheme_pattern().findall(run)
    if len(letters) == 1:
        return letters
    return [a + b for a, b in zip(letters, letters[1:], strict=False)]


@lru_cache(maxsize=1)
def _combining_mark_ranges() -> str:
    """All combining marks as ranges for a character class (`\\w` does not match them)."""
    spans: list[list[int]] = []
    for code in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)):
        if unicodedata.category(chr(code))[0] == "M":
            if spans and spans[-1][1] == code - 1:
                spans[-1][1] = code
            else:
                spans.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in spans)


@lru_cache(maxsize=4096)
def _needs_full_pattern(char: str) -> bool:
    """Whether a word with this character needs the slower full pattern."""
    return UNSPACED_CHAR.match(char) is not None or unicodedata.category(char)[0] == "M"


@lru_cache(maxsize=1)
def _full_word_pattern() -> re.Pattern[str]:
    # A mark belongs to the unspaced letter before it, or anywhere to any other word.
    marks = _combining_mark_ranges()
    bare = f"(?![{UNSPACED}])"
    return re.compile(f"((?:(?![{marks}])[{UNSPACED}][{marks}]*)+)|((?:{bare}[^\\W_]|[{marks}])+)")


@lru_cache(maxsize=1)
def _grapheme_pattern() -> re.Pattern[str]:
    return re.compile(f".[{_combining_mark_ranges()}]*", re.DOTALL)


def to_signed(number: int) -> int:
    """The signed 64-bit integer with the same bits, as SQLite stores it."""
    return number - (1 << 64) if number >= 1 << 63 else number
