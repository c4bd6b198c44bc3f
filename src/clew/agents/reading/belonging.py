"""Whether what a question claims belongs together in the sentence that is to say it.

A sentence may have every word of a question and say something else: "Logs are kept for 30 days,
audit logs for 400" has no audit logs of 30 days, and "chose A over B" no choice of B. Names,
numbers and days are compared by where they stand: in which piece between commas and conjunctions,
behind which preposition, and beside which others of their kind.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from clew.agents.citing.clauses import find_verbs
from clew.agents.reading.spans import asked_words
from clew.agents.reading.stems import cut_ending
from clew.text.dates import MONTHS
from clew.text.names import STOP_WORDS

Fit = Literal["whole", "lacking", "apart", "another"]
"""How a sentence has what is claimed: together, without a value, apart, or with another value."""
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?![\w-])|[^\W_][\w’'.-]*[^\W_]|[^\W_]|[%€$£]")
_BREAK = re.compile(r"[,;:().](?=\s|\Z)|\s[–—-]\s|\b(?:and|but|or|while|whereas)\b", re.IGNORECASE)
_CLOCK = re.compile(r"(\d{1,2})(?:[:.](\d\d))?\s*(a\.?m\b|p\.?m\b)\.?", re.IGNORECASE)
_ONES = "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
_COUNTS = {
    **{word: at for at, word in enumerate(_ONES.split(), 2)},
    **{"sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19},
    **{word: at * 10 for at, word in enumerate("twenty thirty forty fifty sixty".split(), 2)},
    **{"seventy": 70, "eighty": 80, "ninety": 90},
}
_UNIT_OF_SIGN = {"€": "euro", "eur": "euro", "$": "dollar", "usd": "dollar", "£": "pound"}
_DAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_PREPOSITIONS = frozenset(
    "in on at by of to from for with without over than under until till after before since during "
    "about against between through per into onto as except unlike near behind".split()
)
_OPENS_NOTHING = _PREPOSITIONS | frozenset(
    "he she it they we you i who which that where when if there not".split()
)
_ARTICLES = frozenset("the a an".split())
# A number beside one of these is a bound, within which others are.
_BOUND = re.compile(
    r"\b(?:up to|at (?:least|most)|more|less|fewer|over|under|above|below|before|after|within|"
    r"until|till|from|between|max\w*|min\w*|about|around|nearly|almost|than|by|first|last|every|per|may|"
    r"can|could|must|should|or|to)\b|[–-]\s?\d",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"\b(?:more|longer|later|older|higher) than|\b(?:over|above|after|at least)\b", re.I
)
_LESS = re.compile(r"\b(?:less|fewer|shorter|earlier|younger|lower) than|\b(?:under|below)\b", re.I)
_UP_TO = re.compile(r"\b(?:up to|until|till|at most|within|(?:no|not) more than|max\w*)\b", re.I)
_FROM = re.compile(r"\b(?:at least|from|no less than|min\w*)\b", re.I)
_MAX_BACK = 4  # words between a preposition and what it governs


@dataclass(frozen=True, slots=True)
class _Word:
    """A word that says something, and where it stands."""

    stem: str
    kind: Literal["number", "month", "day", "name", "plain"]
    unit: str
    behind: str
    """The preposition before it."""
    opens: bool
    """Whether it names what its piece is about."""
    acts: bool
    """Whether it is a verb."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """What stands between commas or conjunctions."""

    words: tuple[_Word, ...]
    has_verb: bool


def compare_claim(claim: str, sentence: str, context: str) -> Fit:
    """Return how a sentence has what a claim says; `context` is what it may leave unsaid."""
    asked = [word for piece in _read_pieces(claim, claims=True) for word in piece.words]
    bare = frozenset(found[0].lower() for found in _TOKEN.finditer(claim))
    pieces = _read_pieces(sentence, bare=bare)
    said = [word for piece in pieces for word in piece.words]
    around = {word.stem for piece in _read_pieces(context) for word in piece.words}
    missing = [word for word in asked if not _has(said, word.stem, around)]
    values = [
        word
        for word in missing
        if word.kind != "plain" and not _is_within(claim, sentence, word, said)
    ]
    if values:
        is_bound = _BOUND.search(sentence) or _BOUND.search(claim)
        others = [one for word in values for one in said if _rivals(one, word, asked)]
        is_same = len(values) == 1 and all(word.kind != "plain" or word.acts for word in missing)
        if is_same and any(one.unit and one.kind == "number" for one in others) and not is_bound:
            return "another"
        if others or any(word.kind == "number" for word in values):
            return "lacking"
    if _stands_behind_other(asked, said):
        return "apart"
    return _compare_pieces(asked, pieces)


def _has(said: Sequence[_Word], stem: str, around: set[str]) -> bool:
    return stem in around or any(word.stem == stem for word in said)


def _is_within(claim: str, sentence: str, asked: _Word, said: Sequence[_Word]) -> bool:
    """Whether a number that a sentence has not is within what it says: 3 of "up to 5"."""
    amounts = [_to_amount(o.stem) for o in said if o.kind == "number" and o.unit == asked.unit]
    if asked.kind != "number" or not amounts:
        return False
    own = _to_amount(asked.stem)
    if _MORE.search(claim):
        return min(amounts) > own
    if _LESS.search(claim):
        return max(amounts) < own
    if _UP_TO.search(sentence):
        return own <= min(amounts)
    return bool(_FROM.search(sentence)) and own >= max(amounts)


def _to_amount(number: str) -> float:
    whole, _, rest = number.partition(":")
    digits = re.match(r"\d+(?:\.\d+)?", whole)
    return float(digits[0] if digits else 0) + (int(rest[:2]) / 60 if rest[:2].isdigit() else 0)


def _rivals(one: _Word, asked: _Word, claim: Sequence[_Word]) -> bool:
    """Whether a word is another of the kind that is asked about, and not asked about itself."""
    if one.kind != asked.kind or one.kind == "plain" or one.stem == asked.stem:
        return False
    if any(one.stem == word.stem for word in claim):
        return False
    return one.kind != "number" or one.unit == asked.unit


def _stands_behind_other(asked: Sequence[_Word], said: Sequence[_Word]) -> bool:
    """Whether a value stands behind another preposition, and another value behind the asked one.

    "Fell from 3 to 2" is no fall to 3, and "prefers oak to glass" no preference of glass.
    """
    heads = {word.stem for word in asked}
    for word in asked:
        own = [one for one in said if one.stem == word.stem]
        if not own or any(one.behind in ("", "by", word.behind) for one in own):
            continue
        # What no preposition governs must stand before: "A over B".
        known = said if word.behind else said[: said.index(own[0])]
        rivals = [one for one in known if one.behind == word.behind]
        if word.kind != "plain":
            if any(_rivals(one, word, asked) for one in rivals):
                return True
        elif any(
            one.stem not in heads and one.unit and one.unit == own[0].unit and one.unit in heads
            for one in rivals
        ):
            return True
    return False


def _compare_pieces(asked: Sequence[_Word], pieces: Sequence[_Piece]) -> Fit:
    """Compare the piece that has most of a claim with those that have the rest of it."""
    stems = {word.stem for word in asked}
    values = {word.stem for word in asked if word.kind != "plain"}
    said = [{one.stem for one in piece.words if not one.acts} & stems for piece in pieces]
    # "… 65 euros in Norway and 50 in Poland": the piece with the values is the one that says it.
    counts = [(values <= own, len(own)) for own in said]
    if not any(said):
        return "whole"
    at = counts.index(max(counts))
    best = pieces[at]
    here = {one.stem for one in best.words}
    for number, piece in enumerate(pieces):
        # "The library on Thursdays" has left out what the piece before says of the museum.
        can_lend = number < at and not best.has_verb
        own = {one.stem for one in piece.words if not can_lend or one.opens or one.kind != "plain"}
        rest = [word for word in asked if word.stem in own - here]
        left = [word for word in asked if word.stem in here - {one.stem for one in piece.words}]
        lends = can_lend and len(values) > 1  # of what, and how much: both in the piece itself
        if (
            rest
            and (fit := _compare_two(asked, best, piece, rest, () if lends else left)) != "whole"
        ):
            return fit
    return "whole"


def _compare_two(
    asked: Sequence[_Word],
    best: _Piece,
    piece: _Piece,
    rest: Sequence[_Word],
    left: Sequence[_Word],
) -> Fit:
    """Compare the piece with most of a claim with one that has the `rest` and lacks what is `left`.

    They are apart if either has another value of the kind that it lacks, or is about another thing.
    """
    if any(
        one.kind == "number" and _rivals(one, word, asked) for word in left for one in piece.words
    ):
        return "another"
    if any(_rivals(one, word, asked) for word in rest for one in best.words):
        return "apart"
    if any(_rivals(one, word, asked) for word in left for one in piece.words):
        return "apart"
    stems, wanted = {word.stem for word in asked}, {word.stem for word in rest}
    named = any(one.opens and one.stem in wanted for one in piece.words)
    about = best if named else piece
    return "apart" if any(one.opens and one.stem not in stems for one in about.words) else "whole"


@lru_cache(maxsize=512)
def _read_pieces(
    text: str, *, claims: bool = False, bare: frozenset[str] = frozenset()
) -> tuple[_Piece, ...]:
    """Read the words of each piece; one that names nothing first is about what the last one is.

    `bare` are the words of a claim: what has an ending there that they lack is a verb ("arrives").
    """
    text = _CLOCK.sub(_write_clock, text.strip())
    found: list[_Piece] = []
    opening: tuple[_Word, ...] = ()
    for start, end in _cut(text, claims=claims):
        if start and text[:start].rstrip()[-1] in ";.":
            opening = ()
        verbs = _find_verbs(text[start:end], bare)
        words = tuple(_read_words(text[start:end], verbs, first=start == 0 and not claims))
        if own := tuple(word for word in words if word.opens):
            opening = own
        else:
            words = (*opening, *words)
        if words:
            found.append(_Piece(words, bool(verbs)))
    return tuple(found)


def _cut(text: str, *, claims: bool) -> Iterator[tuple[int, int]]:
    """Yield the pieces between commas and conjunctions; a claim is one."""
    start = 0
    for found in () if claims else _BREAK.finditer(text):
        yield start, found.start()
        start = found.end()
    yield start, len(text)


def _find_verbs(piece: str, bare: frozenset[str]) -> set[str]:
    words = {found[0].lower() for found in _TOKEN.finditer(piece)}
    ending = {word for word in words if word[-1] == "s" and {word[:-1], word[:-2]} & bare}
    return {*find_verbs(piece), *ending}


def _read_words(piece: str, verbs: set[str], *, first: bool) -> Iterator[_Word]:
    tokens = [found[0] for found in _TOKEN.finditer(piece)]
    lowered = [token.lower() for token in tokens]
    telling = set(asked_words(piece.lower()))
    end = _find_opening(lowered, telling, verbs)
    for at, token in enumerate(tokens):
        kind = _find_kind(tokens, at, first=first)
        said = token.lower() in telling or any(
            part in telling for part in re.split(r"\W", lowered[at])
        )
        if kind == "plain" and not said:
            continue
        stem = _write_number(lowered[at]) if kind == "number" else _stem(lowered[at])
        behind = _find_governor(lowered, at, verbs)
        acts = lowered[at] in verbs
        yield _Word(stem, kind, _find_unit(lowered, at), behind, at < end, acts)


def _find_opening(lowered: Sequence[str], telling: set[str], verbs: set[str]) -> int:
    """Return how many words name what a piece is about: those before its verb, or preposition."""
    if not lowered or lowered[0] in _OPENS_NOTHING:
        return 0
    at = next((at for at, word in enumerate(lowered) if word in verbs), -1)
    if at >= 0:
        return at
    at = next((at for at, word in enumerate(lowered) if word in _PREPOSITIONS), -1)
    if at >= 0:
        return at
    # "The car petrol" is about the car, "chairs" is one more of what was said before.
    count = sum(word in telling for word in lowered)
    return 2 if count > 1 and lowered[0] in _ARTICLES else 1 if count > 2 else 0


def _find_kind(
    tokens: Sequence[str], at: int, *, first: bool
) -> Literal["number", "month", "day", "name", "plain"]:
    token = tokens[at]
    low = token.lower()
    if token[0].isdigit() and not re.search(r"[^\W\d]", token) or _is_counted(low):
        return "number"
    if low in MONTHS and token[0].isupper():
        return "month"
    if low in _DAYS or low.removesuffix("s") in _DAYS:
        return "day"
    coded = any(char.isdigit() for char in token) or any(char.isupper() for char in token[1:])
    opens = first and at == 0
    followed = at + 1 < len(tokens) and tokens[at + 1][0].isupper() and low not in STOP_WORDS
    if coded or (token[0].isupper() and (not opens or followed)):
        return "name"
    return "plain"


def _stem(word: str) -> str:
    short = len(word) == 4 and word.endswith("s") and not word.endswith("ss")  # "runs"
    return cut_ending(word[:-1] if short else word)


def _is_counted(word: str) -> bool:
    return all(part in _COUNTS or part == "one" for part in word.split("-")) and word != "one"


def _write_number(word: str) -> str:
    if word[0].isdigit():
        plain = re.sub(r",(?=\d{3}\b)", "", word)
        return re.sub(r"[.:]0+\Z", "", plain)
    return str(sum(_COUNTS.get(part, 1) for part in word.split("-")))


def _write_clock(found: re.Match[str]) -> str:
    hour = int(found[1]) % 12 + (12 if found[3][0] in "pP" else 0)
    return f"{hour}:{found[2] or '00'}"


def _find_unit(lowered: Sequence[str], at: int) -> str:
    """Return the word that a value or a modifier belongs to: the next one, or a sign before it."""
    before = lowered[at - 1] if at else ""
    if before in _UNIT_OF_SIGN:
        return _UNIT_OF_SIGN[before]
    after = lowered[at + 1] if at + 1 < len(lowered) else ""
    if after in MONTHS:
        return "date"
    after = _UNIT_OF_SIGN.get(after, after)
    return "" if after in _PREPOSITIONS or after in STOP_WORDS else _stem(after)


def _find_governor(lowered: Sequence[str], at: int, verbs: set[str]) -> str:
    """Return the preposition before a word, unless a verb stands between."""
    for back in range(at - 1, max(-1, at - 1 - _MAX_BACK), -1):
        if lowered[back] in verbs:
            return ""
        if lowered[back] in _PREPOSITIONS:
            pair = lowered[back - 1] if back and lowered[back] in ("of", "than", "from") else ""
            return f"{pair} of" if pair in ("instead", "ahead") else lowered[back]
    return ""
