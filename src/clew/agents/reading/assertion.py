"""Whether a sentence says that something is so, or only asks, supposes, reports or plans it.

What is asked about is so if it stands in a main clause without a word above it that leaves it open:
no condition, no infinitive or clause that hangs on another verb ("refused to open it", "claimed
that it was open"), no word of duty or chance that the question lacks. A verb that commits to what
hangs on it is the exception ("managed to", "confirmed that"). The words are in `rules/en.toml`.

What is denied without a thing is so with it ("may not be let without leave"), and what is so with a
thing need not be so without.
"""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Literal

from clew.agents.citing.clauses import find_verbs
from clew.agents.citing.entailment import is_negated
from clew.agents.reading.spans import asked_words
from clew.agents.reading.stems import cut_ending
from clew.agents.rules.table import RuleTable
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words

Stem = Callable[[str], str]
Verdict = Literal["yes", "no", "open", ""]
"""What a sentence says; "" where neither it nor the question has a "without"."""
_WORD = re.compile(r"[\w’'-]+")
_THAT = re.compile(r"\bthat\b", re.IGNORECASE)
_INFINITIVE = re.compile(r"\bto\s+(?:not\s+|be\s+|have\s+(?:been\s+)?|\w+ly\s+)?(\w+)", re.I)
_PARTS = re.compile(r"[,;:()]|\b(?:but|and|which|while|whereas|although|though)\b", re.IGNORECASE)
_THIS = re.compile(r"(?:this|that|which)\b", re.IGNORECASE)
_BACK = re.compile(
    r"\W*(?:but|however|yet|in fact|later|nevertheless|instead)?\W*"
    r"(?:(?:this|that|which|it|they|he|she)\b|the (?:claim|rumour|rumor|report|plan|story|idea)\b)",
    re.IGNORECASE,
)
_WITHOUT = re.compile(r"\bwithout\s+(?P<thing>[^,;:.()?]+)", re.IGNORECASE)
_WITH = re.compile(r"\bwith\s+(?P<thing>[^,;:.()?]+)", re.IGNORECASE)
_HELPING = frozenset("is are was were be been being has have had do does did".split())
# Which words of a sentence answer a question that opens with which auxiliary.
_ANSWERING = {
    "possible": frozenset("can could may might should".split()),
    "due": frozenset("must should shall".split()),
    "future": frozenset("will would shall is are do does can may".split()),
    "doubtful": frozenset("would might could".split()),
}
_ABILITY = frozenset(("do", "does"))  # "Does it hold" is answered by "it can hold"
_GERUND = re.compile(r"\W*(?P<word>[^\W\d_]+ing)\b", re.IGNORECASE)


def asserts(
    question: str, words: Collection[str], sentence: str, table: RuleTable, stem: Stem
) -> bool:
    """Whether a sentence says that the words of a question are so.

    `words` are the stems that the question claims; `stem` makes one of a word.
    """
    places = [m.start() for m in _WORD.finditer(sentence) if stem(m[0].lower()) in words]
    if not places:
        return True
    kinds, start, end = table.assertion, min(places), max(places)
    if _begins_with_deed(question, sentence, words, stem):
        return False
    if _is_conditional(question, sentence, table) or _is_hedged(question, sentence, table):
        return False
    if _hangs_on_verb(question, sentence, start, table):
        return False
    opening = next(iter(split_words(question)), "")
    for kind, openings in _ANSWERING.items():
        found = [m for m in kinds[kind].finditer(sentence) if start - 1 <= m.start() <= end]
        before = [*found, *_modals_before(sentence, start, kinds[kind])]
        if before and not _answers(opening, openings, before, kind, question):
            return False
    return not any(
        _is_open_infinitive(question, sentence, m, words, table, stem)
        for m in _INFINITIVE.finditer(sentence)
    )


def _begins_with_deed(question: str, sentence: str, words: Collection[str], stem: Stem) -> bool:
    """Whether a sentence only names what is asked about as done: "Restoring it needs the key"."""
    found = _GERUND.match(sentence)
    word = found["word"].lower() if found else ""
    return bool(word) and stem(word) in words and word not in split_words(question)


def _modals_before(sentence: str, start: int, modals: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield the modals in the part of a sentence before its first asked word: "You can wash it"."""
    breaks = [m.end() for m in _PARTS.finditer(sentence) if m.end() <= start]
    return modals.finditer(sentence, breaks[-1] if breaks else 0, start)


def _answers(
    opening: str,
    openings: Collection[str],
    modals: list[re.Match[str]],
    kind: str,
    question: str,
) -> bool:
    able = kind == "possible" and opening in _ABILITY
    able = able and all(m[0].lower() == "can" for m in modals)
    return opening in openings or able or all(m[0].lower() in question.lower() for m in modals)


def _is_conditional(question: str, sentence: str, table: RuleTable) -> bool:
    """Whether what a sentence says depends on a condition that the question does not have."""
    asked = question[len(question.split(maxsplit=1)[0]) :]  # "whether" may open a question
    conditions = table.assertion["conditions"]
    return bool(conditions.search(sentence)) and not conditions.search(asked)


def _is_hedged(question: str, sentence: str, table: RuleTable) -> bool:
    hedges = table.assertion["hedges"]
    return any(m[0].lower() not in question.lower() for m in hedges.finditer(sentence))


def _hangs_on_verb(question: str, sentence: str, start: int, table: RuleTable) -> bool:
    """Whether all that is asked about stands in a clause under another one's verb or noun."""
    before = sentence[:start]
    for that in _THAT.finditer(before):
        after = sentence[that.end() :].split(maxsplit=1)
        relative = bool(after) and bool(find_verbs(after[0]))
        if not relative and not _commits(before[: that.start()], table):
            return True
    if _THAT.search(before):
        return False
    part = before[max((m.end() for m in _PARTS.finditer(before)), default=0) :]
    verbs = [v for v in find_verbs(part) if v not in _HELPING and v not in question.lower()]
    inside = find_verbs(_PARTS.split(sentence[start:])[0])
    speaks = bool(verbs) and inside[:1] != [] and not sentence[start:].lower().startswith(inside[0])
    return speaks and re.search(r"\bto\b", part) is None and not _commits(part, table)


def _commits(text: str, table: RuleTable) -> bool:
    return table.assertion["commits"].search(text) is not None and not is_negated(text)


def _is_open_infinitive(
    question: str,
    sentence: str,
    found: re.Match[str],
    words: Collection[str],
    table: RuleTable,
    stem: Stem,
) -> bool:
    """Whether "to open" is asked about as done, and the verb before does not say that it was."""
    if stem(found[1].lower()) not in words or found[0].lower() in question.lower():
        return False
    before = sentence[: found.start()]
    part = before[max((m.end() for m in _PARTS.finditer(before)), default=0) :]
    modal = any(
        one.search(f"{part.split()[-1] if part.split() else ''} to")
        for kind, one in table.assertion.items()
        if kind in _ANSWERING
    )  # "able to" and "has to" are compared with the question's own word
    failed = is_negated(f"{' '.join(part.split()[-1:])} to")
    return not (modal or failed or _commits(part, table))


def is_taken_back(text: str, start: int, end: int, table: RuleTable) -> bool:
    """Whether the sentence at a place is denied in its own end, or by the sentence behind it."""
    parts = re.split(r"[,;–—]|\bbut\b", text[start:end])[1:]
    behind = next((text[end:][a:b] for a, b in sentence_spans(text[end:])), "")
    return any(_denies(part, table) for part in (*parts, behind))


def _denies(part: str, table: RuleTable) -> bool:
    opened = _BACK.match(part)
    if opened is None:
        return False
    this = _THIS.search(opened[0]) is not None
    first = re.split(r"[,;.]\s|[,;.]$", part[opened.end() :])[0]
    return table.assertion["denials"].search(first) is not None or (this and is_negated(first))


# -- without


def drop_without(text: str) -> str:
    """Return a text with no "without", and nothing of what it governs."""
    return _WITHOUT.sub(" ", text)


def judge_without(claim: str, sentence: str) -> Verdict:
    """Return what a sentence says of a claim where one of both holds without something."""
    asked, said = _WITHOUT.search(claim), _WITHOUT.search(sentence)
    if asked is None and said is None:
        return ""
    negated = is_negated(drop_without(sentence))
    same = negated == is_negated(drop_without(claim))
    if asked and said:
        if not _stems(asked["thing"]) & _stems(said["thing"]):
            return "open"
        return "yes" if same else "no"
    if asked:
        return _judge_with(asked["thing"], sentence, negated=negated, same=same)
    thing = said["thing"] if said else ""
    if not _stems(thing) & _stems(claim):
        return "" if negated else "open"
    return "yes" if negated and not same else "open"


def _judge_with(thing: str, sentence: str, *, negated: bool, same: bool) -> Verdict:
    """Return what a sentence that has no "without" says of what is asked to be without a thing."""
    if negated or not _stems(thing) & _stems(sentence):
        return ""
    found = _WITH.search(sentence)
    return "no" if same and found and _stems(thing) & _stems(found["thing"]) else "open"


def _stems(text: str) -> set[str]:
    return set(map(cut_ending, asked_words(text.lower()))) & set(map(cut_ending, split_words(text)))
