"""The outline of source code and settings: classes, functions and tables as sections.

No language is parsed: a line that introduces a name by one of the usual keywords, a function before
a brace, a table or a mapping of settings begins a section, together with the comments and marks
before it. Sections nest by indentation; after a blank line, what stands no deeper than the line
that began a section is no longer in it.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import PurePosixPath

from clew.text.structure import Heading, Section, nest_sections

CODE_FORMAT = "code"
"""The format of a document whose text is code or settings."""
_WITH_BRACES = frozenset(
    ".c .h .cc .cpp .cxx .hpp .hh .cs .java .kt .kts .scala .swift .js .mjs .cjs .jsx .ts .tsx "
    ".vue .php .pl .pm .m .mm .sh .bash .zsh .dart .groovy .gradle .r".split()
)
_WITH_TABLES = frozenset(".toml .ini .cfg .conf .properties".split())
_WITH_MAPPINGS = frozenset(".yaml .yml".split())
_WITH_KEYWORDS = frozenset(
    ".py .pyi .go .rs .rb .lua .jl .fish .ps1 .sql .hs .ml .ex .exs .erl .clj .el .lisp .zig .nim "
    ".f90 .f .pas .asm .s .cmake .mk .proto .css .scss .less".split()
)
CODE_SUFFIXES = _WITH_BRACES | _WITH_TABLES | _WITH_MAPPINGS | _WITH_KEYWORDS
"""Suffixes of files whose text is code or settings: `# …` is a comment there, not a heading."""
_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async"
    r"|pub(?:\([\w ]+\))?|unsafe|virtual|override|inline|extern|const|open|data|sealed|local"
    r")[ \t]+){0,5}"
)
_KEYWORDS = (
    r"(?:defp?|class|function|func|fun|fn|struct|enum|union|trait|interface|mod|module|namespace|sub"
    r"|proc|procedure|object|record|protocol|extension|macro_rules!|defmodule|message|service|type"
    r"|impl(?:<[^>\n]{0,60}>)?(?:[ \t]+[\w:<>]{1,80}[ \t]+for(?=[ \t]))?"
    r"|(?i:create[ \t]+(?:or[ \t]+replace[ \t]+)?(?:table|view|function|index|procedure)"
    r"(?:[ \t]+if[ \t]+not[ \t]+exists)?))"
)
_PYTHON = ("def", "class")  # in its comments other words begin lines: "module. Use it …"
# What stands behind a name is no word: lines of comments begin like "class of", "type the".
_NAMED = re.compile(
    rf"(?P<indent>[ \t]{{0,24}}){_MODIFIERS}(?P<kind>{_KEYWORDS})[ \t]+"
    r"(?:\((?:\w+[ \t]+)?\*?(?P<owner>\w{1,60})(?:\[\w+\])?\)[ \t]*)?"
    r"(?P<name>[\w$~?!](?:[\w.$~?!-]|::){0,79})"
    r"(?=[ \t]*(?:[^\w \t.\"'*)]|$|(?:struct|interface|extends|implements|where|is|as|on|do)\b))"
)
_FUNCTION = re.compile(
    r"(?P<indent>[ \t]{0,24})(?:[\w$][\w \t*&:<>,\[\]?.$]{0,120}[ \t*&])?"
    r"(?P<name>[A-Za-z_$~][\w:~$]{0,80})\([^;{}]{0,300}?\)?[^;{}()\"'=]{0,80}(?P<brace>\{.*)?"
)
_ARROW = re.compile(
    rf"(?P<indent>){_MODIFIERS}(?:let|var)?[ \t]*(?P<name>[\w$]{{1,80}})[ \t]*=[ \t]*"
    r"(?:async[ \t]*)?(?:function\b|(?:\([^()\n]{0,200}\)|\w+)[^=\n]{0,60}=>).*"
)
_TABLE = re.compile(r"(?P<indent>)\[{1,2}(?P<name>[^\]\n]{1,80})\]{1,2}[ \t]*(?:[#;].*)?")
_MAPPING = re.compile(r"(?P<indent>[ \t]{0,24})(?P<name>[\w./\"'-][^:#\n]{0,79}):[ \t]*(?:[#&].*)?")
_LEADING = re.compile(r"[ \t]*(?:@\w|#(?!include|define|if|endif)|//|/\*|\*|--|\"\"\"|\[<|#\[)")
_NO_FUNCTION = re.compile(
    r"[ \t]*(?:if|for|foreach|while|until|switch|return|else|catch|do|case|typedef|new|throw|try"
    r"|with|using|lock|synchronized|await|function)\b"
)
_BEGINS_STATEMENT = re.compile(r"[ \t]*[A-Za-z_$@](?!\w*:$)|[ \t]*(?:try|else|finally):$")
_MAX_LINE = 400
_TAB = 4  # columns


@lru_cache(maxsize=1024)  # asked for each span that is read of a document
def is_code(name: str) -> bool:
    """Whether a document's name says that it is code or settings."""
    return _suffix(name) in CODE_SUFFIXES


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def find_code_sections(text: str, name: str, *, inside: bool = False) -> list[Section]:
    """Return the sections of a document's text, or of a part; `inside`: it begins in a section."""
    return nest_sections(text, find_code_headings(text, name, inside=inside))


def find_code_headings(text: str, name: str, *, inside: bool = False) -> Iterator[Heading]:
    """Yield the lines that introduce a class, a function or a table of settings.

    One without a title stands where a section ends and its outer one goes on.
    """
    lines = text.split("\n")
    first = _guess_indent(lines) if inside else 0  # a part of a text begins without its indent
    opened: list[int] = []  # indents of the lines that began the sections around
    at = 0
    before: int | None = None  # where the comments and marks before the current line begin
    after_blank = False
    for number, line in enumerate(lines):
        end = at + len(line) + 1
        indent = _indent_of(line) if number else max(first, _indent_of(line))
        found = _match_heading(lines, number, _suffix(name)) if len(line) <= _MAX_LINE else None
        ended = after_blank and bool(opened) and indent <= opened[-1]
        if found or (ended and _BEGINS_STATEMENT.match(line)):
            opened = [one for one in opened if one < indent]
            start = at if before is None else before
            level = len(opened) + 1
            if found:
                yield Heading(start, end, level, _title(found))
                opened.append(indent)
            else:
                yield Heading(start, start, level, "")
            before = None
        elif _LEADING.match(line):
            before = at if before is None else before
        else:
            before = None
        after_blank = not line.strip() or (after_blank and before is not None)
        at = end


def _guess_indent(lines: list[str]) -> int:
    """Return the indent that the first line of a part had: that of the least deep one after it.

    It is less where the next line has that indent: then this is the body of what it begins.
    """
    indents = [_indent_of(line) for line in lines[1:] if line.strip(" \t})];")]
    return max(0, min(indents) - (indents[0] == min(indents))) if indents else 0


def _indent_of(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip())].expandtabs(_TAB))


def _match_heading(lines: list[str], number: int, suffix: str) -> re.Match[str] | None:
    line = lines[number]
    if suffix in _WITH_TABLES:
        return _TABLE.fullmatch(line)
    if suffix in _WITH_MAPPINGS:
        found = _MAPPING.fullmatch(line)
        after = next((one for one in lines[number + 1 :] if one.strip()), "")
        return found if _indent_of(after) > _indent_of(line) else None
    if found := _NAMED.match(line):
        return found if found["kind"] in _PYTHON or suffix not in (".py", ".pyi") else None
    if suffix in _WITH_BRACES and not _NO_FUNCTION.match(line):
        return _match_function(line, *lines[number + 1 : number + 2]) or _ARROW.fullmatch(line)
    return None


def _match_function(line: str, after: str = "") -> re.Match[str] | None:
    """Match a function without a keyword: before a brace, or at the margin with a type."""
    found = _FUNCTION.fullmatch(line) if "(" in line else None
    if found is None or (found["brace"] and line.count("(") != line.count(")")):
        return None
    typed = not found["indent"] and found.start("name") > 0
    return found if found["brace"] or after.strip() == "{" or typed else None


def _title(found: re.Match[str]) -> str:
    name = found["name"].strip("\"'").rstrip(":.")
    owner = found.groupdict().get("owner")
    return f"{owner}.{name}" if owner else name
