"""Finds diagrams that are drawn with signs in plain text: boxes, arrows, fields of bits.

A drawing is a run of lines without a blank one in which at least one is nothing but a drawn rule
(`+-+-+`, `+-----+`), and the others have borders, arrows, or only numbers (the ruler above bits).
"""

import re
from collections.abc import Iterator
from itertools import groupby

Span = tuple[int, int]
_RULE = re.compile(r"[ \t]*[+|.'`,:][-=~_.:*^v<>/\\|+'`, \t]{2,}[ \t]*")
_JOINTS = re.compile(r"[+|.'`][-=~]{1,}[+|.'`]")
_BORDERED = re.compile(r"[ \t]*[|+].*|.*[|+][ \t]*|.*(?:--+[>|+]|<--|[|+]--).*")
_RULER = re.compile(r"[ \t]*\d+(?:[ \t]+\d+)+[ \t]*")
_LEAST_LINES = 3
_MAX_LINE = 200  # characters


def find_drawings(text: str) -> Iterator[Span]:
    """Yield the spans of drawings, in whole lines."""
    if "--" not in text and "-+" not in text:
        return
    lines: list[tuple[int, str]] = []
    at = 0
    for line in text.split("\n"):
        lines.append((at, line))
        at += len(line) + 1
    for is_drawn, group in groupby(lines, key=lambda one: _is_drawn(one[1])):
        run = list(group)
        ruled = any(_is_rule(line) for _, line in run) if is_drawn else False
        if ruled and len(run) >= _LEAST_LINES:
            yield run[0][0], run[-1][0] + len(run[-1][1])


def _is_rule(line: str) -> bool:
    return _RULE.fullmatch(line) is not None and _JOINTS.search(line) is not None


def _is_drawn(line: str) -> bool:
    if not line.strip() or len(line) > _MAX_LINE:
        return False
    return any(one.fullmatch(line) for one in (_RULER, _BORDERED)) or _is_rule(line)


def fence_drawings(text: str) -> str:
    """Return a text with its drawings as blocks of code."""
    pieces, done = [], 0
    for start, end in find_drawings(text):
        if text.count("```", 0, start) % 2:
            continue
        pieces += [text[done:start], "```\n", text[start:end], "\n```"]
        done = end
    return "".join([*pieces, text[done:]])
