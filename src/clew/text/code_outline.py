"""The outline of source code: its classes and functions as sections, by indentation.

No language is parsed: a line that introduces a name by one of the usual keywords, or a line of C
that ends in an opening brace, begins a section, together with the comments and marks before it.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from clew.text.structure import Heading

CODE_FORMAT = "code"
"""The format of a document whose text is code or settings."""
CODE_SUFFIXES = frozenset(
    ".py .pyi .c .h .cc .cpp .cxx .hpp .hh .cs .java .kt .kts .scala .swift .go .rs .js .mjs .cjs "
    ".jsx .ts .tsx .vue .rb .php .pl .pm .lua .r .jl .m .mm .sh .bash .zsh .fish .ps1 .sql .hs .ml "
    ".ex .exs .erl .clj .el .lisp .dart .zig .nim .f90 .f .pas .asm .s .cmake .mk .gradle .groovy "
    ".proto .yaml .yml .toml .ini .cfg .conf .properties .css .scss .less".split()
)
"""Suffixes of files whose text is code or settings: `# …` is a comment there, not a heading."""
_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async"
    r"|pub(?:\(\w+\))?|unsafe|virtual|override|inline|extern|const|open|data|sealed|local"
    r")[ \t]+){0,5}"
)
_NAMED = re.compile(
    rf"(?P<indent>[ \t]{{0,24}}){_MODIFIERS}"
    r"(?P<kind>def|class|function|func|fn|struct|enum|union|trait|impl|interface|module|namespace|"
    r"sub|proc|procedure|package|object|record|protocol|extension|macro_rules!|defmodule|"
    r"create[ \t]+(?:or[ \t]+replace[ \t]+)?(?:table|view|function|index|procedure))"
    r"[ \t]+(?:if[ \t]+not[ \t]+exists[ \t]+)?(?:\([^)\n]{0,60}\)[ \t]*)?"
    r"(?P<name>[\w.:$<>~-]{1,80})",
    re.IGNORECASE,
)
_C_FUNCTION = re.compile(
    r"(?P<indent>)[A-Za-z_][\w \t*&:<>,]{0,120}?\b(?P<name>[A-Za-z_~][\w:~]{0,80})"
    r"\([^;{}]{0,300}\)?[ \t]*(?:const[ \t]*)?\{?[ \t]*"
)
_SETTINGS_TABLE = re.compile(r"(?P<indent>)\[{1,2}(?P<name>[^\]\n]{1,80})\]{1,2}[ \t]*")
_LEADING = re.compile(r"[ \t]*(?:@\w|#(?!include|define|if|endif)|//|/\*|\*|--|\"\"\"|\[<|#\[)")
_NO_FUNCTION = re.compile(r"(?:if|for|while|switch|return|else|catch|do|case|typedef)\b")
_MAX_LINE = 400
_NESTED_LEVEL = 2


def is_code(name: str) -> bool:
    """Whether a document's name says that it is code or settings."""
    return PurePosixPath(name).suffix.lower() in CODE_SUFFIXES


def find_code_headings(text: str) -> Iterator[Heading]:
    """Yield the lines that introduce a class, a function or a table of settings."""
    at = 0
    before: int | None = None  # where the comments and marks before the current line begin
    for line in text.split("\n"):
        end = at + len(line) + 1
        found = _match_heading(line) if len(line) <= _MAX_LINE else None
        if found:
            start = at if before is None else before
            level = _NESTED_LEVEL if found["indent"] else 1
            yield Heading(start, end, level, _title(found))
            before = None
        elif _LEADING.match(line):
            before = at if before is None else before
        else:
            before = None
        at = end


def _match_heading(line: str) -> re.Match[str] | None:
    if found := _NAMED.match(line):
        return found
    if line.startswith("["):
        return _SETTINGS_TABLE.fullmatch(line)
    if "(" in line and line[:1].isalpha() and not _NO_FUNCTION.match(line):
        return _C_FUNCTION.fullmatch(line)
    return None


def _title(found: re.Match[str]) -> str:
    kind = found.groupdict().get("kind")
    name = found["name"].rstrip(":<")
    return f"{' '.join(kind.split())} {name}" if kind else name
