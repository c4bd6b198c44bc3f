r"""Expands the macros that a LaTeX document defines: `\newcommand`, `\def` and their like.

Expansion is bounded in depth, in number and in size, so that macros within macros cost little.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

VERBATIM = frozenset("verbatim verbatim* lstlisting minted Verbatim alltt comment".split())
"""Environments that are taken as they stand."""
_VERBATIM_PART = re.compile(
    r"\\begin\{(" + "|".join(re.escape(name) for name in sorted(VERBATIM)) + r")\}.*?\\end\{\1\}",
    re.DOTALL,
)
_COMMENT = re.compile(r"(?<!\\)%[^\n]*")
_LITERAL = re.compile(r"\\(?:url|href|path)\{[^}\s]*\Z|\\verb(.)(?:(?!\1).)*\Z")  # before a `%`
_COMMAND = re.compile(
    r"\\(?:newcommand|renewcommand|providecommand|DeclareRobustCommand|DeclareMathOperator)\*?\s*"
    r"(?:\{\s*\\([A-Za-z@]+)\s*\}|\\([A-Za-z@]+))\s*"
    r"(?:\[(\d)\]\s*(?:\[([^\]\n]{0,200})\]\s*)?)?(?=\{)"
)
_DEFINITION = re.compile(r"\\[gex]?def\s*\\([A-Za-z@]+)\s*((?:#\d){0,9})\s*(?=\{)")
_CALL = re.compile(r"\\([A-Za-z@]+)\*?")
_PARAMETER = re.compile(r"#(\d)")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
# What the reader interprets itself stays, whatever a document makes of it.
_KEPT = frozenset(
    "part chapter section subsection subsubsection paragraph item footnote begin end title label "
    "cite ref href url verb texttt emph textbf maketitle caption bibitem".split()
)
_MAX_MACROS = 2_000
_MAX_BODY = 5_000  # characters of a macro, and of an argument
_MAX_DEPTH = 12
_MAX_LOOK = 200  # characters before a comment that may make it none
_MAX_CALLS = 50_000
_MAX_GROWTH = 1_000_000  # characters that macros may add


class _Macro(NamedTuple):
    body: str
    arguments: int
    default: str | None  # of the first argument, where it may be left out


def strip_comments(text: str) -> str:
    """Return a text without its comments and what they name; listings have none."""
    if "%" not in text:
        return text
    listings = [found.span() for found in _VERBATIM_PART.finditer(text)]
    pieces, at = list[str](), 0
    for found in _COMMENT.finditer(text):
        while listings and listings[0][1] <= found.start():
            listings.pop(0)
        before = text[max(0, found.start() - _MAX_LOOK) : found.start()].rpartition("\n")[2]
        if (listings and listings[0][0] <= found.start()) or _LITERAL.search(before):
            continue
        pieces.append(text[at : found.start()])
        alone = not before.strip()  # a line that is a comment ends no paragraph
        at = min(found.end() + alone, len(text))
    return "".join([*pieces, text[at:]])


def expand_macros(text: str) -> str:
    """Return a document with its own macros replaced by what they stand for."""
    text, macros = _take_definitions(text)
    if not macros:
        return text
    expander = _Expander(macros)
    found, at = [], 0
    for verbatim in _VERBATIM_PART.finditer(text):
        found += [expander.expand(text[at : verbatim.start()]), verbatim[0]]
        at = verbatim.end()
    return "".join([*found, expander.expand(text[at:])])


def _take_definitions(text: str) -> tuple[str, dict[str, _Macro]]:
    """Return a text without the definitions in it, and these."""
    macros: dict[str, _Macro] = {}
    kept, at = [], 0
    hidden = [found.span() for found in _VERBATIM_PART.finditer(text)]
    hidden += [found.span() for found in _COMMENT.finditer(text)]
    inside = sorted(hidden)
    for found in sorted([*_COMMAND.finditer(text), *_DEFINITION.finditer(text)], key=_start):
        while inside and inside[0][1] <= found.start():
            inside.pop(0)
        if found.start() < at or (inside and inside[0][0] <= found.start()):
            continue
        end = find_brace_end(text, found.end())
        if end < 0 or len(macros) >= _MAX_MACROS:
            continue
        name, macro = _make_macro(found, text[found.end() + 1 : end])
        if name not in _KEPT:
            macros[name] = macro
        kept.append(text[at : found.start()])
        at = end + 1
    return "".join([*kept, text[at:]]), macros


def _start(found: re.Match[str]) -> int:
    return found.start()


def _make_macro(found: re.Match[str], body: str) -> tuple[str, _Macro]:
    if found.re is _DEFINITION:
        return found[1], _Macro(body, found[2].count("#"), None)
    return found[1] or found[2], _Macro(body, int(found[3] or 0), found[4])


def find_brace_end(text: str, at: int) -> int:
    """Return where the brace at a position is closed; -1 if that is not near."""
    depth = 0
    for found in _BRACE.finditer(text, at, at + _MAX_BODY):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return found.start() if found[0] == "}" else -1
    return -1


class _Expander:
    """Replaces calls of macros, until it has done enough."""

    def __init__(self, macros: Mapping[str, _Macro]) -> None:
        self._macros = macros
        self._calls = _MAX_CALLS
        self._room = _MAX_GROWTH

    def expand(self, text: str, depth: int = 0) -> str:
        """Return a text with the macros in it replaced."""
        found, at = [], 0
        for call in _CALL.finditer(text):
            macro = self._macros.get(call[1])
            if macro is None or call.start() < at or self._calls <= 0 or depth >= _MAX_DEPTH:
                continue
            arguments, end = _read_arguments(text, call.end(), macro)
            body = _PARAMETER.sub(
                lambda one, given=arguments: (
                    given[int(one[1]) - 1]  # type: ignore[misc]
                    if 0 < int(one[1]) <= len(given)
                    else ""
                ),
                macro.body,
            )
            self._calls -= 1
            self._room -= len(body)
            if self._room < 0:
                break
            found += [text[at : call.start()], self.expand(body, depth + 1)]
            at = end
        return "".join([*found, text[at:]])


def _read_arguments(text: str, at: int, macro: _Macro) -> tuple[list[str], int]:
    """Return the arguments of a call, and where it ends; `{}` may end one without any."""
    given: list[str] = []
    if macro.default is not None:
        end = text.find("]", at, at + _MAX_BODY) if text[at : at + 1] == "[" else -1
        given.append(text[at + 1 : end] if end >= 0 else macro.default)
        at = end + 1 if end >= 0 else at
    while len(given) < macro.arguments:
        first = at + len(text[at : at + 20]) - len(text[at : at + 20].lstrip())
        end = find_brace_end(text, first) if text[first : first + 1] == "{" else -1
        given.append(text[first + 1 : end] if end >= 0 else text[first : first + 1])
        at = end + 1 if end >= 0 else first + 1
    if not macro.arguments and text[at : at + 2] == "{}":
        at += 2
    return given, at
