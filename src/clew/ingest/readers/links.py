"""Leaves out tables of contents in Markdown, and where the links of a saved web page lead to.

Pages saved as Markdown hold an address for every link and image, menus included: up to two thirds
of their characters. Read as text, addresses fill passages, are embedded, and become names. Pages in
HTML are read without them, too. A text with few links keeps full addresses, which may be what it is
about; those of pages beside it (`tolm.md`, `#notes`) say nothing and are left out of any text.
"""

import re

_MIN_LINKS = 20  # of a page; notes and manuals have fewer, or addresses are a small part of them
_MIN_SHARE = 0.1  # of the characters
# `](address "title")`; an address may hold one pair of brackets, as in `Gauss_(unit)`.
_TARGET = re.compile(
    r"\]\([ \t]*+(?:<[^<>\n]*+>|(?:[^()\s]|\([^()\s]*+\))*+)"
    r"(?:\s++(?:\"[^\"]*+\"|'[^']*+'))?+\s*+\)"
)
# Code stays as it is; what has a scheme or begins with `//` or a variable is a full address.
_CODE = re.compile(
    r"^[ \t]{0,3}(```|~~~).*?(?:^[ \t]{0,3}\1|\Z)|`[^`\n]+`", re.DOTALL | re.MULTILINE
)
_BESIDE = re.compile(r"\]\([ \t]*+<?(?![a-zA-Z][a-zA-Z0-9+.-]*+:|//|www\.)[^\s<>()]")
_NO_ADDRESS = "]()"
# Innermost first: an image may be what is linked.
_LABEL = re.compile(r"!?\[([^\[\]]*+)\]\(\)(?=(\S)?)")
# Items that are only links to sections, with the heading before them if there is one.
_CONTENTS = re.compile(
    r"(?P<heading>^ {0,3}#{1,6}[ \t].*\n\s*+)?(?:^[ \t]*+(?:[-*+]|\d{1,3}[.)])[ \t]++"
    r"\[[^\[\]\n]++\]\([^()\s#:]*+#[^()\s]++\)[ \t]*+"
    r"(?:\n[ \t]*+(?=\n|\Z))*+(?:\n|\Z)){3,}+(?=(.?))",
    re.MULTILINE,
)


def leave_out_contents(text: str) -> str:
    """Return a text without lists of nothing but links to sections that no sentence announces."""
    return _CONTENTS.sub(_keep_around, text) if "](" in text else text


def _keep_around(match: re.Match[str]) -> str:
    """Return what stays of contents: nothing, or the heading of a section that goes on."""
    heading, following = match["heading"] or "", match[2]
    if not heading and match.string[: match.start()].rstrip()[-1:] in (":", "："):
        return match[0]
    return "" if following in ("", "#") else heading


def leave_out_link_targets(text: str) -> str:
    """Return a text with the labels alone of links to pages beside it; of a saved page, of all."""
    found = [len(match[0]) for match in _TARGET.finditer(text)]
    if len(found) < _MIN_LINKS or sum(found) < _MIN_SHARE * len(text):
        return _leave_out_beside(text) if found else text
    return _write_labels(_TARGET.sub(_NO_ADDRESS, text))


def _leave_out_beside(text: str) -> str:
    """Return a text without the targets of links to pages beside it, outside of code."""
    pieces, at = list[str](), 0
    for code in _CODE.finditer(text):
        if "](" not in code[0]:  # a label may be code
            continue
        pieces += [_write_beside(text[at : code.start()]), code[0]]
        at = code.end()
    return "".join((*pieces, _write_beside(text[at:])))


def _write_beside(text: str) -> str:
    shown = _TARGET.sub(lambda one: _NO_ADDRESS if _BESIDE.match(one[0]) else one[0], text)
    return _write_labels(shown) if shown != text else text


def _write_labels(text: str) -> str:
    for _ in range(2):
        text = _LABEL.sub(_write_label, text)
    return text


def _write_label(match: re.Match[str]) -> str:
    """Return a link's label, apart from a link or word that follows it without a space."""
    label, after = match[1].strip(), match[2] or ""
    return f"{label} " if label and (after.isalnum() or after in ("[", "!")) else label
