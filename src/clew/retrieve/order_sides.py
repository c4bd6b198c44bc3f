"""Which of two neighbours in an order a question asks for, and which one a step leads to.

"What precedes X" and "what comes before X" ask for the earlier one, whether the graph says
"successor", "follows", "next" or "preceded by".
"""

from collections.abc import Sequence
from typing import Literal

from clew.retrieve.question import NAME_MARK, QuestionShape
from clew.text.word_forms import word_class

Order = Literal[-1, 0, 1]
"""Earlier, not told, later."""
_LATER, _EARLIER, _FOLLOWING, _PRECEDING, _BEHIND, _AHEAD, _DO = (
    frozenset(word_class("en", name))
    for name in (
        *("later_one", "earlier_one", "following", "preceding", "later_than", "earlier_than"),
        "do",
    )
)
_MOST_BETWEEN = 3  # words between the name and what says its place


def asked_order(shape: QuestionShape) -> Order:
    """Return whether a question about one name asks for what is before or after it in an order."""
    keys, name = shape.keys, shape.name_position
    if name < 0 or keys.count(NAME_MARK) > 1:
        return 0
    telling = _find_telling(keys)
    before = [at for at in telling if name - _MOST_BETWEEN <= at < name]
    after = [at for at in telling if at > name]
    if before:
        return _read_before(keys, before[-1], name)
    if after and after[0] - name <= _MOST_BETWEEN + 1:
        return _read_after(keys, after[0], name)
    return 0


def order_sense(word: str) -> Order:
    """Return what a word says of its subject: that it is the later or the earlier one."""
    if word in _LATER or word in _FOLLOWING or word in _BEHIND:
        return 1
    return -1 if word in _EARLIER or word in _PRECEDING or word in _AHEAD else 0


def _find_telling(words: Sequence[str]) -> list[int]:
    """Return which words tell an order; "next to" is a place, at either side."""
    return [
        at
        for at, word in enumerate(words)
        if order_sense(word) and (word, *words[at + 1 : at + 2]) != ("next", "to")
    ]


def _turn(order: Order, turned: bool) -> Order:
    return (-1 if order > 0 else 1) if turned and order else order


def _read_before(keys: tuple[str, ...], at: int, name: int) -> Order:
    """Read "what follows X", "what is followed by X", "what comes after X", "successor of X"."""
    return _turn(
        order_sense(keys[at]), keys[at] in _FOLLOWING | _PRECEDING and "by" in keys[at:name]
    )


def _read_after(keys: tuple[str, ...], at: int, name: int) -> Order:
    """Read "X's successor", "what does X follow", "what is X followed by", "what X comes after"."""
    if keys[at] in _LATER | _EARLIER:
        return _turn(order_sense(keys[at]), keys[name + 1] != "s")
    passive = keys[at] in _FOLLOWING | _PRECEDING and keys[at + 1 : at + 2] == ("by",)
    return _turn(order_sense(keys[at]), not passive)


def tail_order(label: str) -> Order:
    """Return whether the tail of a relation with this name is the later or the earlier one."""
    words = label.split()
    telling = _find_telling(words)
    if not telling:
        return 0
    word, last = words[telling[0]], words[-1]
    if word in _LATER | _EARLIER:  # who has a successor is before it; "successor of" is turned
        return _turn(order_sense(word), last == "of")
    return _turn(order_sense(word), last != "by")


def compare_order(shape: QuestionShape, label: str, code: int) -> Order:
    """Return 1 where a step leads to the neighbour that is asked for, -1 to the other, 0 untold."""
    asked, tail = asked_order(shape), tail_order(label)
    if not asked or not tail:
        return 0
    return 1 if asked == _turn(tail, bool(code % 2)) else -1
