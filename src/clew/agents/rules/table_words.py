"""The words of a question and of cells, and the operators that a language's table lists."""

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from os.path import commonprefix

# A date, a number that is no part of a word, C# and C++, or a run of letters and digits.
_TOKEN = re.compile(
    r"(?<![^\W_])[A-Za-z](?:\+\+|#)(?![^\W_])|"
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}|[+-]?\d[\d,]*(?:\.\d+)?(?![^\W_])|[^\W_]+(?:['’][^\W_]+)*"
)
_DASHES = ("-", "–", "—")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_MIN_PREFIX = 4  # letters that two forms of a word share: weigh and weight
_MIN_STEM = 6  # letters, where both have an ending of their own: generated and generation
_MAX_ENDING = 3
_MIN_DEED = 3  # letters of a verb before -er of who does it
_MIN_ADJECTIVE = 3  # letters before -er and -est


@dataclass(frozen=True)
class Word:
    """A word of a question: as it is written, folded, and without an English plural's ending."""

    text: str
    fold: str
    stem: str
    after_dash: bool = field(default=False, compare=False)
    """Whether a dash joins it to the word before: "March–May"."""


def split_question(text: str) -> list[Word]:
    """Return the words of a question in order."""
    found: list[Word] = []
    end = 0
    for one in _TOKEN.finditer(text):
        fold = fold_word(one[0])
        between = text[end : one.start()] + one[0][: one[0].startswith("-")]
        is_dashed = bool(found) and between.strip() in _DASHES and bool(between.strip())
        found.append(Word(one[0], fold, strip_plural(fold), is_dashed))
        end = one.end()
    return found


def fold_word(word: str) -> str:
    """Return a word as it is compared: no case, no possessive, dates with hyphens."""
    fold = word.casefold().replace("’", "'")
    fold = fold.removesuffix("'s")
    if fold[:1].isdigit():
        fold = fold.rstrip(",")  # of the sentence: "in 2024, …"
        decimal = "" if _GROUPED.fullmatch(fold) or fold.count(",") > 1 else "."
        return fold.replace("/", "-") if "/" in fold else fold.replace(",", decimal)
    return _strip_article(fold.lstrip("+"))


def _strip_article(word: str) -> str:
    """Return an Arabic word without its article."""
    return word[2:] if word.startswith("ال") and len(word) > _MIN_PREFIX else word


def fold_text(text: object) -> str:
    """Return a cell as it is compared with words of a question."""
    return " ".join(fold_word(found) for found in _TOKEN.findall(str(text)))


def strip_plural(word: str) -> str:
    """Return a word without the ending of an English plural."""
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def strip_marks(word: str) -> str:
    """Return a word without accents and article: "Städte" and "Stadt" begin alike."""
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFD", _strip_article(word))
    return "".join(char for char in parts if not unicodedata.combining(char))


def is_same_word(one: str, other: str) -> bool:
    """Whether two words are forms of one: equal without endings, or one begins the other."""
    a, b = strip_plural(strip_marks(one)), strip_plural(strip_marks(other))
    if a == b:
        return True
    if not (a.isalpha() and b.isalpha()):
        return False
    shared = len(commonprefix([a, b]))
    if _is_doer(a, b) or _is_doer(b, a):
        return True
    least = _MIN_PREFIX if shared == min(len(a), len(b)) else _MIN_STEM
    return shared >= least and max(len(a), len(b)) - shared <= _MAX_ENDING


def _is_doer(noun: str, verb: str) -> bool:
    """Whether a noun names who does what a verb says: "owner" and "own", "baker" and "baked"."""
    stem = noun.removesuffix("er") if noun.endswith("er") else noun.removesuffix("or")
    if stem == noun or len(stem) < _MIN_DEED:
        return False
    return verb in {f"{stem}{ending}" for ending in ("", "e", "ed", "ing")}


@dataclass(frozen=True)
class Operators:
    """The operator words of one language: by kind, phrases as words with what they mean."""

    phrases: dict[str, dict[tuple[str, ...], str]]
    fillers: frozenset[str]
    times: frozenset[str]
    """Words of columns that hold times."""
    auxiliaries: frozenset[str]
    """Verbs and prepositions that end a name before them."""
    low: frozenset[str]
    """Adjectives whose superlative is the smallest."""
    ages: frozenset[str]
    """Words of columns that say how old something is."""
    denying: frozenset[str]
    """Beginnings that deny a word: "unresolved"."""
    irregular: frozenset[str]
    """Forms of verbs that end in no -ed."""
    places: frozenset[str]
    """Words of columns that say where a row is."""
    light: frozenset[str] = frozenset()
    """Participles that say no more than that there is a row: "recorded"."""

    def find(self, kind: str, words: Sequence[Word]) -> Iterator[tuple[int, int, str]]:
        """Yield the phrases of a kind in a question: from, to (exclusive), meaning."""
        known = self.phrases[kind]
        longest = max(map(len, known))
        at = 0
        while at < len(words):
            for size in range(min(longest, len(words) - at), 0, -1):
                meaning = known.get(tuple(word.fold for word in words[at : at + size]))
                if meaning is not None:
                    yield at, at + size, meaning
                    at += size - 1
                    break
            at += 1

    def degree_of(self, word: str, ending: str = "er") -> str:
        """Return what a word of degree asks for ("cheaper": min), "" for any other.

        It is max or min, or what depends on the column: old and young, fast and slow.
        """
        plain = self.phrases["degrees"].get((word,), "") if ending == "er" else ""
        if plain or not word.endswith(ending) or len(word) - len(ending) < _MIN_ADJECTIVE:
            return plain
        adjectives, speeds = list_adjectives(word, ending), self.phrases.get("speeds", {})
        if speed := next((speeds[(one,)] for one in adjectives if (one,) in speeds), ""):
            return speed
        return "max" if self.low.isdisjoint(adjectives) else "min"

    def concepts_of(self, word: str) -> frozenset[str]:
        """Return the things that a word names: "revenue" a turnover, like the column "total"."""
        return self._concepts.get(word, frozenset())

    @cached_property
    def _concepts(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for (concept,), words in self.phrases["concepts"].items():
            for word in words.split():
                found[word] = found.get(word, frozenset()) | {concept}
        return found

    @cached_property
    def placing(self) -> frozenset[str]:
        """The verbs that say no more than where something is."""
        return frozenset(phrase[0] for phrase in self.phrases["placements"])

    def measured_by(self, word: str) -> frozenset[str]:
        """Return what an adjective measures, as units do: "tallest" lengths, "cheaper" money."""
        forms = {form for ending in ("est", "er") for form in list_adjectives(word, ending)}
        return frozenset(
            kind
            for (adjective,), kinds in self.phrases["dimensions"].items()
            for kind in kinds.split()
            if adjective in forms
        )


def list_adjectives(word: str, ending: str) -> set[str]:
    """Return the adjectives that a word with this ending may be of; the word itself is one."""
    stem = word.removesuffix(ending)
    return {word} if stem == word else {stem, f"{stem}e", stem[:-1], f"{stem[:-1]}y"}


def has_degree(question: str) -> bool:
    """Whether a question compares: by "faster", "more" or "the least"."""
    operators, words = load_operators(), split_question(question)
    folds = [word.fold for word in words]
    if any(operators.find("superlatives", words)):
        return True
    endings = ("er", "est") if "than" in folds or "or" in folds else ("est",)
    return any(operators.degree_of(fold, ending) for fold in folds for ending in endings)


@cache
def load_operators(language: str = "en") -> Operators:
    """Load the operators of a language."""
    raw = (files("clew.agents.tables") / f"operators_{language}.toml").read_text(encoding="utf-8")
    data = tomllib.loads(raw)
    sets = {name: frozenset(text.split()) for name, text in data.pop("words").items()}
    phrases = {
        kind: {tuple(phrase.split()): str(meaning) for phrase, meaning in entries.items()}
        for kind, entries in data.items()
    }
    return Operators(phrases, **sets)
