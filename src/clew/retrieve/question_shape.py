"""The shape of a question: its function words in order, and of what kind the other words are.

"How do bees communicate?" and "How do tariffs rise?" have one shape, whatever they are about;
a vector says mostly what a text is about. A linear model on both (`clew.retrieve.wording`) tells
how something is asked from what it is asked of.
"""

import re
from collections.abc import Mapping

from clew.retrieve.question import QUESTION_WORDS
from clew.text.names import STOP_WORDS, tokenize_question

_HEAD = 8  # words from the beginning of a question whose order is looked at
_LONGEST = 3  # words of a run
_TAIL = 9  # words at the end among which "the river that passes it rises where?" asks
_LENGTH, _MAX_LENGTH = 10, 3.0  # words that a question's length is measured in, and its most
_NUMBER, _NAME, _PLURAL = "<number>", "<name>", "<plural>"
_BEGIN, _END, _COMMA = "<", ">", ","
FUNCTION_WORDS = QUESTION_WORDS | STOP_WORDS
_SINGULAR_END = re.compile(r"(?:ss|us|is|ics|news|series|species)\Z")
_ASKING = frozenset("what how which when who why where".split())


def is_plural(word: str) -> bool:
    """Whether a word in lower case looks like a plural."""
    return len(word) > 2 and word.endswith("s") and not _SINGULAR_END.search(word)


def describe_shape(question: str) -> Mapping[str, float]:
    """Return the features of a question's shape: runs of words at its beginning, and what it has.

    A word that is no function word stands there as its kind: a name, a number, a plural, or by its
    ending.
    """
    kinds = _read_kinds(question)
    head = kinds[: _HEAD + 1]
    runs = {
        " ".join(head[at : at + size]): 1.0
        for size in range(1, _LONGEST + 1)
        for at in range(len(head) - size + 1)
    }
    has = {f"has {kind}": 1.0 for kind in (_NUMBER, _NAME, _PLURAL, _COMMA) if kind in kinds}
    asking = [at for at, kind in enumerate(kinds) if kind in _ASKING]
    asked = {
        "asks twice": any(kinds[at - 1] == "and" for at in asking),
        "asks late": bool(asking) and asking[0] > len(kinds) - _TAIL,
        "asks nothing": not asking,
    }
    length = {"length": min(_MAX_LENGTH, len(kinds) / _LENGTH)}
    return {**runs, **has, **{name: 1.0 for name, is_so in asked.items() if is_so}, **length}


def _read_kinds(question: str) -> list[str]:
    """Return a question's words, those that are no function words as kinds; a name is one."""
    tokens = tokenize_question(question)
    kinds, end = [_BEGIN], 0
    for at, key in enumerate(tokens.keys):
        if at and _COMMA in question[end : tokens.starts[at]]:
            kinds.append(_COMMA)
        end = tokens.ends[at]
        kind = _NUMBER if tokens.digit[at] else _find_kind(key, at > 0 and tokens.upper[at])
        if kind != _NAME or kinds[-1] != _NAME:
            kinds.append(kind)
    return [*kinds, _END]


def _find_kind(key: str, upper: bool) -> str:
    if key in FUNCTION_WORDS:
        return key
    if upper:
        return _NAME
    ending = next((one for one in ("ing", "ed") if key[2:].endswith(one)), "")  # not "king"
    return f"<{ending or 'word'}>" if not is_plural(key) else _PLURAL
