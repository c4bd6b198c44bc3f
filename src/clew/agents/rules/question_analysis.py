"""The names in a question: known entities and capitalised runs, and which it is about."""

import re
from bisect import bisect_left

from clew.agents.rules.table import RuleTable, table_for
from clew.index.view import View
from clew.retrieve.linking.link_names import link_names
from clew.retrieve.question import OPENING_WORDS, strip_courtesy
from clew.text.language import is_unspaced
from clew.text.name_spans import find_capitalised_runs, is_uninformative
from clew.text.names import Tokens, tokenize
from clew.text.sentences import sentence_spans
from clew.text.unicode import UNSPACED_CHAR, split_words

Spans = list[tuple[int, int]]
_MAX_CACHED_QUESTIONS = 64  # questions of which a view keeps the name spans
_OPENING_QUOTES = ("'", '"', "“", "‘", "«", "《")
_POSSESSIVE_SUFFIXES = ("'s", "’s")
_MAX_ABBREVIATION_LETTERS = 2  # letters of "Jr", "St" and the last of "U.S.A"
# "the German painter N" is N: a few words before the name, none of them a linking word.
_NOT_LINKING_WORD = (
    r"(?!(?:of|in|at|on|to|for|by|with|from|as|like|near|and|or|but|who|whom|whose|which|that|when|"
    r"where|is|was|are|were|did|does|do|has|had)\b|\w+(?:ed|ing)\b)"
)
_APPOSITION = re.compile(
    rf"\b(?:[Tt]he|[Aa]n?)\s+(?:{_NOT_LINKING_WORD}[\w-]+\s+){{0,3}}{_NOT_LINKING_WORD}[a-z][a-z-]*\s+$"
)


def find_question_name_spans(view: View, question: str) -> Spans:
    """Return the character spans of names: known entities, and capitalised runs.

    Where a known name is only part of a capitalised run ("Charles" of "Charles Patin"), the
    question means the whole run, which is unknown.
    """
    cache: dict[str, Spans] = view.memo.setdefault("question name spans", {})
    if question not in cache:
        if len(cache) >= _MAX_CACHED_QUESTIONS:
            cache.clear()
        cache[question] = _search_name_spans(view, question)
    return cache[question]


def _search_name_spans(view: View, question: str) -> Spans:
    t = tokenize(question)
    known = [(link.first, link.last) for link in link_names(view, question, t)]
    runs = []
    keys = [t.keys[slice(*span)] for span in known]
    twice = {span for span, key in zip(known, keys, strict=True) if keys.count(key) > 1}
    starts = {bisect_left(t.starts, start) for start, _ in sentence_spans(question)}
    for first, last in find_capitalised_runs(question, t, starts):
        while first < last and first in starts and t.keys[first] in OPENING_WORDS:
            first += 1
        if _is_role_of(question, t, first, last):
            first += 2  # "the CEO of N" names N
        if (
            not is_uninformative(t, first, last)
            and not _is_sentence_capital(question, t, (first, last), starts)
            and not any(
                a < last
                and first < b
                and _covers_run((a, b), (first, last))
                and not ((a, b) in twice and b < last)  # "BX Pro" beside "BX"
                for a, b in known
            )
        ):
            runs.append((first, last))
    taken = {at for first, last in runs for at in range(first, last)}
    spans = [span for span in known if not taken & set(range(*span))] + runs
    return sorted(
        _extend_span(question, t.starts[first], t.ends[last - 1]) for first, last in spans
    )


def _is_sentence_capital(question: str, t: Tokens, run: tuple[int, int], starts: set[int]) -> bool:
    """Whether a run is one word that is capitalised only because it begins a sentence.

    In quotation marks or with a possessive it counts as a name.
    """
    first, last = run
    if last - first > 1 or first not in starts:
        return False
    before, after = question[: t.starts[first]][-1:], question[t.ends[first] :][:2]
    return before not in _OPENING_QUOTES and after not in _POSSESSIVE_SUFFIXES


def _is_role_of(question: str, t: Tokens, first: int, last: int) -> bool:
    """Whether a run begins with an abbreviation of something that the rest has: "CEO of N"."""
    if last - first <= 2 or t.keys[first + 1] != "of":
        return False
    word = question[t.starts[first] : t.ends[first]]
    return len(word) > 1 and word.isupper()


def find_names(view: View, question: str) -> list[str]:
    """Return the names in a question, as it writes them."""
    return [question[start:end] for start, end in find_question_name_spans(view, question)]


def _drop_appositions(question: str, spans: Spans) -> Spans:
    """Drop the names that only describe the next one: "the German painter N"."""
    trades = [
        (m.start(), start) for start, _ in spans if (m := _APPOSITION.search(question[:start]))
    ]
    return [(a, b) for a, b in spans if not any(first <= a < last for first, last in trades)]


def find_subject_names(view: View, question: str) -> list[str]:
    """Return the names that a question is about, as it writes them."""
    spans = _drop_appositions(question, find_question_name_spans(view, question))
    return [question[start:end] for start, end in spans]


def _covers_run(known: tuple[int, int], run: tuple[int, int]) -> bool:
    """Whether a known name extends beyond the run, or covers more than half of it."""
    beyond = known[0] < run[0] or known[1] > run[1]
    return beyond or 2 * (known[1] - known[0]) > run[1] - run[0]


def _extend_span(question: str, start: int, end: int) -> tuple[int, int]:
    """Extend a name by its closing bracket or the stop of "Jr.", which tokens leave out."""
    name = question[start:end]
    short = len(name.replace(".", " ").split()[-1]) <= _MAX_ABBREVIATION_LETTERS
    if short and question[end : end + 1] == "." and question[end + 1 : end + 2] in (" ", "?", "'"):
        end += 1
    if name.count("(") > name.count(")") and question[end : end + 1] == ")":
        end += 1
    return start, end


def is_in_corpus(view: View, name: str) -> bool:
    """Whether some passage has all words of a name, or an entity is called so."""
    words = list(dict.fromkeys(split_words(name)))
    if len(view.bm25.chunks_with_all(words)) or len(view.find_by_name_or_alias(name)):
        return True
    return is_unspaced(name) and _knows_pairs(view, name)


def _knows_pairs(view: View, name: str) -> bool:
    """Whether most characters of a name without spaces are in pairs that some passage has.

    What a question says of a name is glued to it: "消息写入哪里".
    """
    pairs = [name[at : at + 2] for at in range(len(name) - 1)]
    known = [at for at, pair in enumerate(pairs) if len(view.bm25.chunks_with(pair))]
    return 2 * len({place for at in known for place in (at, at + 1)}) > len(name)


def find_wanted_block(question: str) -> str:
    """Return what a question wants quoted whole: steps, list, definition; "" for an answer."""
    asked = strip_courtesy(question).lstrip()
    # Without spaces the words that ask stand behind what they ask about as well.
    find = re.Pattern.search if UNSPACED_CHAR.match(asked) else re.Pattern.match
    table = table_for(question)
    for kind, words in table.blocks:
        if (found := find(words, asked)) and not _asks_outcome(table, asked, found):
            return kind
        # "I have to move it, how do I do that?", "Give me the steps to …": nothing else is asked.
        within = words.search(asked) if kind == "steps" else None
        if within and not table.question_words.search(asked, 0, within.start()):
            return "" if _asks_outcome(table, asked, within) else kind
    return ""


def _asks_outcome(table: RuleTable, asked: str, found: re.Match[str]) -> bool:
    """Whether a question ends in "how", so that it asks for no steps: "内存已满时会怎样？"."""
    manner = table.question_words.fullmatch(found[0]) is not None
    return manner and not any(map(str.isalpha, asked[found.end() :]))
