"""What a sentence says of "without": "may not be let without leave" forbids the one, not the other.

What is denied without a thing is so with it, and what is so with a thing need not be so without.
"""

import re
from typing import Literal

from clew.agents.citing.entailment import is_negated
from clew.agents.reading.spans import asked_words
from clew.agents.reading.stems import cut_ending
from clew.text.unicode import split_words

Verdict = Literal["yes", "no", "open", ""]
"""What a sentence says; "" where neither it nor the question has a "without"."""
_WITHOUT = re.compile(r"\bwithout\s+(?P<thing>[^,;:.()?]+)", re.IGNORECASE)
_WITH = re.compile(r"\bwith\s+(?P<thing>[^,;:.()?]+)", re.IGNORECASE)


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
