"""Marks questions and answers of plain text, such as a FAQ's `Q:` and `A:`, as definitions.

Any two marks that take turns are read, in any language, if most of what stands at the first one are
questions. A question is the term of its answer, so that both are found and quoted together.
"""

import re
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

_TURN = re.compile(
    r" {0,3}(?:\d{1,3}[.)] ?)?(?P<mark>[^\W\d_]{1,12}) ?\d{0,3} ?(?:[:.)][ \t]+|：[ \t]*)(?=\S)"
)
_UNDERLINE = re.compile(r"([=\-~*^#])\1{2,}[ \t]*")
_ASKS = ("?", "？", "؟")
_MAX_MARK_CHARS = 2  # letters of a mark that says nothing: "Q", "A", "问"
_LEAST_PAIRS = 2
_ANSWERED = 0.8  # share of the first marks that the second one follows
_ASKING = 0.6  # share of them with a question mark
_MAX_QUESTION_CHARS = 400
_BODY = "    "  # the indent of a definition's body


class _Turn(NamedTuple):
    line: int
    mark: str
    column: int  # where its text begins


def mark_questions(text: str) -> str:
    """Write questions with their answers as definitions; a text without them stays as it is."""
    lines = text.split("\n")
    turns = [
        _Turn(at, found["mark"].casefold(), _text_column(found))
        for at, line in enumerate(lines)
        if (found := _TURN.match(line))
    ]
    pairs = Counter((a.mark, b.mark) for a, b in pairwise(turns) if a.mark != b.mark)
    if not pairs:
        return text
    (asks, answers), count = pairs.most_common(1)[0]
    asked = [one for one in turns if one.mark == asks]
    if count < _LEAST_PAIRS or count < _ANSWERED * len(asked):
        return text
    turns = [one for one in turns if one.mark in (asks, answers)]
    answered = [(a, b) for a, b in pairwise(turns) if (a.mark, b.mark) == (asks, answers)]
    questions = [_join_question(lines, a, b.line) for a, b in answered]
    if sum(one.endswith(_ASKS) for one in questions) < _ASKING * len(answered):
        return text
    return _write(lines, answered, questions)


def _text_column(found: re.Match[str]) -> int:
    """Where the text of a turn begins: a longer mark may be who speaks, and is kept."""
    return found.end() if len(found["mark"]) <= _MAX_MARK_CHARS else found.start("mark")


def _join_question(lines: list[str], turn: _Turn, end: int) -> str:
    """Return a question as one line; "" for one of several paragraphs, which is none."""
    body = "\n".join([lines[turn.line][turn.column :], *lines[turn.line + 1 : end]]).strip()
    whole = "\n\n" not in body and len(body) <= _MAX_QUESTION_CHARS
    return " ".join(body.split()) if whole else ""


def _write(lines: list[str], pairs: list[tuple[_Turn, _Turn]], questions: list[str]) -> str:
    written: list[str] = []
    at = 0
    starts = [asked.line for asked, _ in pairs[1:]] + [len(lines)]
    for (asked, answered), question, until in zip(pairs, questions, starts, strict=True):
        if not question:
            continue
        end = _find_end(lines, answered.line, until)
        written += lines[at : asked.line]
        if written and written[-1].strip():
            written.append("")
        written += [question, *_indent(lines, answered, end), ""]
        at = end
    return "\n".join(written + lines[at:])


def _find_end(lines: list[str], start: int, until: int) -> int:
    """Return the line after an answer: the next question, a heading, or the end of the indent."""
    indented = lines[start + 1 : start + 2] != [] and lines[start + 1][:1] in (" ", "\t")
    for at in range(start + 1, until):
        below = lines[at + 1] if at + 1 < until else ""
        margin = lines[at][:1].strip() != ""
        if margin and (lines[at].startswith("#") or _UNDERLINE.fullmatch(below)):
            return at
        if margin and indented and not lines[at - 1].strip():
            return at
    return until


def _indent(lines: list[str], turn: _Turn, end: int) -> list[str]:
    """Return the lines of an answer as a definition's body, without their common indent."""
    rest = lines[turn.line + 1 : end]
    while rest and not rest[-1].strip():
        rest = rest[:-1]
    least = min((len(one) - len(one.lstrip()) for one in rest if one.strip()), default=0)
    body = [_BODY + one[least:] if one.strip() else "" for one in rest]
    return [f":   {lines[turn.line][turn.column :]}", *body]
