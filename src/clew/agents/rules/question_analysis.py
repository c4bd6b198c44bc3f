"""Question analysis by rules: the names in a question, what it asks, which quotes may answer it."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from unicodedata import name as letter_name

from clew.agents.citing.support import mentions_name
from clew.agents.rules.chinese import find_subject, parse_attribute_question
from clew.agents.rules.english_answers import (
    PatternMatch,
    asks_for_kin,
    find_answer,
    find_asked_relation,
    mentions_relation,
)
from clew.agents.rules.english_questions import PERSON_ROLES, plan_by_rules
from clew.agents.rules.sections_about import is_about
from clew.index.view import View
from clew.retrieve.linking.link_names import link_names
from clew.retrieve.question import OPENING_WORDS, WORK_KINDS
from clew.text.language import is_chinese
from clew.text.name_spans import find_capitalised_runs
from clew.text.names import Tokens, tokenize
from clew.text.sentences import sentence_spans
from clew.text.unicode import UNSPACED_CHAR
from clew.types import Citation, Passage

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


def find_name_spans(view: View, question: str) -> Spans:
    """Return the character spans of names: known entities, and capitalised runs.

    Where a known name is only part of a capitalised run ("Charles" of "Charles Patin"), the
    question means the whole run, which is unknown.
    """
    cache: dict[str, Spans] = view.memo.setdefault("question name spans", {})
    if question not in cache:
        if len(cache) >= _MAX_CACHED_QUESTIONS:
            cache.clear()
        cache[question] = _find_name_spans(view, question)
    return cache[question]


def _find_name_spans(view: View, question: str) -> Spans:
    t = tokenize(question)
    known = [(link.first, link.last) for link in link_names(view, question, t)]
    runs = []
    starts = {bisect_left(t.starts, start) for start, _ in sentence_spans(question)}
    for first, last in find_capitalised_runs(question, t, starts):
        while first < last and first in starts and t.keys[first] in OPENING_WORDS:
            first += 1
        if (
            first < last
            and not _is_sentence_capital(question, t, (first, last), starts)
            and not any(
                a < last and first < b and _covers_run((a, b), (first, last)) for a, b in known
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


def find_names(view: View, question: str) -> list[str]:
    """Return the names in a question, as it writes them."""
    return [question[start:end] for start, end in find_name_spans(view, question)]


def _drop_appositions(question: str, spans: Spans) -> Spans:
    """Drop the names that only describe the next one: "the German painter N"."""
    trades = [
        (m.start(), start) for start, _ in spans if (m := _APPOSITION.search(question[:start]))
    ]
    return [(a, b) for a, b in spans if not any(first <= a < last for first, last in trades)]


def find_subject_names(view: View, question: str) -> list[str]:
    """Return the names that a question is about, as it writes them."""
    spans = _drop_appositions(question, find_name_spans(view, question))
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


_MAX_DIRECT_WORDS = 9  # words beside the name; a longer question has further clauses
_SHORT_WORD_LETTERS = 3  # letters
_OPENING_QUESTION_WORD = re.compile(r"(?:in\s+)?(?:who|whom|what|which|where|when|how)\b", re.I)
_CLAUSE_WORDS = re.compile(r"\b(?:who|whom|whose|which|that|where|when|and|or|but)\b", re.I)
_KNOWN_ATTRIBUTES = re.compile(
    r"\b(?:born|birth|birthplace|die|death|nationality|country)\b|\bhow\s+(?:tall|high|long|large|"
    r"big|heavy|deep|wide|many)\b|\bwhen\b",
    re.I,
)
_ASKS_BIRTH_OR_DEATH = re.compile(
    r"\W*(?:in\s+)?(?:where|when)\b.*\b(?:born|die|died)\b", re.I | re.S
)
_ASKS_OF_RELATED = re.compile(
    r"\bof\s{2,}.*\b(?:born|die|died|live|lived|study|studied|work|worked)\b", re.I
)
_ROLE_NOUN = re.compile(rf"\b(?:{PERSON_ROLES})s?\b", re.I)
# "N, the painter," is N too.
_APPOSITION_AFTER = re.compile(
    rf"\s*,\s+(?:the|an?)(?:\s+{_NOT_LINKING_WORD}[a-z][a-z-]*){{1,3}}\s*,"
)
_CJK_ANSWER_TYPES = (
    ("date", re.compile("何时|何年|什么时候|什么时间|哪一?[年天]|いつ|何年|언제")),
    ("number", re.compile("多少|几[个位部座人岁]|多[高长大重深]|いくつ|何人|몇")),
)
# Of the shortest words only those that other languages do not have.
_LONGER_WORDS = "|".join(w for w in OPENING_WORDS - WORK_KINDS if len(w) > _SHORT_WORD_LETTERS)
_ENGLISH_WORDS = re.compile(rf"\b(?:the|of|who|how|why|{_LONGER_WORDS})\b", re.I)


@dataclass(frozen=True, slots=True)
class QuestionAnalysis:
    """The names in a question, and whether it compares or asks a known attribute of one name."""

    question: str
    names: tuple[str, ...]
    is_comparison: bool = False
    is_direct: bool = False
    is_plain: bool = False
    """One name, and nothing else that would have to be looked up first."""
    is_understood: bool = True
    """Whether rules can tell what kind of answer is asked for."""

    def match_answer(self, passages: Sequence[Passage]) -> PatternMatch | None:
        """Match the answer patterns for a direct question."""
        return find_answer(self.question, self.names[0], passages) if self.is_direct else None

    def explain_missing(self, passages: Sequence[Passage]) -> str:
        """Explain that no passage mentions a Chinese question's subject, or that it has none.

        In other languages capitals mark the names; see `ask.find_unmentioned_names`.
        """
        if not is_chinese(self.question):
            return ""
        texts = [f"{passage.title} {passage.text}" for passage in passages]
        absent = [name for name in self.names if not any(mentions_name(name, one) for one in texts)]
        if not self.names:
            return f"no passage answers: {self.question}"
        return f"the documents do not mention {'、'.join(absent)}" if absent else ""

    def accepts_quote(self, cited: Citation, home: Passage | None) -> bool:
        """Whether a quote may give a candidate: it mentions the asked relation and the name.

        Intermediate entities (bridges) may stand in any passage; but for a relative, a sentence
        without the name does not show whose relative it is.
        """
        if not mentions_relation(self.question, cited.quote):
            return False
        if not self.names and _ASKS_BIRTH_OR_DEATH.match(self.question):
            return False  # nothing shows that whoever was born there is the one meant
        if not self.is_direct or home is None:
            return not asks_for_kin(self.question)
        return is_about(self.names[0], cited, home)

    def confirms_candidate(
        self, candidate: str, quotes: Iterable[tuple[Citation, Passage | None]]
    ) -> bool:
        """Whether a quote that contains the candidate is about the name in the question."""
        return not self.is_plain or any(
            candidate.casefold() in cited.quote.casefold()
            and (home is None or is_about(self.names[0], cited, home))
            for cited, home in quotes
        )


def analyse_question(view: View, question: str) -> QuestionAnalysis:
    """Analyse a question by rules."""
    spans = find_name_spans(view, question)
    plan = plan_by_rules(question, spans)
    if is_chinese(question):
        options = plan.join.options if plan.join else (find_subject(question),)
        direct = plan.simple and parse_attribute_question(question) is not None
        return QuestionAnalysis(
            question, tuple(filter(None, options)), plan.join is not None, direct
        )
    spans = _drop_appositions(question, spans)
    names = tuple(question[start:end] for start, end in spans)
    known = _is_understood(question, spans)
    if not plan.simple or len(names) != 1:
        return QuestionAnalysis(question, names, plan.join is not None, is_understood=known)
    asked = _remove_name(question, spans[0])
    return QuestionAnalysis(question, names, False, _is_direct(asked), _is_plain(asked), known)


def _remove_name(question: str, name: tuple[int, int]) -> str:
    before, after = question[: name[0]], question[name[1] :]
    return f"{_APPOSITION.sub('', before)} {_APPOSITION_AFTER.sub('', after, count=1)}"


def _is_understood(question: str, names: Sequence[tuple[int, int]]) -> bool:
    """Whether rules know the question's words, or it is short enough to be read by its names.

    A "when" of another language looks like any other word: the expected answer is then unknown.
    """
    if find_cjk_answer_type(question) is not None:
        return True
    rest = "".join(
        char for at, char in enumerate(question) if not any(a <= at < b for a, b in names)
    )
    letters = [char for char in rest if char.isalpha()]
    if 2 * sum(letter_name(char, "").startswith("LATIN") for char in letters) < len(letters):
        return False
    return not rest.rstrip().endswith("?") or any(
        pattern.search(rest) for pattern in (_ENGLISH_WORDS, _ROLE_NOUN, _KNOWN_ATTRIBUTES)
    )


def _is_plain(asked: str) -> bool:
    """Whether the question asks about the name itself: no role, no clause, nothing "of" it."""
    opening = _OPENING_QUESTION_WORD.match(asked.strip())
    rest = asked.strip()[opening.end() :] if opening else asked
    return not (
        _ROLE_NOUN.search(rest) or _CLAUSE_WORDS.search(rest) or re.search(r"\bof\b|['’]s?\b", rest)
    )


def _is_direct(asked: str) -> bool:
    opening = _OPENING_QUESTION_WORD.match(asked.strip())
    if opening is None or len(asked.split()) > _MAX_DIRECT_WORDS:
        return False
    # "the director of N" who was born is not N.
    if _ASKS_OF_RELATED.search(asked):
        return False
    known = find_asked_relation(asked) or (
        _KNOWN_ATTRIBUTES.search(asked) and not _ROLE_NOUN.search(asked)
    )
    return bool(known) and not _CLAUSE_WORDS.search(asked.strip()[opening.end() :])


def find_cjk_answer_type(question: str) -> str | None:
    """Return the answer type a question in a script without spaces asks for, "" for a name.

    None for other scripts. Terms of such scripts have no entity type, so none can match a name.
    """
    if not UNSPACED_CHAR.search(question):
        return None
    return next((kind for kind, asks in _CJK_ANSWER_TYPES if asks.search(question)), "")
