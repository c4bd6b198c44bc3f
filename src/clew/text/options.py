"""Multiple-choice questions as text: options on lines or in one line."""

import re
from collections.abc import Mapping
from string import ascii_uppercase

_OPTION_LINE = re.compile(r"\s*([A-Z])[.)、:．：]\s*(\S.*?)\s*")
# "A)" and "(A)" may follow any word; "A." may be an initial, unless the question ends before it.
_IN_LINE = (
    (re.compile(r"(?<!\w)[(（]?([A-Z])[)）]\s*"), ""),
    (re.compile(r"(?<!\w)([A-Z])[.、:．：]\s*"), "?？:：。"),
)
_OPTION_END = re.compile(r"\s*[,;，；、]?(?:\s+(?:or|and))?\s*$")
_MIN_OPTIONS = 2


def format_options(question: str, options: Mapping[str, str]) -> str:
    """Return the question followed by its options, one per line."""
    return "\n".join([question, *(f"{letter}. {text}" for letter, text in options.items())])


def split_options(question: str) -> tuple[str, dict[str, str]]:
    """Split a question into what it asks and the options at its end, if it has any."""
    lines = question.rstrip().splitlines()
    options: dict[str, str] = {}
    while lines and (found := _OPTION_LINE.fullmatch(lines[-1])):
        options = {found[1]: found[2]} | options
        lines.pop()
    whole = len(options) >= _MIN_OPTIONS and bool(lines)
    if whole and ascii_uppercase.startswith("".join(options)):
        return "\n".join(lines), options
    for mark, before in _IN_LINE:
        if len((found_in_line := _split_in_line(question, mark, before))[1]) >= _MIN_OPTIONS:
            return found_in_line
    return ("\n".join(lines), options) if whole else (question, {})


def _split_in_line(question: str, mark: re.Pattern[str], before: str) -> tuple[str, dict[str, str]]:
    """Split off options marked A, B, … in order; the first follows one of `before`, if given."""
    marks: list[re.Match[str]] = []
    for found in mark.finditer(question):
        asked = question[: found.start()].rstrip()
        starts = bool(asked) and (not before or asked[-1] in before)
        if found[1] == ascii_uppercase[len(marks)] and (marks or starts):
            marks.append(found)
    ends = [found.start() for found in marks[1:]] + [len(question)]
    texts = [
        _OPTION_END.sub("", question[found.end() : end])
        for found, end in zip(marks, ends, strict=False)
    ]
    # What goes on to a question mark names things by letters in the question itself.
    if not marks or not all(texts) or texts[-1].endswith(("?", "？")):
        return question, {}
    return question[: marks[0].start()].rstrip(), dict(zip(ascii_uppercase, texts, strict=False))
