"""Question analysis by rules: what a question names and asks, and which quotes may answer it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from unicodedata import name as letter_name

from clew.agents.planning.chinese import find_subject, is_chinese, parse_attribute_question
from clew.agents.planning.comparing import PERSON_ROLES
from clew.agents.planning.naming import (
    APPOSITION,
    NOT_LINKING_WORD,
    drop_appositions,
    find_name_spans,
)
from clew.agents.planning.own_part import is_about
from clew.agents.planning.patterns import PatternMatch, find_answer
from clew.agents.planning.relations import asks_for_kin, find_asked_relation, mentions_relation
from clew.agents.planning.shapes import plan_by_rules
from clew.agents.writing.support import mentions_name
from clew.retrieve.naming.question_words import OPENING_WORDS, WORK_KINDS
from clew.text import UNSPACED_CHAR
from clew.types import Citation, Passage
from clew.view import View

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
    rf"\s*,\s+(?:the|an?)(?:\s+{NOT_LINKING_WORD}[a-z][a-z-]*){{1,3}}\s*,"
)
_CJK_ANSWER_TYPES = (
    ("date", re.compile("何时|何年|什么时候|什么时间|哪一?[年天]|いつ|何年|언제")),
    ("number", re.compile("多少|几[个位部座人岁]|多[高长大重深]|いくつ|何人|몇")),
)


# Of the shortest words only those that other languages do not have.
_ENGLISH_WORDS = re.compile(
    rf"\b(?:the|of|who|how|why|{'|'.join(w for w in OPENING_WORDS - WORK_KINDS if len(w) > _SHORT_WORD_LETTERS)})\b",
    re.I,
)


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
            return f"no passage says: {self.question}"
        return f"nothing is said about {'、'.join(absent)}" if absent else ""

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
    spans = drop_appositions(question, spans)
    names = tuple(question[start:end] for start, end in spans)
    known = _is_understood(question, spans)
    if not plan.simple or len(names) != 1:
        return QuestionAnalysis(question, names, plan.join is not None, is_understood=known)
    asked = _remove_name(question, spans[0])
    return QuestionAnalysis(question, names, False, _is_direct(asked), _is_plain(asked), known)


def _remove_name(question: str, name: tuple[int, int]) -> str:
    """Remove the name and its apposition from the question."""
    before, after = question[: name[0]], question[name[1] :]
    return f"{APPOSITION.sub('', before)} {_APPOSITION_AFTER.sub('', after, count=1)}"


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
