"""Tidies manual pages that were printed to a text file (`man tar | col -b > tar.txt`).

Such a page stands between lines that repeat its name and section, `TAR(1)`. What the formatter
wrote for a terminal is undone: tab stops become columns again, overstruck letters single ones,
the space that justifies lines goes, and titles of subsections, set between the margin and the
text, become headings.
"""

import re
from collections import Counter
from itertools import pairwise

from clew.ingest.readers.text_terms import measure_indent

_NAME = r"[^\s()]+\(\d\w*\)"
_HEADER = re.compile(rf"(?P<name>{_NAME})[ \t]{{2,}}(?:\S.*\S[ \t]+)?(?P=name)[ \t]*")
_FOOTER = re.compile(rf"\S.*[ \t]{{2,}}(?P<name>{_NAME})[ \t]*")
_OVERSTRUCK = re.compile(r".\x08")
_TAB = 8  # columns from one tab stop to the next
_SECTION = re.compile(r"[^\W\d_]\S*(?: \S+)*")
_SUBSECTION = re.compile(r" {2,3}[^\W\d_]\S*(?: \S+)*")
_MAX_TITLE = 70  # characters
_LEAST_DEPTH = 2  # columns by which the text stands deeper than its title
_JUSTIFIED_LINE = 66  # columns
_GAP = re.compile(r"(?<=\S) {2,3}(?=\S)")
_WIDE_GAP = re.compile(r"\S {4,}\S")
_OPTION = re.compile(r"(?P<margin> *)(?P<term>-{1,2}\S+(?: [^\sa-z]\S*)*) +(?P<text>\S.*)")


def find_manual_title(text: str) -> str:
    """Return which page a printed manual page is, as `tar(1)`; nothing for any other text."""
    found = _HEADER.fullmatch(_OVERSTRUCK.sub("", text.lstrip("\n").split("\n", 1)[0]))
    if found is None:
        return ""
    name, section = found["name"].split("(")
    return f"{name.lower() if name.isupper() else name}({section}"


def tidy_printed_manual(text: str) -> str:
    """Return a printed manual page as text with headings; any other text as it is."""
    if not find_manual_title(text):
        return text
    lines = [line.expandtabs(_TAB).rstrip() for line in _OVERSTRUCK.sub("", text).split("\n")]
    names = {found["name"] for line in lines if (found := _HEADER.fullmatch(line))}
    lines = ["" if _is_running(line, names) else line for line in lines]
    body = _find_body_column(lines)
    lines = [part for at in range(len(lines)) for part in _split_option(lines, at, body)]
    return "\n".join(_tidy_line(lines, at) for at in range(len(lines))).strip("\n") + "\n"


def _is_running(line: str, names: set[str]) -> bool:
    """Whether a line only says which page this is, above or below it."""
    found = _HEADER.fullmatch(line) or _FOOTER.fullmatch(line)
    return found is not None and found["name"] in names


def _find_body_column(lines: list[str]) -> int:
    """Return the column in which what options mean begins, mostly; 0 if there are none."""
    below = Counter(
        measure_indent(after)
        for line, after in pairwise(lines)
        if line.lstrip().startswith("-") and measure_indent(after) > measure_indent(line)
    )
    return below.most_common(1)[0][0] if below else 0


def _split_option(lines: list[str], at: int, body: int) -> list[str]:
    """Return an option and what it means, where both stand on one line, as two lines."""
    line = lines[at]
    found = None if at and lines[at - 1] else _OPTION.fullmatch(line)
    if found is None or found["term"].endswith(",") or found.start("text") != body:
        return [line]
    return [found["margin"] + found["term"], " " * body + found["text"]]


def _tidy_line(lines: list[str], at: int) -> str:
    """Return a line as a heading if it is a title; spaces that only justify it are left out."""
    line = lines[at]
    if _is_title(lines, at):
        return f"{'#' * (2 if line[0] != ' ' else 3)} {line.strip()}"
    if len(line) >= _JUSTIFIED_LINE and not _WIDE_GAP.search(line):
        return _GAP.sub(" ", line)
    return line


def _is_title(lines: list[str], at: int) -> bool:
    """Whether a line is the title of a section, or, a little deeper, of a subsection."""
    line = lines[at]
    above = lines[at - 1] if at else ""
    is_section = _SECTION.fullmatch(line) is not None and not above
    below_title = not above or (_SECTION.fullmatch(above) is not None and above.isupper())
    if len(line) > _MAX_TITLE or not (is_section or (_SUBSECTION.fullmatch(line) and below_title)):
        return False
    after = next((one for one in lines[at + 1 :] if one), "")
    return measure_indent(after) >= measure_indent(line) + _LEAST_DEPTH
