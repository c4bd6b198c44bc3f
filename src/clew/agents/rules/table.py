"""The declarative table of one language: what questions compare, ask for, and want quoted."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from clew.agents.core.plan import JoinKind
from clew.text.unicode import UNSPACED_CHAR
from clew.text.word_forms import question_language

_LANGUAGES = ("en", "zh", "de", "fr", "es", "ru", "ar", "ja")
ASKS_MEANING = re.compile(
    r"\b(?:means?|meant|meaning|definition|defined?|describe|explain)\b", re.IGNORECASE
)
"""English words that ask for a meaning."""
_PARTICLES = re.compile(
    "请问|请?告诉我|我想知道|麻烦|[的了是我你要在有和与及吗呢们]"
)  # of Chinese, which say nothing alone
_NEVER = "(?!)"  # matches nowhere
_ASSERTION = "conditions hedges commits denials possible doubtful due future".split()
_BOUNDS = "least most least_behind most_behind later earlier strict denied".split()
_SHARES = ("all", "part")
_OPENING_WORDS = 4  # words behind a question word in which it says what it asks for


@dataclass(frozen=True, slots=True)
class OperatorRule:
    """How the values of two things are compared, the words for it, and how a value is asked."""

    how: JoinKind
    words: re.Pattern[str]
    ask: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MeasuredQuantity:
    """What numbers measure, such as width, and the words that ask for it or say it."""

    name: str
    base: str
    """The word that asks for it behind "how"."""
    how: re.Pattern[str]
    """What stands behind "how", or behind the number."""
    nouns: re.Pattern[str]
    """What stands before the number, or behind "in"."""
    compared: re.Pattern[str]
    """What stands behind a number that is only a difference: "5 m wider"."""
    units: frozenset[str]
    """The dimensions of such numbers."""
    named: bool = False
    """Whether a number is this only where a word says so."""
    open: bool = False
    """Whether numbers of other dimensions may tell it as well."""


@dataclass(frozen=True, slots=True)
class DirectedRelation:
    """A relation of two sides: nouns for who is on which, and verbs of what they do."""

    name: str
    first: frozenset[str]
    second: frozenset[str]
    does: frozenset[str]
    """Verbs whose subject is the first side."""
    undergoes: frozenset[str]
    """Verbs whose subject is the second side."""
    under: re.Pattern[str]
    """Prepositions before the first side, behind a verb of the second."""
    is_direct: bool
    """Whether the verbs of the second side have the first as object: "A precedes B"."""

    def side_of(self, word: str) -> Literal["first", "second", ""]:
        """Return the side that a noun names."""
        for one in (word, word.removesuffix("s")):
            if one in self.first:
                return "first"
            if one in self.second:
                return "second"
        return ""


@dataclass(frozen=True)
class RuleTable:
    """One language's table, its words compiled to patterns."""

    operators: tuple[OperatorRule, ...]
    connectors: re.Pattern[str]
    auxiliaries: re.Pattern[str]
    events: tuple[tuple[str, re.Pattern[str]], ...]
    """Each event that has a date, with its words."""
    event_questions: Mapping[str, str]
    years: re.Pattern[str]
    """Words that ask whether two dates are of one year."""
    ages: re.Pattern[str]
    """Words that compare how old two things are."""
    persons: re.Pattern[str]
    """Words for persons."""
    sizes: tuple[tuple[str, re.Pattern[str]], ...]
    shared: tuple[tuple[str, re.Pattern[str]], ...]
    asks: tuple[tuple[str, re.Pattern[str]], ...]
    """Each kind of answer (date, number, person, place), with the words that ask for it."""
    measures: tuple[tuple[str, re.Pattern[str]], ...]
    """Each thing that numbers measure, with the words that ask for it."""
    combined: re.Pattern[str]
    """Words that ask for the total of several things."""
    difference: re.Pattern[str]
    """What asks by how much two things differ."""
    than: re.Pattern[str]
    """What stands before the thing that another one exceeds."""
    lifespan: re.Pattern[str]
    """What asks how old somebody became."""
    counted: re.Pattern[str]
    """What asks how many there are of a `noun`."""
    period: re.Pattern[str]
    """What asks how long something lasted."""
    change: re.Pattern[str]
    """What asks by how much something grew or fell."""
    measured: str
    """How a measure of `{x}` is asked, with `{how}` for the word."""
    quantities: tuple[MeasuredQuantity, ...]
    """What numbers measure."""
    degree: re.Pattern[str]
    """What stands before the word for what is measured: "how"."""
    sums: tuple[tuple[str, re.Pattern[str]], ...]
    """Words by which a number is a total, or a difference, of others."""
    columns: tuple[tuple[str, re.Pattern[str]], ...]
    """Concepts of a table's columns, with the words that name them or ask for them."""
    links: re.Pattern[str]
    """Verbs that only tie an option to what it is for: "sets", "controls"."""
    blocks: tuple[tuple[str, re.Pattern[str]], ...]
    """Each kind of block that is quoted whole (steps, list, definition), with its openings."""
    several: re.Pattern[str]
    """Openings of questions that want all of several things."""
    question_words: re.Pattern[str]
    fillers: re.Pattern[str]
    """Words of "is it true that", which only ask whether the rest is so."""
    unique: re.Pattern[str]
    """Relations of which a thing has one value."""
    times: tuple[tuple[str, re.Pattern[str]], ...]
    """Each preposition that restricts to a time, with the words that say the same."""
    ordinals: frozenset[str]
    owners: frozenset[str]
    """Words before an ordinal that counts things."""
    countries: re.Pattern[str]
    """Words for a country."""
    kin: tuple[tuple[str, re.Pattern[str]], ...]
    """The two sides of a kinship, with their words."""
    roles: re.Pattern[str]
    restricted: re.Pattern[str]
    """The noun at the end of a question that restricts it."""
    defined: str
    """A pattern of what a sentence says that a thing is, behind its name."""
    passive: re.Pattern[str]
    """Questions for steps that name nobody who takes them."""
    composed: Mapping[str, str]
    """Relations that stand for two steps."""
    directed: tuple[DirectedRelation, ...]
    """Relations with a direction, by the words for their two sides."""
    assertion: Mapping[str, re.Pattern[str]]
    """Kinds of words that keep a clause from being said to be so, and those that take it back."""
    bounds: Mapping[str, re.Pattern[str]]
    """Words for a bound: of a number before or behind it, and of a time."""
    quantifiers: Mapping[str, re.Pattern[str]]
    """Words for all of some things, and for a part of them."""
    yes: str
    no: str

    def write_out(self, question: str) -> str:
        """Return the question with each relation of two steps written as its steps."""
        for word, steps in self.composed.items():
            mine = rf"(?P<of>['’]s?\s+){word}\b"
            question = re.sub(mine, rf"\g<of>{steps}", question, flags=re.IGNORECASE)
            first, _, second = steps.partition("'s ")
            of = f"{second} of the {first} of"
            question = re.sub(rf"\b{word}\s+of\b", of, question, flags=re.IGNORECASE)
        return question

    def find_answer_kind(self, question: str) -> str:
        """Return date, number, person or place if the question asks for one, else ""."""
        found = [
            (match.start(), kind)
            for kind, words in self.asks
            for match in words.finditer(question)
            if self._asks(question, match)
        ]
        return min(found)[1] if found else ""

    def _asks(self, question: str, match: re.Match[str]) -> bool:
        """Whether words ask for what the whole question asks for.

        "Who" and "where" alone do so at its beginning, elsewhere they open a clause; a noun like
        "birthplace" does so soon behind the question word.
        """
        asking = self.question_words.search(question)
        if asking is None or match.start() < asking.start():
            return True
        before = len(question[: match.start()].split())
        if self.question_words.fullmatch(match[0]):
            first = asking.start() == match.start()
            return first and (before <= 1 or not self._asks_behind(question, match))
        named = self.question_words.match(match[0]) is None
        between = len(question[asking.end() : match.start()].split())
        return not named or between < _OPENING_WORDS

    def _asks_behind(self, question: str, match: re.Match[str]) -> bool:
        """Whether "how many" or "which city" follows."""
        later = (words.search(question, match.end()) for _, words in self.asks)
        return any(
            one is not None
            and self.question_words.match(one[0])
            and not self.question_words.fullmatch(one[0])
            for one in later
        )

    def find_asked_measure(self, question: str) -> str:
        """Return what a number asked for measures (money, length, count), "" if nothing tells."""
        return next((kind for kind, words in self.measures if words.search(question)), "")


@cache
def load_table(language: str) -> RuleTable:
    """Read the table of a language that is part of the package."""
    text = files("clew.agents.rules").joinpath(f"{language}.toml").read_text(encoding="utf-8")
    return _build_table(tomllib.loads(text), spaced=language not in ("zh", "ja"))


def table_for(question: str) -> RuleTable:
    """Return the table for a question's language; that of English where it has none."""
    language = question_language(question)
    return load_table(language if language in _LANGUAGES else "en")


def cut_asking_words(question: str) -> str:
    """Return a question in a script without spaces with a space for each word that only asks.

    There words are pairs of characters, and those across such a word would be said nowhere.
    """
    if not UNSPACED_CHAR.search(question):
        return question
    table = table_for(question)
    for words in (*(words for _, words in table.blocks), table.question_words):
        question = words.sub(" ", question)
    return _PARTICLES.sub(" ", question)


def drop_asking_words(question: str) -> str:
    """Return a question without what says that it asks: "how long", "mean"."""
    for _, words in table_for(question).asks:
        question = words.sub(" ", question)
    return ASKS_MEANING.sub(" ", question)


def _build_table(raw: Mapping[str, Any], *, spaced: bool) -> RuleTable:
    def words(some: Sequence[str]) -> re.Pattern[str]:
        return _compile_words(some, spaced=spaced)

    def named(part: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
        return tuple((name, words(some)) for name, some in raw.get(part, {}).items())

    patterns = raw.get("patterns", {})
    return RuleTable(
        operators=tuple(
            OperatorRule(one["how"], words(one["words"]), tuple(one["ask"]))
            for one in raw["operators"] or _compare_quantities(raw)
        ),
        connectors=words(raw["connectors"]),
        auxiliaries=words(raw["auxiliaries"]),
        events=named("events"),
        event_questions=raw.get("event_questions", {}),
        ages=words(raw.get("ages", ())),
        years=words(raw.get("years", ())),
        persons=words(raw.get("persons", ())),
        sizes=named("sizes"),
        shared=named("shared"),
        asks=named("asks"),
        measures=named("measures"),
        combined=words(raw.get("combined", ())),
        difference=re.compile(patterns.get("difference", _NEVER), re.IGNORECASE),
        than=re.compile(patterns.get("than", _NEVER), re.IGNORECASE),
        **{
            name: re.compile(patterns.get(name, _NEVER), re.IGNORECASE)
            for name in ("lifespan", "counted", "period", "change")
        },
        measured=patterns.get("measured", ""),
        quantities=_build_quantities(raw, words),
        degree=re.compile(patterns.get("degree", _NEVER), re.IGNORECASE),
        sums=named("sums"),
        columns=named("columns"),
        links=words(raw.get("links", ())),
        blocks=named("blocks"),
        several=words(raw.get("several", ())),
        question_words=words(raw["question_words"]),
        fillers=words(raw.get("fillers", ())),
        unique=words(raw.get("unique", ())),
        times=named("times"),
        ordinals=frozenset(raw.get("ordinals", ())),
        owners=frozenset(raw.get("owners", ())),
        countries=words(raw.get("countries", ())),
        kin=named("kin"),
        roles=words([form for role in raw["roles"] for form in (role, f"{role}s")]),
        restricted=re.compile(patterns.get("restricted", _NEVER)),
        defined=patterns.get("defined", _NEVER),
        passive=re.compile(patterns.get("passive", _NEVER)),
        composed=raw.get("composed", {}),
        directed=_build_directed(raw, words),
        assertion={kind: words(raw.get("assertion", {}).get(kind, ())) for kind in _ASSERTION},
        bounds={kind: words(raw.get("bounds", {}).get(kind, ())) for kind in _BOUNDS},
        quantifiers={kind: words(raw.get("quantifiers", {}).get(kind, ())) for kind in _SHARES},
        yes=raw["yes"],
        no=raw["no"],
    )


def _build_directed(
    raw: Mapping[str, Any], words: Callable[[Sequence[str]], re.Pattern[str]]
) -> tuple[DirectedRelation, ...]:
    kin = raw.get("kin")
    own = {"kin": {"first": kin["parent"], "second": kin["child"]}} if kin else {}
    return tuple(
        DirectedRelation(
            name,
            frozenset(one.get("first", ())),
            frozenset(one.get("second", ())),
            frozenset(one.get("does", ())),
            frozenset(one.get("undergoes", ())),
            words(one.get("under", ())),
            not one.get("under"),
        )
        for name, one in {**own, **raw.get("directed", {})}.items()
    )


def _build_quantities(
    raw: Mapping[str, Any], words: Callable[[Sequence[str]], re.Pattern[str]]
) -> tuple[MeasuredQuantity, ...]:
    return tuple(
        MeasuredQuantity(
            name,
            next(iter(one["how"]), ""),
            words(one["how"]),
            words(one["nouns"]),
            words(one.get("compared", ())),
            frozenset(one["units"]),
            named=one.get("named", False),
            open=one.get("open", False),
        )
        for name, one in raw.get("quantities", {}).items()
    )


def _compare_quantities(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rules by which things are compared in what numbers measure, in a language that
    has no others.
    """
    asked = raw.get("patterns", {}).get("measured", "")
    less = frozenset(raw.get("less", ()))
    found = []
    for one in raw.get("quantities", {}).values() if asked else ():
        ask = [asked.replace("{how}", one["how"][0])] if one["how"] else []
        compared = one.get("compared", ())
        for how, words in (
            ("larger", [word for word in compared if word not in less]),
            ("smaller", [word for word in compared if word in less]),
        ):
            if words and ask:
                found.append({"how": how, "words": words, "ask": ask})
    return found


def _compile_words(some: Sequence[str], *, spaced: bool) -> re.Pattern[str]:
    """Match any of the words, the longest first; whole words where the script has spaces."""
    longest_first = sorted(some, key=lambda word: -len(word))
    if not some:
        return re.compile(_NEVER)
    found = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in longest_first)
    return re.compile(rf"(?<!\w)(?:{found})(?!\w)" if spaced else f"(?:{found})", re.IGNORECASE)
