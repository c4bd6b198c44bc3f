"""Compare short answers by code: equal, earlier, later, larger; models are poor at this."""

import re
from collections.abc import Iterator, Mapping, Sequence

from clew.agents.core.plan import Join
from clew.retrieve.question import content_words
from clew.text.countries import find_countries
from clew.text.dates import DateParts, is_before, is_date, parse_date, years_between
from clew.text.language import is_chinese
from clew.text.quantities import parse_quantity
from clew.text.unicode import UNSPACED_CHAR, split_words

# Generic words that do not change which thing a name means.
_GENERIC_WORDS = frozenset("the a an of republic kingdom".split())
_PLACE_PREFIX = re.compile(r"(?:the )?(?:city|town|state|county|province) of ", re.IGNORECASE)
# Words before a name that make it another name: York and New York.
_DISTINGUISHING_WORDS = frozenset(
    "new north south east west northern southern eastern western central equatorial upper lower "
    "non anti".split()
)
_SEPARATORS = re.compile(r"[,;()（），；]")
# "Brackwater and lived in Teveren"; "Trinidad and Tobago" is one name.
_NEXT_CLAUSE = re.compile(r"(?<=\w),?\s+(?:and|but|where|who)\s+[a-z]+\s")
# Endings of places and their demonyms that no table has: Bavaria and Bavarian.
_PLACE_ENDINGS = ("", "a", "e", "o", "y", "s")
_DEMONYM_ENDINGS = ("n", "an", "ian", "ese", "ish")
_YEAR = "year"  # the word of what two dates share that need not be of one day
_STEM_LETTERS = 6  # letters that forms of a word share
_MOST_WORDS = 0.6  # share of the words for a thing that a page about it must have
_MIN_STEM_LETTERS = 5  # letters before such an ending
# Chinese country names that contain another country's: Indonesia's begins with India's.
_CONTAINING_COUNTRY_NAMES = re.compile(
    "印度尼西亚|赤道几内亚|几内亚比绍|巴布亚新几内亚|南苏丹|北爱尔兰|刚果民主共和国"
)


def answers_equal(one: str, other: str) -> bool:
    """Whether two short answers mean the same: equal words, same country, or one more specific."""
    a, b = split_words(one), split_words(other)
    if not a or not b:
        return False
    if set(a) == set(b):
        return True
    if is_date(one) and is_date(other):
        return _dates_agree(one, other)
    (countries, rest), (other_countries, other_rest) = find_countries(a), find_countries(b)
    if (
        countries
        and other_countries
        and not (_contains_name(one, rest) or _contains_name(other, other_rest))
    ):
        return bool(countries & other_countries)
    return (
        _is_more_specific(one, other)
        or _is_more_specific(other, one)
        or _is_place_and_demonym(a, b)
    )


def _cut_to_name(value: str) -> str:
    """Return the name that a value begins with, where a reader went on into the next clause."""
    return value[: found.start()] if (found := _NEXT_CLAUSE.search(value)) else value


def _dates_agree(one: str, other: str) -> bool:
    """Whether the parts that both dates give are equal: 1961 and May 1961."""
    pairs = zip(parse_date(one) or (), parse_date(other) or (), strict=True)
    return all(a == b or not (a and b) for a, b in pairs)


def _is_more_specific(less: str, more: str) -> bool:
    """Whether `more` says the same and adds a region after a comma, or a generic word."""
    more = _PLACE_PREFIX.sub("", more)
    less_words, more_words = split_words(less), split_words(more)
    if not set(less_words) <= set(more_words):
        return False
    if UNSPACED_CHAR.search(more):
        return _CONTAINING_COUNTRY_NAMES.findall(less) == _CONTAINING_COUNTRY_NAMES.findall(more)
    if less_words in _edge_parts(more):
        return True
    added = [word for word in more_words if word not in less_words]
    return not _contains_name(more, added) and not _DISTINGUISHING_WORDS & set(added)


def _edge_parts(text: str) -> Iterator[list[str]]:
    """Yield the words of adjacent comma-separated parts, from either end."""
    parts = [part for part in map(split_words, _SEPARATORS.split(text)) if part]
    for size in range(1, len(parts)):
        yield sum(parts[:size], [])
        yield sum(parts[-size:], [])


def _contains_name(text: str, some: Sequence[str]) -> bool:
    """Whether some of the given words are written as names or numbers in the text."""
    wanted = set(some) - _GENERIC_WORDS
    bare = (re.sub(r"^\W+|\W+$", "", raw) for raw in text.split())
    return any(
        raw[:1].isupper() or any(map(str.isdigit, raw))
        for raw in bare
        if wanted & set(split_words(raw))
    )


def _is_place_and_demonym(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether the last words are a place and its demonym, and those before are equal."""
    if list(a[:-1]) != list(b[:-1]):
        return False
    place, belongs = sorted((a[-1], b[-1]), key=lambda word: word.endswith(_DEMONYM_ENDINGS))
    return any(
        place == f"{stem}{end}"
        for ending in _DEMONYM_ENDINGS
        if belongs.endswith(ending)
        and len(stem := belongs.removesuffix(ending)) >= _MIN_STEM_LETTERS
        for end in _PLACE_ENDINGS
    )


def combine_answers(join: Join, answers: Mapping[int, str]) -> str:
    """Return the winning option, or yes/no for "same" and "both"; "" when undecided."""
    values = [[answers.get(place, "") for place in places] for places in join.question_numbers]
    if any(not value for row in values for value in row):
        return ""
    if join.how == "both":
        return _all_yes([row[0] for row in values], join.what)
    if join.how == "same":
        return _say_whether_same(join, values[0][0], values[1][0])
    if join.how in ("longer life", "shorter life"):
        spans = [_life_years(row) for row in values]
        return _pick_winner(join, spans, most=join.how == "longer life")
    if join.how in ("earlier", "later"):
        return _pick_by_date(join, [parse_date(row[0]) for row in values])
    amounts = [parse_quantity(row[0]) for row in values]
    if any(amount is None for amount in amounts):
        return ""
    kinds = {amount.dimension for amount in amounts if amount}
    if len(kinds) > 1:
        return ""
    return _pick_winner(join, [a.amount for a in amounts if a], most=join.how == "larger")


def _say_whether_same(join: Join, one: str, other: str) -> str:
    """Return yes or no; "" where years are to be the same and a value is no date."""
    one, other = _cut_to_name(one), _cut_to_name(other)
    if _YEAR in split_words(join.what):
        dates = [parse_date(one), parse_date(other)]
        if not all(dates):
            return ""  # where somebody was born says nothing of the year
        one, other = (str(date[0]) for date in dates if date)
    same = answers_equal(one, other)
    if is_chinese("".join(join.options)):
        return "是" if same else "否"
    return "yes" if same else "no"


def _all_yes(values: Sequence[str], what: str) -> str:
    """Return yes if what is said of each has most words of what each is asked to be, else no."""
    wanted = {word.rstrip("s")[:_STEM_LETTERS] for word in content_words(what)}
    if not wanted:
        return ""
    said = [{word.rstrip("s")[:_STEM_LETTERS] for word in content_words(value)} for value in values]
    replies = [split_words(value)[:1] for value in values]
    shares = [
        1.0 if reply == ["yes"] else 0.0 if reply == ["no"] else len(wanted & some) / len(wanted)
        for reply, some in zip(replies, said, strict=True)
    ]
    return "yes" if min(shares) >= _MOST_WORDS else "no"


def _life_years(row: Sequence[str]) -> float | None:
    born, died = parse_date(row[0]), parse_date(row[1])
    if born is None or died is None:
        return None
    # Finer than whole years: a month and a day count where they are known.
    fraction = (died[1] - born[1]) / 12 + (died[2] - born[2]) / 365 if born[1] and died[1] else 0.0
    return died[0] - born[0] + fraction if years_between(born, died) >= 0 else None


def _pick_winner(join: Join, amounts: Sequence[float | None], *, most: bool) -> str:
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(join.options) or len(set(known)) < len(known):
        return ""
    best = max(known) if most else min(known)
    return join.options[known.index(best)]


def _pick_by_date(join: Join, dates: Sequence[DateParts | None]) -> str:
    one, other = dates[0], dates[1]
    if one is None or other is None:
        return ""
    first = is_before(one, other)
    if first is None:
        return ""
    return join.options[0 if first == (join.how == "earlier") else 1]
