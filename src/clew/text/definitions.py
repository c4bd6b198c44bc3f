"""Tells whether a text has a term as it is written, and whether it defines it.

Options, identifiers and codes differ in one sign: `-n` is no part of `--name`, `work_mem` none of
`maintenance_work_mem`. A definition is a line that begins with its term and gives a value or
meaning, there or on the next line: an entry of a manual, a row of a table, an item of a list.
"""

import re

from clew.text.names import name_key
from clew.text.unicode import mask_unspaced

_HEAD_END = re.compile(r"\s{2,}|\t|\||: | = | ?\(")  # what stands between a term and its value
_MARKED = re.compile(r"[ \t]*(?:[-*•+][ \t]+[`*]*|[`*]+)")  # an item, or a marked name
_ROW_LABEL = re.compile(r"^[ \t]*\| [^|:\n]{1,60}: ")  # the column of a row's first value
_MAX_HEAD = 80  # characters of a line before its value
_BODY = re.compile(r"[ \t]*:[ \t]+\S|[ \t]{2,}\S")  # the line after a term that stands alone


_SIGNED_LETTERS = re.compile(r"(?<!\S)[%\\@&$^~!:+/][A-Za-z]{1,2}(?![\w.,-]?\w)")  # %W, \\n


def find_signed_letters(text: str) -> list[str]:
    """Return the letters with a sign before them, as lists of formats and escapes have them."""
    return _SIGNED_LETTERS.findall(text)


def holds_term(term: str, text: str) -> bool:
    """Whether a text has a term as it is, not as a part of another; `A_B` may be written "A B"."""
    if words := name_key(term).split() if "_" in term else ():
        parted = r"[\W_]+".join(map(re.escape, words))
        return re.search(rf"(?<![\w-]){parted}(?![\w-])", text, re.IGNORECASE) is not None
    text = mask_unspaced(text) if term.isascii() else text
    return re.search(rf"(?<![\w-])(?<!\d[.,]){re.escape(term)}(?![\w-]|[.,]\d)", text) is not None


def defines_term(term: str, text: str) -> bool:
    """Whether a line begins with a term and gives its value or meaning, there or on the next.

    Of letters with a sign a list may have the letters alone.
    """
    if _begins_definition(term, text):
        return True
    return _SIGNED_LETTERS.fullmatch(term) is not None and _begins_definition(term[1:], text)


def _begins_definition(term: str, text: str) -> bool:
    lines, key = text.split("\n"), name_key(term)
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if not holds_term(term, line):
            continue
        deeper = len(after) - len(after.lstrip()) > len(line) - len(line.lstrip())
        if (marked := _MARKED.match(line)) and (own := line[marked.end() :]):
            said = any(map(str.isalpha, own[len(term) :])) or (deeper and after.strip())
            if said and holds_term(term, own[: len(term) + 1]):
                return True
        bare = _ROW_LABEL.sub("", line).strip(" \t|*•`")
        end = _HEAD_END.search(bare)
        head, rest = (bare[: end.start()], bare[end.end() :]) if end else (bare, "")
        usage = head.startswith("[")  # of a command, with what may be left out
        parts = head.split(",") if len(head) <= _MAX_HEAD and not usage else ()
        begins = any(holds_term(term, p) and name_key(p).startswith(key) for p in parts)
        goes_on = _BODY.match(after) and (deeper or after.lstrip().startswith(":"))
        if begins and (rest.strip() or goes_on):
            return True
    return False
