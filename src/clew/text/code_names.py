"""Names that are recognised by their form, in any text: flags, paths, identifiers, commands, codes.

No word lists: `--onto`, `/etc/hosts`, `shared_buffers`, `tar(1)`, `fsync()`, `$HOME`, `.tar.gz`,
`CVE-2024-3094`, `0x1F` and `fe80::1` look like what they are.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from clew.text.unicode import mask_unspaced
from clew.text.units import load_units

FLAG, PATH, IDENTIFIER, COMMAND, VARIABLE, CODE, VERSION, ADDRESS = (
    *("flag", "path", "identifier", "command", "variable", "code", "version", "address"),
)
_CURRENCY = f"(?:{'|'.join(load_units().currency_codes)})"
_BEFORE = r"(?<![\w@/.$\\-])"
_PATTERNS = {
    # A letter must follow the dashes, so that neither numbers nor list marks are flags; and a short
    # flag with its value, such as `-ograph.png`, is none, and no mode of a file: -rw-r--r--.
    FLAG: r"(?<![\w\-–/.\\])(?:--[A-Za-z](?:-*\w)*+|-[A-Za-z](?:-*\w)*+(?![.:]\w|-))",
    ADDRESS: r"(?<![\w:.])(?:https?://[^\s<>\"'|)\]]{4,200}(?<![.,;:!?])|"
    r"(?:[0-9a-fA-F]{0,4}:){3,7}[0-9a-fA-F]{1,4}|\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?)(?![\w:])",
    PATH: r"(?<![\w/.:<)\]}])(?:~|\.{1,2})?/(?:[\w.+@%*~-]*[A-Za-z][\w.+@%*~-]*)"
    r"(?:/[\w.+@%*~<>-]+)*/?(?<![.,])"
    r"|(?<![\w/.:<@-])[\w.+-]+(?:/[\w.+-]+)+\.[A-Za-z][A-Za-z0-9]{0,4}(?![\w/])",  # src/a.py
    VARIABLE: r"(?<![\w$])\$(?:\{[A-Za-z_]\w*\}|[A-Za-z_]\w*)|(?<![\w%])%[A-Z][A-Z_]+%",
    COMMAND: rf"{_BEFORE}[A-Za-z_][\w.+-]*\([1-9][a-z]{{0,4}}\)",
    IDENTIFIER: (
        rf"{_BEFORE}(?:[A-Za-z_][\w:]*(?:\.[A-Za-z_]\w*)*\(\)"  # called
        r"|[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+(?!\w)"  # dotted
        r"|_*[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+_*"  # joined by underscores
        r"|[a-z]+[0-9]*(?:[A-Z][a-z0-9]+)+"  # camelCase
        r"|[A-Za-z_]\w*(?:::[A-Za-z_]\w*)+"
        r"|[a-z]+(?:-[a-z]+)*-[A-Z][A-Z]\w*"  # set-user-ID
        r"|[a-z]+(?:-[a-z]+)+-\d+(?![\w-])"  # gw-edge-02
        r"|[a-z][a-z0-9]*:[a-z][a-z0-9]*(?=[\s,.;)])(?!:)"  # root:root
        r")"
    ),
    CODE: rf"{_BEFORE}(?!{_CURRENCY}[ ]?\d)(?:[A-Z]{{2,6}}[- ]?\d{{2,}}(?:-\d+)*|[A-Z]-\d{{3,}}"
    r"|[A-Z]{2,6}-\d|[A-Z]\d{2,4}|0x[0-9A-Fa-f]+|E[A-Z]{3,})(?![\w-])",
    VERSION: rf"{_BEFORE}v\d+(?:\.\d+){{1,3}}(?:-?(?:rc|beta|alpha)\d*)?(?!\w)",
    "suffix": r"(?<![\w.)\]])\.[a-z][a-z0-9]{1,5}(?:\.[a-z][a-z0-9]{1,4})?(?![\w(])",
}
DEFINED, SECTION = "defined term", "section"
CODE_TYPES = frozenset(_PATTERNS) | {DEFINED, SECTION}
"""Types of the names that are recognised by their form."""
# Every name begins where a word does, and none is a word of small letters, or a number, between
# blanks and the like: whole stretches of prose are passed at once.
_PROSE = (
    r"(?:(?<!\w)(?:[A-Za-z][a-z]*+|[0-9]++)(?:[\s,;)\"'’“”!?]|[.](?=\s))"
    r"(?:[\s,;)\"“”]|[.](?=\s))*+)++"
)
_NAME = re.compile(
    "|".join([_PROSE, *(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items())])
)
_SECTION = re.compile(
    r"^\f? {0,3}#{1,6}[ \t]+((?:[^\W\d_]+[ \t]+)?\d{1,3}(?:\.\d{1,3})*|第.{1,4}[章节節条條编編部]"
    r"|[A-Z]\.\d{1,3}(?:\.\d{1,3})*)\.?:?(?=[ \t]+\S)",
    re.MULTILINE,
)
_MARKED = re.compile(r"(?<!`)`([^`\n]{2,60})`(?!`)")
_USAGE = re.compile(r"\s+[\[<{(].*$", re.DOTALL)  # what a synopsis adds to a name
_COMMAND_WORD = re.compile(r"[A-Za-z_./~$][\w./+~$-]+")  # a key such as "n" is explained, not run
_ARGUMENT = re.compile(r"[\w./+~$@%=:*-]*\w[\w./+~$@%=:*-]*(?<!:)")
_GIVEN = re.compile(r"([A-Za-z_]\w+(?:[.-]\w+)*)=[^=\s]\S*")  # a parameter and its value
_MAX_COMMAND_WORDS = 4
_CLOSING, _OPENING, _MAX_MARKS = ")\"'’”“»«*_`]", " \t\n([{„‚|,/=:", 4
_TWO_CAPITALS = re.compile(r"[A-Z][A-Z0-9]")
_LONG_FORM = re.compile(r"\(([A-Z][A-Za-z0-9-]{1,9}?)s?\)")
_SHORT_FORM = re.compile(
    r"\b([A-Z][A-Z0-9]{1,8})s? \(([A-Za-z][\w-]+(?:[ -][A-Za-z][\w-]+){1,7})\)"
)
# "SLO: service level objective, the target": an entry of a glossary, a row or a definition.
_GLOSSED = re.compile(r"(?<![\w-])([A-Z][A-Z0-9]{1,8})s?(?:\s*[:=|]|\s+[–—-])\s+(?=[A-Za-z])")
_LONG_WORDS = re.compile(r"[A-Za-z][\w-]*(?: [A-Za-z][\w-]*){1,11}")
_ABBREVIATION = re.compile(r"(?:e\.g|i\.e|etc|vs|al|cf|approx)\b", re.IGNORECASE)
_GLUED = re.compile(r"^[A-Z]?[a-z]{2,}\.[A-Z][a-z]*$")
_SMALL_WORDS = frozenset("of the and for in on to a an de la".split())


_STRONG = re.compile(
    r"\w_\w|/.*\.\w|^--\w|^[A-Z]+-\d{2,}|^[A-Z]-\d{3}|^0x|::|^/.*/|\(\d\)$|^[a-z]+-[a-z-]+-\d+$"
    r"|^[A-Z]{2,6} (?!1\d{3}$|20\d\d$)\d{3,}$|^\d+\.\d+\.\d+\.\d+"  # RFC 2119, but no year
)


class CodeName(NamedTuple):
    """A name by its form, where it stands in the text."""

    start: int
    end: int
    name: str
    type: str


def find_code_names(text: str) -> Iterator[CodeName]:
    """Yield the names in a text that are recognised by their form, in order."""
    for found in _NAME.finditer(mask_unspaced(text)):
        kind = found.lastgroup
        if kind is None:
            continue
        name = text[found.start() : found.end()]
        if kind == IDENTIFIER and not _is_identifier(name):
            continue
        if kind == FLAG and _is_behind_mark(text, found.start()):
            continue
        if kind == PATH and (len(name) < 3 or name.count("/") == len(name)):
            continue
        yield CodeName(found.start(), found.end(), name.removesuffix("()"), kind)


def _is_behind_mark(text: str, at: int) -> bool:
    """Whether marks join a dash to what is before it: »%«-Zeichen is no option."""
    before = text[max(0, at - _MAX_MARKS) : at]
    bare = before.rstrip(_CLOSING)
    return len(bare) < len(before) and bare[-1:].strip(_OPENING) != ""


def find_sure_names(text: str) -> list[CodeName]:
    """Return the names whose form no word of prose has: `TTP_ERR_AGE`, `E-4071`, `src/a.py`."""
    kinds = (FLAG, PATH, IDENTIFIER, COMMAND, CODE, ADDRESS)
    return [n for n in find_code_names(text) if n.type in kinds and _STRONG.search(n.name)]


def _is_identifier(name: str) -> bool:
    if _ABBREVIATION.match(name) and "." in name:
        return False
    if "_" in name or name.endswith("()") or "::" in name or ":" in name:
        return any(map(str.isalpha, name)) and len(name) > 2
    if "." in name:
        # "the end.Start of" lacks a blank; an identifier goes on in small letters.
        return all(len(part) > 1 for part in name.split(".")) and not _GLUED.search(name)
    return len(name) > 3


def find_marked(text: str) -> Iterator[CodeName]:
    """Yield what a text marks as code by backticks: a name where it is short."""
    for found in _MARKED.finditer(text):
        if name := name_marked(found[1]):
            at = text.index(name, found.start(1))
            yield CodeName(at, at + len(name), name, marked_type(name))


def name_marked(code: str) -> str:
    """Return the name in marked code: a word, or a command's words before its arguments.

    `pipe [<command>]` is `pipe`, and `reraise=True` is `reraise`; an expression, or a line that
    explains a key, has none.
    """
    bare = code.strip().removesuffix("()").strip()
    if given := _GIVEN.fullmatch(bare):
        return given[1]
    plain = bare[: usage.start()] if (usage := _USAGE.search(bare)) else bare
    words = plain.split()
    if len(words) > _MAX_COMMAND_WORDS or len(plain) < 2 or not any(map(str.isalpha, plain)):
        return ""
    if len(words) > 1 and not (_COMMAND_WORD.fullmatch(words[0]) and _all_words(words[1:])):
        return ""
    return plain


def _all_words(words: list[str]) -> bool:
    return all(map(_ARGUMENT.fullmatch, words))


def marked_type(name: str) -> str:
    """Return what marked code is: an option, a command with its words, or an identifier."""
    if name.startswith("-"):
        return FLAG
    return COMMAND if " " in name else IDENTIFIER


def find_section_numbers(text: str) -> Iterator[CodeName]:
    """Yield the numbers of headings: "12.1" of `## 12.1 Memory`, "Article 3"."""
    if "#" not in text:
        return
    for found in _SECTION.finditer(text):
        yield CodeName(found.start(1), found.end(1), " ".join(found[1].split()), SECTION)


def find_acronyms(text: str) -> Iterator[tuple[str, str]]:
    """Yield pairs of an acronym and its long form: "Name Service Switch (NSS)", or the reverse."""
    bracketed = "(" in text
    capitals = _TWO_CAPITALS.search(text) is not None
    for found in _SHORT_FORM.finditer(text) if bracketed and capitals else ():
        if _matches(found[1], re.split(r"[ -]", found[2])):
            yield found[1], found[2]
    for found in _GLOSSED.finditer(text) if capitals else ():
        if long := _take_long_form(found[1], _LONG_WORDS.match(text, found.end())):
            yield found[1], long
    for found in _LONG_FORM.finditer(text) if bracketed else ():
        words = re.findall(r"[A-Za-z0-9][\w]*", text[max(0, found.start() - 120) : found.start()])
        before = text[max(0, found.start() - 120) : found.start()].rstrip()
        for size in range(2, min(len(words), len(found[1]) + 3) + 1):
            if _matches(found[1], words[-size:]):
                at = before.rfind(words[-size])
                while size > 1 and len(re.findall(r"\w+", before[at:])) != size and at > 0:
                    at = before.rfind(words[-size], 0, at)
                yield found[1], " ".join(before[at:].split())
                break


def _take_long_form(acronym: str, found: re.Match[str] | None) -> str:
    """Return the first words that an acronym is made of, or ""."""
    words = found[0].split() if found else []
    for size in range(2, len(words) + 1):
        long = " ".join(words[:size])
        if _matches(acronym, re.split(r"[ -]", long)):
            return long
    return ""


def _matches(acronym: str, words: list[str]) -> bool:
    """Whether the letters of an acronym are the initials of words, small words left out or not."""
    letters = [char for char in acronym.lower() if char.isalnum()]
    full = [word[0].lower() for word in words if word]
    short = [word[0].lower() for word in words if word and word.lower() not in _SMALL_WORDS]
    if not words or words[0].lower() in _SMALL_WORDS:
        return False
    return len(letters) > 1 and letters in (full, short)
