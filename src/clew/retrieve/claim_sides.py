"""Which of the two names of a claim must be the head of a fact that says it.

"Is X the child of Y" is said by (Y, child, X), (X, child of, Y) and (X, parent, Y), and not by the
same facts with their ends exchanged; "Is X married to Y" by a fact in either direction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from clew.context import Context
from clew.retrieve.mutual import is_mutual
from clew.retrieve.order_sides import order_sense, tail_order
from clew.retrieve.question import NAME_MARK, QuestionShape
from clew.retrieve.relation_vectors import (
    find_converse,
    is_end_noun,
    is_same_end,
)
from clew.retrieve.verb_sides import share_start
from clew.text.irregular_verbs import BASE_OF_FORM
from clew.text.word_forms import function_words, word_class

Role = Literal["subject", "object", "noun", "of"]
"""Who does it, to whom it is done; what the noun names, and whose it is."""
Head = Literal["first", "second", "either", ""]
"""Which name is the head of a fact that says the claim, "" where that is not told."""
_OPPOSITE: dict[Role, Role] = {"subject": "object", "object": "subject", "noun": "of", "of": "noun"}
_AS_AGENT: dict[Role, Role] = {"noun": "subject", "of": "object"}
_AS_PATIENT: dict[Role, Role] = {"noun": "object", "of": "subject"}
_BE, _LEADING, _AGENTS, _PATIENTS, _CHECKING = (
    word_class("en", name)
    for name in ("be", "leading", "agent_endings", "patient_endings", "checking")
)
_VERB_ENDINGS = ("s", "ed", "ing")
_NAMES = 2


@dataclass(frozen=True, slots=True)
class Sides:
    """The words of a relation, the role of one of its two ends, and what leads to the object."""

    words: tuple[str, ...]
    role: Role
    leading: str = ""
    said: str = ""
    """The words with those beside them that are no content: "near", "next to"."""

    @property
    def phrase(self) -> str:
        """Return what the relation is called."""
        return self.said or " ".join(self.words)

    @property
    def is_verb(self) -> bool:
        """Whether the roles are those of a verb."""
        return self.role in ("subject", "object")

    def says(self, label: str) -> bool:
        """Whether these are words of a relation's name, in any form."""
        return _share_word(self.words, _content(label.split()))


def read_claim(shape: QuestionShape) -> Sides | None:
    """Return what an English question of yes or no claims, with the role of its first name."""
    keys = shape.keys
    names = [at for at, key in enumerate(keys) if key == NAME_MARK]
    if len(names) != _NAMES or keys[0] not in _CHECKING:
        return None
    between, behind = _drop_articles(keys[names[0] + 1 : names[1]]), keys[names[1] + 1 :]
    if not between:  # "Is X Y's child"
        return Sides(_content(behind), "noun") if behind[:1] == ("s",) else None
    if between[0] == "s":  # "Is X's child Y"
        return Sides(_content(between), "of")
    words, last, said = _content(between), between[-1], " ".join(between)
    if last == "by":
        return Sides(words[-1:], "object", said=said)
    if last == "of":
        return Sides(words, "noun", said=said)
    leading = last if last in _LEADING else ""
    noun = keys[0] in _BE and between[0] in ("the", "a", "an")
    return Sides(words, "noun" if noun else "subject", leading, said)


def read_noun(shape: QuestionShape) -> Sides | None:
    """Return what a question asks for as "the editor of X" or "X's editor" and as nothing else."""
    keys, at = shape.keys, shape.name_position
    if at < 0 or keys.count(NAME_MARK) > 1:
        return None
    before = _drop_articles(keys[:at])
    if before[-1:] == ("of",) and at == len(keys) - 1:
        words = _content(before[shape.question_word_position + 1 :])
    elif keys[at + 1 : at + 2] == ("s",):
        words = _content(keys[at + 1 :])
    else:
        return None
    return Sides(words, "noun") if words and len(words) == len(shape.words) else None


async def ends_at_other_side(ctx: Context, shape: QuestionShape, label: str, code: int) -> bool:
    """Whether a step ends at whom something is the editor of, where its editor is asked for."""
    asked = read_noun(shape)
    head = await find_head(ctx, asked, label) if asked else ""
    return head == ("second" if code % 2 else "first")


def read_end(label: str, code: int) -> Sides:
    """Return the words of a relation's name, with the role of what a step along it ends at."""
    tail = replace(read_tail(label, Sides((), "subject")), said=label)
    return tail if code % 2 == 0 else replace(tail, role=_OPPOSITE[tail.role])


def read_tail(label: str, claim: Sides) -> Sides:
    """Return the words of a relation's name, with the role of its tail.

    A word that may be a verb or a noun in the plural is what the claim has it for.
    """
    said = label.split()
    words, last = _content(said), said[-1]
    if len(said) > 1 and last == "by":
        return Sides(words[-1:], "subject")
    if len(said) > 1 and last == "of":
        return Sides(words, "of")
    if len(said) > 1 and last in _LEADING:
        return Sides(words, "object", last)
    noun = any(is_end_noun(word) or word.endswith(_AGENTS) for word in words)
    verb = last.endswith(_VERB_ENDINGS) or last in BASE_OF_FORM
    if noun or not verb or not claim.is_verb and _share_word(claim.words, words):
        return Sides(words, "noun")
    return Sides(words, "object")


async def find_head(ctx: Context, claim: Sides, label: str) -> Head:
    """Return which name of a claim is the head of a fact of the relation that says the claim."""
    tail = read_tail(label, claim)
    if claim.leading == "with" or "with" in label.split():
        return "either"
    if await is_mutual(ctx, claim.phrase) or await is_mutual(ctx, label):
        return "either"
    order = _compare_order(claim, label)
    if order:
        return order
    role = claim.role
    if claim.words and find_converse(claim.words, " ".join(tail.words)):
        role = _OPPOSITE[role]
    elif not _is_same(claim, tail):
        return ""
    own, other = role, tail.role
    if claim.is_verb != tail.is_verb:
        noun, verb = (tail, claim) if claim.is_verb else (claim, tail)
        as_verb = _read_as_verb(noun.words[-1], verb.words)
        own, other = as_verb.get(own, own), as_verb.get(other, other)
        if not as_verb:
            return ""
    return "second" if own == other else "first"


def _read_as_verb(noun: str, verbs: Sequence[str]) -> dict[Role, Role]:
    """Return the roles of a verb for those of a noun: a supplier supplies; a date does nothing."""
    if not _share_word([noun], verbs):
        return {}
    if noun.endswith(_PATIENTS):
        return _AS_PATIENT
    return _AS_AGENT if noun.endswith(_AGENTS) or noun in verbs else {}


def _compare_order(claim: Sides, label: str) -> Head:
    """Compare a claim that one is before or after the other with a relation that says so."""
    sense = next((order_sense(word) for word in claim.words if order_sense(word)), 0)
    tail = tail_order(label)
    if not sense or not tail:
        return ""
    first = sense if claim.role in ("subject", "noun") else -sense
    return "second" if first == tail else "first"


def _is_same(claim: Sides, tail: Sides) -> bool:
    """Whether claim and relation are of one word, of nouns for one end, or verbs used alike."""
    if claim.is_verb and tail.is_verb and claim.leading == tail.leading:
        return True
    same = any(is_same_end(one, other) for one in claim.words for other in tail.words)
    return same or _share_word(claim.words, tail.words)


def _share_word(some: Sequence[str], others: Sequence[str]) -> bool:
    bases = [BASE_OF_FORM.get(word, word) for word in others]
    return any(share_start(BASE_OF_FORM.get(word, word), base) for word in some for base in bases)


def _content(words: Sequence[str]) -> tuple[str, ...]:
    closed = function_words("en")
    return tuple(word for word in words if word not in closed and word != "s")


def _drop_articles(words: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out the article of the name behind."""
    return words[:-1] if len(words) > 1 and words[-1] in ("the", "a", "an") else words
