"""Find name spans: capitalised runs, quotes, dates, numbers, terms of uncased scripts.

The word lists are mainly English; a missing word costs little precision.
"""

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass

from clew.text.dates import FOREIGN_DATE, MONTH_PATTERN, MONTHS
from clew.text.names import CONNECTORS, HONORIFICS, STOP_WORDS, Tokens
from clew.text.units import load_units
from clew.text.word_forms import function_words

# Words that begin sentences far more often than names.
SENTENCE_OPENERS = frozenset(
    """
    the a an this that these those he she it they we i you his her its their our my your who what
    when where why how in on at to by for from with into after before during since until while
    although though however as if and but or nor so because there here both either neither each
    every all some many most more few several other another such then thus also despite following
    according including unlike like along later earlier early late once upon per via one two is
    are was were do does did has have had will would can could which whose whom not no between
    among through under over about against currently originally initially eventually finally
    recently today directed written produced starring released based set shot filmed founded
    located known otherwise next meanwhile moreover furthermore therefore hence instead
    nevertheless everyone everybody everything anyone anybody anything someone somebody something
    nobody nothing
    """.split()
)
# Stripped from the front of a longer capitalised run ("In Paris", "Later Lindqvist").
_STRIPPED_OPENERS = frozenset(
    """
    in on at by from with after before during since until while although though however as if and
    but or so because when where for to under despite following according both then thus also
    later earlier currently originally initially eventually finally recently today directed
    written produced starring released unlike like among through between against via upon
    meanwhile moreover furthermore therefore hence instead nevertheless otherwise
    """.split()
)
# Never a name on their own, whatever their case.
COMMON_WORDS = SENTENCE_OPENERS | frozenset(
    """
    be been being am shall should may might must than of s t d ll re ve m o them us me him only
    same own too very just first last new name named born die died film song album book
    """.split()
)
# A document that begins with one of these does not name its subject there.
NON_SUBJECT_OPENERS = frozenset(
    """
    he she it they this these there in on at a an his her its their after when during as by for
    from
    """.split()
)
# Chinese and Japanese text is split into candidate names at these.
PARTICLES = frozenset(
    "的了在是和与與及或被把从從到由于於以为為这這那他她它们們之而也都就不有其将將对對等者所"
)  # and hiragana: endings and particles of Japanese
NAME, QUOTED, DATE, NUMBER, TERM, TITLE = "name", "quoted", "date", "number", "term", "title"
_GAP = re.compile(r"(?:\s|\n[ \t]{1,16}|\s?[-‐‑–]\s?|['’‘]\s?|\.\s?|\s?&\s?|/|\s?·\s?|\s['’])$")
_QUOTE = re.compile(
    r"[\"“«„]\s*([^\"“”»«„\n]{2,80}?)\s*[\"”»]|``\s*([^`'\n]{2,80}?)\s*''"
    r"|[《〈「『]([^》〉」』\n]{1,60})[》〉」』]"
)
_MONTH = rf"(?:{MONTH_PATTERN})\b\.?"
_YEAR = r"\d{3,4}(?:\s?(?:BC|AD|BCE|CE))?"
_MONTH_BEGINNINGS = "|".join(sorted({name[:2] for name in MONTHS}))
_DATE = re.compile(
    rf"(\b\d{{4}}-\d{{2}}-\d{{2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH}(?:,?\s+{_YEAR})?"
    rf"|\b{FOREIGN_DATE}"
    rf"|\b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+{_YEAR})?\b|\b{_MONTH},?\s+{_YEAR}\b"
    r"|\b(?:1\d{3}|20\d{2})s?\b(?![.,]\d)|\d{1,4}年(?:\d{1,2}月(?:\d{1,2}日)?)?)"
    # Words up to one that may be a month, or a digit, are passed at once.
    rf"|(?:[^\W\d]++\W*+|\W++)(?:(?!{_MONTH_BEGINNINGS})[^\W\d]++\W*+)*+",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")
_ROMAN = re.compile(r"[ivx]{2,}")
_LEAST_IN_PAIR = 3  # letters of a word of a name of two, in a script without case
_DASHES = frozenset("-‐‑–—")
# What may be written right behind a number: 250ms, 6GB, 45kg.
_SHORT_UNITS = [
    re.escape(form)
    for one in (*load_units().sizes, *load_units().symbols)
    for form in {one, one.upper()}
    if 1 < len(one) <= 4 and one != "in"
]
_NUMBER = re.compile(
    rf"(?<![\w.])(?<!\w-)(?:[$€£¥]|(?:{'|'.join(load_units().currency_codes)})\s?)?\d+(?:[.,]\d+)*"
    rf"(?:%|{'|'.join(sorted(_SHORT_UNITS, key=len, reverse=True))})?(?!\w)"
)
_TIME = re.compile(
    r"(?<![\w:.])(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?![\w:])"
    r"(?:\s?[ap]\.?m\b)?(?:\s?(?:[+-]\d{2}:?\d{2}|UTC|GMT)\b)?",
    re.IGNORECASE,
)
_OTHER_WORDS = STOP_WORDS | {"people", "second", "bar"}  # "in 1998 people moved"
_WEEKDAYS = frozenset(
    "mon monday tue tues tuesday wed wednesday thu thursday fri friday sat saturday sunday".split()
)


@dataclass(frozen=True, slots=True, order=True)
class NameSpan:
    """Tokens `first` to `last` (exclusive) form a name of this type."""

    first: int
    last: int
    type: str


def find_name_spans(text: str, tokens: Tokens, sentence_starts: set[int]) -> list[NameSpan]:
    """All name spans in the text, in order; a quote may contain or cross capitalised runs."""
    runs = _join_ranks(text, tokens, find_capitalised_runs(text, tokens, sentence_starts))
    found = {(a, b): NameSpan(a, b, NAME) for a, b in runs}
    for first, last in _find_quoted(text, tokens):
        found[first, last] = NameSpan(first, last, QUOTED)
    for first, last in find_uncased_terms(tokens):
        found.setdefault((first, last), NameSpan(first, last, TERM))
    literals = _find_literals(text, tokens)
    for one in literals:
        for a, b in [key for key, span in found.items() if span.type == NAME]:
            if one.first <= a and b <= one.last:
                del found[a, b]  # "EUR 1" of "EUR 1,340"
            elif a < one.first < b < one.last:
                del found[a, b]  # "Drink 2" of "Drink 2 litres"
                found[a, one.first] = NameSpan(a, one.first, NAME)
    found |= {(s.first, s.last): s for s in literals}
    return sorted(found.values())


def span_text(text: str, t: Tokens, first: int, last: int) -> str:
    """The text of tokens `first` to `last` (exclusive), with single plain spaces."""
    return " ".join(text[t.starts[first] : t.ends[last - 1]].split())


# -- capitalised runs


def find_capitalised_runs(text: str, t: Tokens, starts: set[int]) -> list[tuple[int, int]]:
    """Maximal runs of capitalised tokens, with connectors and short numbers inside."""
    found = []
    at, count = 0, len(t.keys)
    while at < count:
        if not t.upper[at]:
            at += 1
            continue
        last = _find_run_end(text, t, at, starts)
        first = at
        while last - first > 1 and t.keys[first] in _STRIPPED_OPENERS:
            first += 1
        end = _end_before_date(text, t, first, last)
        if not is_uninformative(t, first, end):
            found.append((first, end))
        at = max(last, at + 1)
    return found


def _end_before_date(text: str, t: Tokens, first: int, last: int) -> int:
    """End of a run without a date joined by a dash: "Ulm – 14 March"."""
    for at in range(first + 1, last):
        dashed = text[t.ends[at - 1] : t.starts[at]].strip() in _DASHES
        if dashed and any(t.keys[i] in MONTHS for i in range(at, min(at + 2, last))):
            return at
    return last


def is_uninformative(t: Tokens, first: int, last: int) -> bool:
    """Whether a run has only pronouns, months, weekdays, numbers and the like."""
    return all(
        t.digit[at] or any(t.keys[at] in words for words in (SENTENCE_OPENERS, MONTHS, _WEEKDAYS))
        for at in range(first, last)
    )


def _find_run_end(text: str, t: Tokens, first: int, starts: set[int]) -> int:
    last = at = first + 1
    count = len(t.keys)
    while at < count and at not in starts:
        gap = text[t.ends[at - 1] : t.starts[at]]
        if not _GAP.match(gap) or _breaks_name(gap, t, at):
            break
        if t.upper[at] or (t.digit[at] and len(t.keys[at]) < 4 and last == at):
            last = at + 1
        elif t.keys[at] not in CONNECTORS or at - last >= 2:
            break
        at += 1
    return last


def _breaks_name(gap: str, t: Tokens, at: int) -> bool:
    """Whether a name ends here: at a full stop after a long word, or at a possessive.

    A number of Roman letters is no initial: "XI. Changes", "Elisabeth II. She".
    """
    word = t.keys[at - 1]
    stop = gap.startswith(".") and gap != "." and (len(word) > 3 or _ROMAN.fullmatch(word))
    return bool(stop) or (t.keys[at] == "s" and gap[:1] in ("'", "’"))


def _join_ranks(text: str, t: Tokens, runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join a rank to the name before the comma: "Albert III, Duke of Bavaria"."""
    found: list[tuple[int, int]] = []
    for first, last in runs:
        if found and found[-1][1] <= first and _is_rank(text, t, found[-1][1], first, last):
            found.append((found[-1][0], last))
        else:
            found.append((first, last))
    return found


def _is_rank(text: str, t: Tokens, before: int, first: int, last: int) -> bool:
    """Whether a comma, optionally "the" or an ordinal, and a rank with "of" follow."""
    if text[t.ends[before - 1] : t.starts[before]].strip() != ",":
        return False
    between = t.keys[before:first]
    at = first + 1 if t.digit[first] else first
    ranked = at < last and t.keys[at] in HONORIFICS and "of" in t.keys[at + 1 : last]
    return ranked and all(key == "the" or key[0].isdigit() for key in between)


# -- quotes, dates, numbers


def _find_quoted(text: str, t: Tokens) -> list[tuple[int, int]]:
    found = []
    for match in _QUOTE.finditer(text):
        group = match.lastindex or 1
        first, last = _token_range(t, *match.span(group))
        if 0 < last - first <= 10 and not all(key in COMMON_WORDS for key in t.keys[first:last]):
            found.append((first, last))
    return found


def _find_literals(text: str, t: Tokens) -> list[NameSpan]:
    """Dates, times and numbers; a number includes its unit."""
    found: list[NameSpan] = []
    if _DIGIT.search(text) is None:
        return found
    taken: set[int] = set()
    dates = [match for match in _DATE.finditer(text) if match.lastindex]
    for match in (*dates, *(_TIME.finditer(text) if ":" in text else ())):
        first, last = _token_range(t, *match.span())
        if match[0].isdigit() and _is_measured(text, t, last):
            continue  # "1500 ms"
        if first < last and not taken & set(range(first, last)):
            found.append(NameSpan(first, last, DATE))
            taken.update(range(first, last))
    for match in _NUMBER.finditer(text):
        first, last = _token_range(t, *match.span())
        if first < last and not taken & set(range(first, last)):
            found.append(NameSpan(first, _find_unit_end(text, t, last), NUMBER))
    return found


def _find_unit_end(text: str, t: Tokens, last: int) -> int:
    """Return where the unit of a number ends: "310 litres per minute", "5 million dollars"."""
    units = load_units()
    size = last
    while last < len(t) and last < size + 2 and text[t.ends[last - 1] : t.starts[last]].isspace():
        word = text[t.starts[last] : t.ends[last]]
        is_scale = last == size or t.keys[last - 1] in units.scales
        if not is_scale or not (t.keys[last] in units.words or word in units.symbols):
            break
        last += 1
    if size < last < len(t) - 1 and t.keys[last] == "per" and t.keys[last + 1].isalpha():
        return last + 2
    return last


def _is_measured(text: str, t: Tokens, last: int) -> bool:
    """Whether a unit follows that is no other word, as a letter alone may be: "1998 a bridge"."""
    end = _find_unit_end(text, t, last)
    return end > last and len(t.keys[last]) > 1 and t.keys[last] not in _OTHER_WORDS


def _token_range(t: Tokens, start: int, end: int) -> tuple[int, int]:
    return bisect_left(t.starts, start), bisect_left(t.starts, end)


# -- scripts without case


def find_uncased_terms(t: Tokens) -> list[tuple[int, int]]:
    """Candidate names in uncased scripts: runs between particles, longer words."""
    found: list[tuple[int, int]] = []
    pairs: Counter[str] = Counter()
    if all(map(str.isascii, t.keys)):
        return found
    at, count = 0, len(t)
    while at < count:
        if t.keys[at].isascii() and not t.unspaced[at]:
            at += 1
        elif t.unspaced[at]:
            last = at
            while last < len(t) and t.unspaced[last] and not _has_gap(t, last, at):
                last += 1
            found += _split_at_particles(t, at, max(last, at + 1))
            at = max(last, at + 1)
        else:
            last = _find_words_end(t, at)
            pairs = _count_pairs(t) if last - at > 1 and not pairs else pairs
            found += _join_pairs(t, at, last, pairs)
            at = max(last, at + 1)
    return found


def _find_words_end(t: Tokens, first: int) -> int:
    """Return where words of a script with blanks but without case end: at a particle or a stop."""
    last = first
    while (
        last < len(t)
        and _is_uncased_word(t.keys[last])
        and (last == first or t.starts[last] - t.ends[last - 1] == 1)
    ):
        last += 1
    return last


def _is_uncased_word(key: str) -> bool:
    return _is_uncased(key) and len(key) >= _LEAST_IN_PAIR and key not in function_words("ar")


def _count_pairs(t: Tokens) -> Counter[str]:
    return Counter(t.key(at, at + 2) for at in range(len(t) - 1) if _is_uncased(t.keys[at]))


def _join_pairs(t: Tokens, first: int, last: int, pairs: Counter[str]) -> list[tuple[int, int]]:
    """Return the words, two as one name where they stand alone or recur together.

    Behind a stop the first word is more likely a verb.
    """
    found = []
    alone = last - first == 2 and first > 0 and t.starts[first] - t.ends[first - 1] == 1
    at = first
    while at < last:
        joined = at + 1 < last and (alone or pairs[t.key(at, at + 2)] > 1)
        if joined or len(t.keys[at]) > _LEAST_IN_PAIR:
            found.append((at, at + 2 if joined else at + 1))
        at += 2 if joined else 1
    return found


def _has_gap(t: Tokens, at: int, first: int) -> bool:
    return at > first and t.starts[at] != t.ends[at - 1]


def _split_at_particles(t: Tokens, first: int, last: int) -> list[tuple[int, int]]:
    found = []
    begin = first
    # Beside kana, which end words, Han characters are no particles.
    particles = frozenset[str]() if any(map(_is_hiragana, t.keys)) else PARTICLES
    for at in range(first, last + 1):
        if at == last or t.keys[at] in particles or _is_hiragana(t.keys[at]):
            # What follows a digit is its unit: 4日通车.
            counted = begin > 0 and t.digit[begin - 1] and t.ends[begin - 1] == t.starts[begin]
            if 2 <= at - begin <= 8 and not counted:
                found.append((begin, at))
            begin = at + 1
    return found


def _is_hiragana(key: str) -> bool:
    return "\u3041" <= key <= "\u309f"


def _is_uncased(word: str) -> bool:
    first = word[:1]  # "" for a mark that folds to nothing
    return first.isalpha() and first.upper() == first.lower() and not word.isascii()
