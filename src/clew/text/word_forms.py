"""Words of a question in any language: its language, the words that say something, their forms.

A small table of closed-class words per language (`function_words.toml`) tells a question's language
and what only holds it together. Inflected forms are compared by their letters: what begins alike,
or is contained, is taken for a form of the same word, with no dictionary.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import takewhile

from clew.text.definitions import holds_term
from clew.text.language import is_chinese
from clew.text.names import fold_token, recall_tokens, tokenize
from clew.text.unicode import UNSPACED_CHAR, split_words

READ_LANGUAGES = ("en", "zh")
"""Languages with a reader or patterns of their own."""
_SCRIPTS = (
    ("ja", re.compile("[\u3041-\u30ff]")),
    ("ko", re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
)
_SAMPLE_CHARS = 2000
_MIN_FUNCTION_SHARE = 0.1  # of the words of a text
_LATIN = ("en", "de", "fr", "es")
_LETTER = re.compile(r"[^\W\d_]")
_ARABIC = _SCRIPTS[-1][1]
# Runs of Han and katakana are words of Japanese; one Han character has its ending beside it.
_JAPANESE_WORD = re.compile(
    "[\u3005\u3400-\u4dbf\u4e00-\u9fff]{2,}|[\u30a1-\u30fa\u30fc]{2,}|[\u4e00-\u9fff][\u3041-\u309f]{1,2}"
    "|[A-Za-z0-9][A-Za-z0-9_.-]*"
)
_LEAST_PREFIX, _PREFIX_SHARE = 3, 0.6  # letters, and share of the longer word, that forms share
_STEM_SHARE = 0.65  # of the shorter word, where at least a letter more is shared
_ADDED_LETTERS = 3  # before and behind a short word: "الجسر" has "جسر"
_LEAST_PART, _PART_SHARE = 5, 0.75  # letters, and share of the shorter word, of a common part
_PARTICIPLE = "ge"  # of German and Dutch
_ALIKE, _PART = 0.9, 0.6  # what a form of a word counts, and a word with a common part


@cache
def _read_words() -> Mapping[str, Mapping[str, str]]:
    """Return the words of each language by class, as they stand in the table."""
    return tomllib.loads((files("clew.text") / "function_words.toml").read_text(encoding="utf-8"))


@cache
def _load_words() -> Mapping[str, tuple[frozenset[str], frozenset[str]]]:
    """Return by language its question words and all its function words, with and without accents.

    A word written with an accent is looked up as it is: "né" is not "ne".
    """
    found = {}
    for language, words in _read_words().items():
        asking, other = (frozenset(words[part].split()) for part in ("asking", "other"))
        both = asking | other
        found[language] = (asking | _fold_all(asking), both | _fold_all(both))
    return found


def _fold_all(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(fold_token, words))


def asking_words(language: str) -> frozenset[str]:
    """Return the question words of a language in lower case; none of one without a table."""
    return _load_words().get(language, (frozenset(), frozenset()))[0]


def function_words(language: str) -> frozenset[str]:
    """Return the closed-class words of a language in lower case; none of one without a table."""
    return _load_words().get(language, (frozenset(), frozenset()))[1]


@cache
def _closed_words() -> frozenset[str]:
    both = foreign_function_words() | function_words("en")
    return frozenset(word for word in both if len(word) > 1 or word == "a")


def is_function_word(word: str) -> bool:
    """Whether a word is of a closed class in any language that has a table and spaces."""
    return word.casefold() in _closed_words()


def strip_bound_words(run: str) -> str:
    """Return a run of Chinese without the words at its ends that only bind it: "内存已满时会"."""
    for word in word_class("zh", "bound"):
        if run.endswith(word) and len(run) > len(word) + 1:
            return strip_bound_words(run.removesuffix(word))
    return run


@cache
def word_class(language: str, name: str) -> tuple[str, ...]:
    """Return the words of a named class of a language, such as its modal verbs, or none."""
    return tuple(_read_words().get(language, {}).get(name, "").split())


@cache
def phrase_class(language: str, name: str) -> tuple[str, ...]:
    """Return the phrases of a named class of a language, none where it has no such class."""
    held = _read_words().get(language, {}).get(name, "")
    return tuple(phrase.strip() for phrase in held.split(",") if phrase.strip())


@cache
def foreign_function_words() -> frozenset[str]:
    """Return the closed-class words of all spaced languages but English."""
    return frozenset().union(*(function_words(one) for one in ("de", "fr", "es", "ru", "ar")))


@cache
def _latin_words() -> frozenset[str]:
    return frozenset().union(*map(function_words, _LATIN))


def _words_of(text: str) -> list[tuple[str, str]]:
    """Return the words of a text in lower case, and folded."""
    t = tokenize(text)
    return [(text[a:b].casefold(), key) for a, b, key in zip(t.starts, t.ends, t.keys, strict=True)]


@lru_cache(maxsize=256)
def question_language(question: str) -> str:
    """Return the language of a question by its script and its function words; "en" if in doubt."""
    if is_chinese(question):
        return "zh"
    for language, script in _SCRIPTS:
        letters = len(script.findall(question))
        if 2 * letters > len(_LETTER.findall(question)) or (language == "ja" and letters > 1):
            return language
    t = tokenize(question)  # a capital inside a question belongs to a name: "La Marca De Satanás"
    plain = [not upper or at == 0 for at, upper in enumerate(t.upper)]
    pairs = zip(_words_of(question), plain, strict=True)
    words = dict.fromkeys(word for (word, _), small in pairs if small)
    counts = {one: sum(word in function_words(one) for word in words) for one in _LATIN}
    best = max(_LATIN, key=lambda one: counts[one])
    asks, english = (any(w in _load_words()[one][0] for w in words) for one in (best, "en"))
    sure = counts[best] > counts["en"] and (asks or (counts[best] > 1 and not english))
    return best if sure else "en"


def text_language(text: str) -> str:
    """Return the language of a text by its script and function words; "" if nothing tells."""
    sample = text[:_SAMPLE_CHARS]
    if sample.isascii():
        words = recall_tokens(sample).keys  # in lower case, but for what is no function word
    else:
        letters = len(_LETTER.findall(sample))
        for language, script in _SCRIPTS:
            if 2 * len(script.findall(sample)) > letters:
                return language
        words = [word for word, _ in _words_of(sample)]
    held = list(filter(_latin_words().__contains__, words))
    counts = {one: sum(map(function_words(one).__contains__, held)) for one in _LATIN}
    best = max(_LATIN, key=lambda one: counts[one])
    return best if counts[best] > _MIN_FUNCTION_SHARE * len(words) else ""


def is_read_language(question: str) -> bool:
    """Whether a question is in a language with a reader or patterns of its own."""
    return question_language(question) in READ_LANGUAGES


@lru_cache(maxsize=256)
def asked_terms(question: str) -> tuple[str, ...]:
    """Return the words of a question that say something, folded, each once."""
    language = question_language(question)
    closed = function_words(language)
    if language == "ja":
        words = [word for word in _JAPANESE_WORD.findall(question) if word not in closed]
        said = [word for word in words if word[:1] not in closed]
        # A code keeps its signs ("T-05"); other words of Latin letters are folded like any.
        return tuple(
            dict.fromkeys(fold_token(w) if w.isascii() and w.isalnum() else w for w in said)
        )
    if language == "ko":
        return tuple(dict.fromkeys(split_words(question)))
    words = _words_of(question)
    said = [key for word, key in words if word not in closed and (len(key) > 1 or key.isdigit())]
    return tuple(dict.fromkeys(said or (key for _, key in words)))


@cache
def numerals(language: str, *, times: bool = False) -> re.Pattern[str]:
    """Return what finds a number in digits or, by a table, in words of a language; or a time."""
    if language in ("ja", "zh"):
        return re.compile(rf"\d|[〇零一二三四五六七八九十百千万两半{'曜周毎每' if times else ''}]")
    held = _read_words().get(language, {})
    words = f"{held.get('numerals', '')} {held.get('times', '') if times else ''}".split()
    listed = "|".join(sorted(words, key=len, reverse=True))
    return re.compile(rf"\d|\b(?:{listed})\b" if listed else r"\d", re.IGNORECASE)


def measure_terms(terms: Sequence[str], text: str) -> list[float]:
    """Return for each term how well a text has it, in some form: 0 to 1."""
    words = _split_distinct(text)
    return [_find_term(term, text, words) for term in terms]


@lru_cache(maxsize=1024)
def _split_distinct(text: str) -> frozenset[str]:
    return frozenset(tokenize(text).keys)


def _find_term(term: str, text: str, words: Iterable[str]) -> float:
    if len(term) > 1 and UNSPACED_CHAR.match(term):
        if term in text:
            return 1.0
        held = [at for at in range(len(term) - 1) if term[at : at + 2] in text]
        return _ALIKE * len({place for at in held for place in (at, at + 1)}) / len(term)
    if term.isascii() and not term.isalnum():
        return float(holds_term(term, text))
    return max((_compare_forms(term, word) for word in words), default=0.0)


@lru_cache(maxsize=1 << 16)
def _compare_forms(term: str, word: str) -> float:
    """Return how well a word of a text says a term: as `compare_words`, but by whole parts only.

    Function words are forms of nothing ("und" of "Hund"), and what begins otherwise must be the
    last part of a compound: "Fläche" of "Wohnfläche", not "immer" of "Zimmer".
    """
    value = compare_words(term, word)
    short, long = sorted((term, word), key=len)
    if value in (0.0, 1.0) or long[:_LEAST_PREFIX] == short[:_LEAST_PREFIX]:
        return 0.0 if value < 1 and word in foreign_function_words() else value
    if word in foreign_function_words():
        return 0.0
    if _ARABIC.search(short):
        return value
    if _is_participle_of(short, long) or _is_participle_of(long, short):
        return _ALIKE
    added = len(long) - len(short)
    if short in long:
        whole = long.endswith(short) and len(short) >= _LEAST_PART and added >= _LEAST_PREFIX
        return value if whole else 0.0
    size = max(_LEAST_PART + 1, round(_PART_SHARE * len(short)))
    parts = (short[at : at + size] for at in range(len(short) - size + 1))
    return value if any(part in long for part in parts) else 0.0


def _is_participle_of(word: str, verb: str) -> bool:
    """Whether a word is a verb with the prefix of a participle: "geleitet" of "leitet"."""
    bare = word.removeprefix(_PARTICIPLE)
    if bare == word or len(bare) < _LEAST_PART or verb.startswith(_PARTICIPLE):
        return False
    return compare_words(bare, verb) >= _ALIKE and bare[:_LEAST_PREFIX] == verb[:_LEAST_PREFIX]


def holds_form(words: Iterable[str], word: str, least: float) -> bool:
    """Whether one of some words is a word or a form of it, at least so surely."""
    return any(compare_words(one, word) >= least for one in words)


@lru_cache(maxsize=1 << 16)
def compare_words(one: str, other: str) -> float:
    """Return 1 for the same word, less for what seems to be a form of it, 0 for another word."""
    if one == other:
        return 1.0
    short, long = sorted((one, other), key=len)
    if len(short) < _LEAST_PREFIX or any(map(str.isdigit, short)):
        return 0.0
    pairs = zip(short, long, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    if shared >= _LEAST_PREFIX and shared >= _PREFIX_SHARE * len(long):
        return _ALIKE
    if shared > _LEAST_PREFIX and shared >= _STEM_SHARE * len(short):
        return _ALIKE
    near = len(long) - len(short) <= _ADDED_LETTERS or len(short) > _LEAST_PART
    if short in long and near:
        return _ALIKE
    size = max(_LEAST_PART, round(_PART_SHARE * len(short)))
    parts = (short[at : at + size] for at in range(len(short) - size + 1))
    return _PART if any(part in long for part in parts) else 0.0


def mentions_form(name: str, text: str) -> bool:
    """Whether a text has every word of a name that says something, in some form.

    Of Han characters, which no spaces part, most pairs.
    """
    if len(name) > 1 and is_chinese(name):
        return measure_terms([name], text)[0] >= _ALIKE / 2
    terms = [term for term in asked_terms(name) if term not in foreign_function_words()]
    return all(value >= _ALIKE / 2 for value in measure_terms(terms, text))


def find_written_names(question: str) -> list[str]:
    """Return the words of a question with a capital inside it, those in a row as one name."""
    t, closed = tokenize(question), function_words(question_language(question))
    found: list[str] = []
    last = 0  # the first word of a question has its capital from there
    for at in range(1, len(t)):
        if t.upper[at] and t.keys[at] not in closed:
            word = question[t.starts[at] : t.ends[at]]
            joined = at == last + 1 and found and question[t.ends[last] : t.starts[at]] == " "
            found = [*found[:-1], f"{found[-1]} {word}"] if joined else [*found, word]
            last = at
    return found


_NAMES = {"en": "English", "de": "German", "fr": "French", "es": "Spanish"}
_LEAST_TOLD = 2  # function words that tell a language, or one that asks
_CLEAR = 1.3  # times as many of them as another language has


@cache
def _load_telling_words() -> Mapping[str, tuple[frozenset[str], frozenset[str]]]:
    """Return the question words and function words of languages in Latin letters by their names."""
    found = {name: _load_words()[language] for language, name in _NAMES.items()}
    text = (files("clew.text") / "language_words.toml").read_text(encoding="utf-8")
    for words in tomllib.loads(text).values():
        asking, other = (frozenset(words[part].split()) for part in ("asking", "other"))
        found[words["name"]] = (asking, asking | other)
    return found


@lru_cache(maxsize=256)
def name_language(text: str) -> str:
    """Name the language of a text, or the script it is in, for people; "" if nothing tells."""
    sample = text[:_SAMPLE_CHARS]
    letters = _LETTER.findall(sample)
    if not letters:
        return ""
    if sample.isascii():
        return _name_latin(sample)
    scripts = Counter(unicodedata.name(char, "?").partition(" ")[0] for char in letters)
    if scripts["HIRAGANA"] + scripts["KATAKANA"] > 1 and 3 * scripts["LATIN"] < 2 * len(letters):
        return "Japanese"
    script, most = scripts.most_common(1)[0]
    if 2 * most < len(letters) or script == "?":
        return ""
    if script != "LATIN":
        named = {"CJK": "Chinese", "HANGUL": "Korean"}
        return named.get(script, f"{script.capitalize()} letters")
    return _name_latin(sample)


def _name_latin(sample: str) -> str:
    words = [word for word, _ in _words_of(sample)]
    told = _load_telling_words()
    counts = {name: sum(map(both.__contains__, words)) for name, (_, both) in told.items()}
    asks = {name: any(map(asking.__contains__, words)) for name, (asking, _) in told.items()}
    scores = {name: counts[name] + asks[name] for name in told}
    best, *others = sorted(scores, key=lambda name: -scores[name])
    clear = scores[best] >= _CLEAR * scores[others[0]]
    return best if clear and scores[best] >= _LEAST_TOLD else ""
