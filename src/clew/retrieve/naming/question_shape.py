"""Parses a question: content words, position of the name, and the kind of answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clew.names import Tokens, tokens
from clew.retrieve.naming.question_words import QUESTION_WORDS

Sought = Literal["person", "time", "place", ""]

# Question words that may also name a relation.
_TELLING = frozenset("born die died film song album book name named last first".split())
_IDLE = QUESTION_WORDS - _TELLING
# Words for a relation followed there and back: another film of the same director.
_SHARING = frozenset(
    "same also share shared shares sharing together other others else another both co".split()
)
_SHARING_SIGNS = ("同", "一起", "共同", "其他", "另外", "也")
_SEEKING: dict[str, Sought] = {
    **dict.fromkeys(("who", "whom", "person"), "person"),
    **dict.fromkeys(("when",), "time"),
    **dict.fromkeys(("where",), "place"),
}
_SEEKING_SIGNS: tuple[tuple[str, Sought], ...] = (
    *(
        ("谁", "person"),
        ("何时", "time"),
        ("什么时候", "time"),
        ("哪年", "time"),
        ("哪一年", "time"),
    ),
    *(("哪里", "place"), ("何处", "place"), ("在哪", "place")),
)
_WHICH = frozenset(("what", "which"))
_NEAR = 6  # words after "what" or "which" that are searched for the noun
NAME = "\0"  # replaces a name


@dataclass(frozen=True, slots=True)
class Shape:
    """A parsed question with its names removed."""

    words: tuple[str, ...]
    places: tuple[int, ...]
    """The content words, and the position of each."""
    name: int
    """Position of the first name; -1 when it is not in the question."""
    asking: int
    """Position of the question word; -1 for none."""
    sought: Sought
    nouns: tuple[str, ...]
    """The nouns after `what` or `which`."""
    sharing: bool
    rest: str
    """The question's words without names."""


def shape_of(question: str, spans: Sequence[tuple[int, int]]) -> Shape:
    """Parse a question whose names are at these token spans (first, last)."""
    t = tokens(question)
    keys = _masked(t, spans)
    asking, sought, nouns = _asked(keys)
    if not sought:
        sought = next((kind for sign, kind in _SEEKING_SIGNS if sign in question), "")
    content = [
        (at, key)
        for at, key in enumerate(keys)
        if key != NAME and key not in _IDLE and key not in _SHARING
    ]
    if not content:
        content = [(at, key) for at, key in enumerate(keys) if key != NAME]
    sharing = any(key in _SHARING for key in keys) or any(s in question for s in _SHARING_SIGNS)
    return Shape(
        tuple(key for _, key in content),
        tuple(at for at, _ in content),
        keys.index(NAME) if NAME in keys else -1,
        asking,
        sought,
        nouns,
        sharing,
        " ".join(key for key in keys if key != NAME),
    )


def spans_of(question: str, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the token spans (first, last) of names in a question; absent names are left out."""
    t = tokens(question)
    found: list[tuple[int, int]] = []
    for name in names:
        keys = tokens(name).keys
        size = len(keys)
        for at in range(len(t) - size + 1) if size else ():
            if t.keys[at : at + size] == keys and not _taken(found, at, at + size):
                found.append((at, at + size))
                break
    return sorted(found)


def _taken(spans: Sequence[tuple[int, int]], first: int, last: int) -> bool:
    return any(first < b and a < last for a, b in spans)


def _masked(t: Tokens, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Return the folded words, each name replaced by one mark."""
    inside = {at for first, last in spans for at in range(first, last)}
    opens = {first for first, _ in spans}
    keys = []
    for at, key in enumerate(t.keys):
        if at in opens:
            keys.append(NAME)
        elif at not in inside:
            keys.append(key)
    return keys


def _asked(keys: Sequence[str]) -> tuple[int, Sought, tuple[str, ...]]:
    """Return the position of the question word, the kind of answer, and the nouns after it."""
    for at, key in enumerate(keys):
        if key in _SEEKING and key != "person":
            return at, _SEEKING[key], ()
        if key in _WHICH:
            nouns = _nouns(keys[at + 1 : at + 1 + _NEAR])
            kinds: list[Sought] = [_SEEKING[noun] for noun in nouns if noun in _SEEKING]
            return (at, kinds[0], ()) if kinds else (at, "", nouns)
    return -1, "", ()


def _nouns(after: Sequence[str]) -> tuple[str, ...]:
    """Return the first two content words in a row."""
    run: list[str] = []
    for key in after:
        skipped = key in _IDLE or key in _SHARING
        if key == NAME or (skipped and run):
            break
        if not skipped:
            run.append(key)
    return tuple(run[:2])
