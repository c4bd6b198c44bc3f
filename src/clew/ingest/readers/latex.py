"""Reads LaTeX: sections, lists, descriptions, tables and listings; commands become their text."""

import re
from collections.abc import Iterator
from typing import Any

from clew.errors import InputError
from clew.ingest.readers.decode import decode
from clew.ingest.readers.latex_labels import resolve_references
from clew.ingest.readers.latex_macros import VERBATIM, expand_macros, strip_comments
from clew.ingest.readers.latex_symbols import ACCENTS, OPERATORS, SYMBOLS
from clew.ingest.readers.markup import MarkupWriter
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document, read_bytes
from clew.ingest.readers.table_text import write_table
from clew.ingest.readers.text import describe_work
from clew.text.unicode import clean
from clew.types import Document

_SECTION_LEVELS = {
    "part": 1,
    "chapter": 1,
    "section": 2,
    "subsection": 3,
    "subsubsection": 4,
    "paragraph": 5,
}
_LISTS = frozenset("itemize enumerate description".split())
_TABLES = frozenset("tabular tabular* tabularx longtable array".split())
_DROPPED = frozenset(
    "label pagestyle thispagestyle usepackage documentclass "
    "bibliographystyle bibliography includegraphics vspace hspace setlength addtolength "
    "newcommand renewcommand providecommand DeclareMathOperator input include index pagenumbering "
    "setcounter hypersetup definecolor color geometry nocite tikzset "
    "graphicspath vskip hskip newtheorem newenvironment makeatletter makeatother".split()
)
_CITATIONS = frozenset("cite citep citet citealp citeauthor autocite parencite textcite".split())
_BIB_ITEM = re.compile(r"\\bibitem\s*(?:\[[^\]]{0,400}\])?\s*\{([^{}]{1,200})\}")
# Signs that LaTeX writes behind a backslash, held as others until its own are dropped.
_HELD_SIGNS = {"$": "\ue000", "{": "\ue001", "}": "\ue002"}
_ACCENT = re.compile(
    r"\\(?P<mark>[\"'`^~=.]|[cvuHrk](?![A-Za-z]))"
    r"(?:\{\\?(?P<braced>[A-Za-zı])\}|[ \t]{0,4}\\?(?P<bare>[A-Za-zı]))"
)
_TOKEN = re.compile(
    r"\\begin\s*\{([^{}\n]{1,40})\}|\\end\s*\{([^{}\n]{1,40})\}"
    r"|\\([A-Za-z@]+)\*?|(\\\\)|\\(.)|(\n[ \t]*\n\s*)",
)
_SPACES = {"\\": "\n", ",": " ", " ": " ", ";": " ", "-": "", "/": ""}
_OPTIONAL = re.compile(r"\s*\[[^\]\n]{0,400}\]")
_FRACTIONS = frozenset({"frac", "dfrac", "tfrac", "nicefrac"})
_QUANTITIES = frozenset({"SI", "qty"})
_TWO_ARGUMENTS = _FRACTIONS | _QUANTITIES | {"href"}
_UNIT_NAME = re.compile(r"\\([A-Za-z]+)\s*")
_UNIT_PREFIXES = frozenset(
    "quecto ronto yocto zepto atto femto pico nano micro milli centi deci deca hecto kilo mega "
    "giga tera peta exa zetta yotta ronna quetta".split()
)
_CODE_COMMANDS = frozenset({"texttt", "code", "verb", "lstinline", "mintinline"})
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)  # an escaped brace is no brace
_MAX_ARGUMENT_CHARS = 20_000
_MAX_FIELD_CHARS = 300
_MAX_NESTING = 40


def read_latex(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    r"""Read LaTeX; the title is that of `\title`, else the first heading."""
    raw, encoding = decode(read_bytes(source, budget))
    bare = strip_comments(clean(raw).translate(dict.fromkeys(range(0xE000, 0xE003))))
    text = resolve_references(expand_macros(bare))
    title = _find_argument(text, r"\title")
    begin = text.find(r"\begin{document}")
    page = LatexPage()
    page.read(text[begin + 16 :] if begin >= 0 else text)
    written = page.writer.text()
    if not written:
        raise InputError("has no text besides commands")
    metadata: dict[str, Any] = {"format": "latex", "encoding": encoding}
    if page.writer.marked:
        metadata["terms"] = page.writer.terms()
    for field in ("author", "date"):
        said = page.plain(re.sub(r"\\and\b|\\\\", ", ", _find_argument(text, rf"\{field}")))
        if said and len(said) <= _MAX_FIELD_CHARS:
            metadata[field] = said
    text = describe_work(metadata) + written
    yield make_document(text, page.plain(title) or page.title, source.name, metadata)


def _find_argument(text: str, command: str) -> str:
    at = text.find(command + "{")
    return _braced(text, at + len(command))[0] if at >= 0 else ""


def _braced(text: str, at: int) -> tuple[str, int]:
    """Return the argument in braces at a position, and where it ends; it must be near."""
    if text[at : at + 1] != "{":
        return "", at
    depth = 0
    for end in range(at, min(len(text), at + _MAX_ARGUMENT_CHARS)):
        if text[end] == "{":
            depth += 1
        elif text[end] == "}":
            depth -= 1
            if not depth:
                return text[at + 1 : end], end + 1
    return "", at + 1


def _name_units(unit: str) -> str:
    r"""Return a unit with its commands as words: `\kilo\metre\per\hour` is kilometre per hour."""
    return _UNIT_NAME.sub(lambda one: one[1] + " " * (one[1] not in _UNIT_PREFIXES), unit).strip()


def _accented(found: re.Match[str]) -> str:
    return (found["braced"] or found["bare"]) + ACCENTS[found["mark"]]


def _match_braces(text: str) -> dict[int, int]:
    """Return where each brace is closed; in one pass, so that nesting costs nothing."""
    closing: dict[int, int] = {}
    open_at: list[int] = []
    for found in _BRACE.finditer(text):
        if found[0] == "{":
            open_at.append(found.start())
        elif found[0] == "}" and open_at:
            closing[open_at.pop()] = found.start()
    return closing


class LatexPage:
    """Interprets LaTeX in one pass; unknown commands are dropped and their arguments kept."""

    def __init__(self) -> None:
        self.writer = MarkupWriter()
        self.title = ""
        self._text: list[str] = []
        self._lists: list[str] = []
        self._counts: list[int] = []
        self._in_item: list[bool] = []
        self._notes: list[str] = []
        self._written_notes = 0
        self._closing: dict[int, int] = {}
        self._references: dict[str, int] = {}

    def read(self, text: str) -> None:
        """Read the body of a document."""
        self._closing = _match_braces(text)
        for key in _BIB_ITEM.findall(text):
            self._references.setdefault(key.strip(), len(self._references) + 1)
        at = 0
        while at < len(text):
            found = _TOKEN.search(text, at)
            if found is None:
                self._add(text[at:])
                break
            self._add(text[at : found.start()])
            at = self._read_token(text, found)
            if text.startswith(r"\end{document}", found.start()):
                break
        self._write_notes()

    def _write_notes(self) -> None:
        self._flush()
        for note in self._notes[self._written_notes :]:
            self.writer.paragraph(note)
        self._written_notes = len(self._notes)

    def _read_token(self, text: str, found: re.Match[str]) -> int:
        begins, ends, command, line_break, symbol, blank = found.groups()
        if begins:
            return self._begin(text, begins, found.end())
        if ends:
            self._end(ends)
        elif command:
            return self._command(text, command, found.start(), found.end())
        elif line_break:
            self._text.append("\n")
        elif blank:
            self._flush()
        elif symbol:
            return self._symbol(text, found)
        return found.end()

    def _add(self, piece: str) -> None:
        if piece:
            self._text.append(" ".join(piece.split("\n")))

    def _flush(self) -> None:
        text = _finish("".join(self._text))
        self._text = []
        if text.strip():
            self.writer.paragraph(text)

    def _symbol(self, text: str, found: re.Match[str]) -> int:
        if accent := _ACCENT.match(text, found.start()):
            self._text.append(_accented(accent))
            return accent.end()
        symbol = found[5]
        if symbol in "[(":
            closing = "\\]" if symbol == "[" else "\\)"
            end = text.find(closing, found.end())
            if 0 <= end < found.end() + _MAX_ARGUMENT_CHARS:
                self._text.append(f" {text[found.end() : end].strip()} ")
                return end + 2
        self._text.append(_HELD_SIGNS.get(symbol) or _SPACES.get(symbol, symbol))
        return found.end()

    def _command(self, text: str, command: str, start: int, at: int) -> int:
        if symbol_end := self._letter(text, command, start, at):
            return symbol_end
        if command == "item":
            return self._item(text, at)
        if command == "bibitem":
            return self._reference(text, start, at)
        if command in {"verb", "lstinline"} and text[at : at + 1] not in {"", "{", "["}:
            end = text.find(text[at], at + 1)
            self._text.append(text[at + 1 : end] if end > 0 else "")
            return end + 1 if end > 0 else at
        while optional := _OPTIONAL.match(text, at):
            at = optional.end()
        argument, end = self._argument(text, at)
        if command in _SECTION_LEVELS:
            self._heading(command, argument)
            return end
        second, after = self._argument(text, end) if command in _TWO_ARGUMENTS else ("", end)
        written = self._write_command(command, argument, second)
        # Without one, the text of its argument is read as it stands.
        if written is None:
            return at
        self._text.append(written)
        return after

    def _write_command(self, command: str, argument: str, second: str) -> str | None:
        """Return the text of a command with its arguments; None if that is the argument's."""
        if command in _DROPPED:
            return ""
        if command == "footnote":
            # Not as entries of the bibliography, which have numbers alone.
            self._notes.append(f"[^{len(self._notes) + 1}]: {self.plain(argument)}")
            return f"[^{len(self._notes)}]"
        if command == "href":
            return self.plain(second)
        if command in _QUANTITIES:
            return f"{self.plain(argument)} {self.plain(_name_units(second))}"
        if command == "si":
            return self.plain(_name_units(argument))
        if command in _FRACTIONS:
            return f"{_bracket(self.plain(argument))}/{_bracket(self.plain(second))}"
        if command in _CITATIONS:
            return self._cite(argument)
        if command in _CODE_COMMANDS:
            self.writer.marked[self.plain(argument)] += 1
            return self.plain(argument)
        return None

    def _argument(self, text: str, at: int) -> tuple[str, int]:
        """Return the argument in braces at a position of the body, and where it ends."""
        end = self._closing.get(at, -1)
        if 0 <= end - at <= _MAX_ARGUMENT_CHARS:
            return text[at + 1 : end], end + 1
        return "", at

    def _letter(self, text: str, command: str, start: int, at: int) -> int:
        """Write an accented letter or a symbol, and return where it ends; 0 if it is none."""
        if accent := _ACCENT.match(text, start):
            self._text.append(_accented(accent))
            return accent.end()
        if command in OPERATORS:
            self._text.append(f" {command}" + " " * text[at : at + 1].isalnum())
            return at
        if command not in SYMBOLS:
            return 0
        self._text.append(SYMBOLS[command])
        return at + (text[at : at + 2] == "{}") * 2

    def _reference(self, text: str, start: int, at: int) -> int:
        """Begin an entry of the bibliography with the number that it is cited by."""
        self._flush()
        found = _BIB_ITEM.match(text, start)
        if not found:
            return at
        self._text.append(f"[{self._references.get(found[1].strip(), 0)}] ")
        return found.end()

    def _cite(self, keys: str) -> str:
        """Return the numbers of cited entries; "" where the bibliography is another file."""
        numbers = [self._references.get(key.strip()) for key in keys.split(",")]
        return "".join(f"[{number}]" for number in numbers if number)

    def _heading(self, command: str, argument: str) -> None:
        self._write_notes()  # they belong to the section that ends here
        title = self.plain(argument)
        self.title = self.title or title
        self._lists, self._counts, self._in_item = [], [], []
        self.writer.heading(_SECTION_LEVELS[command], title)

    def _begin(self, text: str, name: str, at: int) -> int:
        if name in VERBATIM:
            end = text.find(f"\\end{{{name}}}", at)
            body = text[at : end if end >= 0 else len(text)]
            while optional := _OPTIONAL.match(body):
                body = body[optional.end() :]
            if name == "minted":
                body = body.partition("}")[2] or body
            self._flush()
            if name != "comment":
                self.writer.code(body)
            return end + len(name) + 6 if end >= 0 else len(text)
        if name in _TABLES:
            end = text.find(f"\\end{{{name}}}", at)
            self._flush()
            self._table(text[at : end if end >= 0 else len(text)])
            return end + len(name) + 6 if end >= 0 else len(text)
        self._flush()
        if name == "thebibliography":
            self._write_notes()
            self.writer.heading(2, "References")
            return self._argument(text, at)[1]
        if name == "abstract":
            self.writer.heading(2, "Abstract")
        if name in _LISTS and len(self._lists) < _MAX_NESTING:
            self._lists.append(name)
            self._counts.append(0)
            self._in_item.append(False)
        while optional := _OPTIONAL.match(text, at):
            at = optional.end()
        return at

    def _end(self, name: str) -> None:
        self._flush()
        if name in _LISTS and self._lists:
            if self._in_item.pop():
                self.writer.close()
            self._lists.pop()
            self._counts.pop()

    def _item(self, text: str, at: int) -> int:
        self._flush()
        label = ""
        if optional := _OPTIONAL.match(text, at):
            label, at = optional[0].strip()[1:-1], optional.end()
        if not self._lists:
            return at
        if self._in_item[-1]:
            self.writer.close()
        self._in_item[-1] = True
        self._counts[-1] += 1
        if label:
            self.writer.term(self.plain(label))
            self.writer.open_body()
        else:
            self.writer.open_item("-" if self._lists[-1] != "enumerate" else f"{self._counts[-1]}.")
        return at

    def _table(self, body: str) -> None:
        while body.startswith(("{", "[")):
            closing = _braced(body, 0)[1] if body[0] == "{" else body.find("]") + 1
            if closing <= 0:
                break
            body = body[closing:]
        body = re.sub(
            r"\\(?:hline|toprule|midrule|bottomrule|endhead|endfirsthead|cline\{[^}]*\})", "", body
        )
        rows = [
            [self.plain(cell) for cell in re.split(r"(?<!\\)&", row)] for row in body.split("\\\\")
        ]
        self.writer.rows(write_table([row for row in rows if any(row)]))

    def plain(self, text: str) -> str:
        """Return the text of an argument without commands."""
        text = _ACCENT.sub(_accented, text)
        text = re.sub(
            r"\\([A-Za-z]+)\*?\s*(?:\[[^\]\n]*\])?",
            lambda m: f" {m[1]} " if m[1] in OPERATORS else SYMBOLS.get(m[1], ""), text,
        )  # fmt: skip
        text = re.sub(r"\\(.)", lambda m: _HELD_SIGNS.get(m[1], m[1]), text)
        return " ".join(_finish(text).split())


def _bracket(text: str) -> str:
    """Put what is more than one word or sign in brackets."""
    return text if text.isalnum() else f"({text})"


def _finish(text: str) -> str:
    """Replace the quotes, dashes and ties of LaTeX, and drop braces."""
    text = text.replace("``", "“").replace("''", "”").replace("---", "—").replace("--", "–")
    text = re.sub(r"(?<!\\)~", " ", text).replace("{", "").replace("}", "").replace("$", "")
    text = re.sub(r" +(?=[.,;:](?:\s|$))|(?<=\() +", "", text)
    for sign, held in _HELD_SIGNS.items():
        text = text.replace(held, sign)
    return text
