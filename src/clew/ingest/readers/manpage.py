"""Reads manual pages in roff source (man and mdoc macros): sections, options, tables, code."""

import re
from collections.abc import Callable, Iterator
from typing import ClassVar

from clew.errors import InputError
from clew.ingest.readers.decode import decode
from clew.ingest.readers.markup import MarkupWriter
from clew.ingest.readers.mdoc import LITERAL, MDOC_INLINE, MDOC_LINES, join_mdoc, write_mdoc
from clew.ingest.readers.roff_macros import RoffMacros, split_arguments, split_request
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document, read_bytes
from clew.ingest.readers.table_text import write_table
from clew.types import Document

_SPECIAL = {
    "aq": "'",
    "dq": '"',
    "cq": "’",
    "oq": "‘",
    "lq": "“",
    "rq": "”",
    "hy": "-",
    "en": "–",
    "em": "—",
    "bu": "•",
    "co": "©",
    "ga": "`",
    "ti": "~",
    "ha": "^",
    "rs": "\\",
    "->": "→",
    "<-": "←",
    ">=": "≥",
    "<=": "≤",
    "mu": "×",
    "di": "÷",
    "+-": "±",
    "de": "°",
    "ss": "ß",
    "ul": "_",
    "or": "|",
    "sl": "/",
    "at": "@",
    "sh": "#",
    "Do": "$",
    "lB": "[",
    "rB": "]",
    "lC": "{",
    "rC": "}",
    "la": "⟨",
    "ra": "⟩",
    "Fo": "«",
    "Fc": "»",
    "!=": "≠",
    "==": "≡",
    "pc": "·",
    "dg": "†",
    "tm": "™",
    "rg": "®",
    "pl": "+",
    "mi": "−",
    "eq": "=",
    "ua": "↑",
    "da": "↓",
    "*m": "μ",
    "14": "¼",
    "12": "½",
    "34": "¾",
}
_ACCENTS = {
    "'": "\u0301",
    "`": "\u0300",
    "^": "\u0302",
    ":": "\u0308",
    "~": "\u0303",
    ",": "\u0327",
}
_ESCAPE = re.compile(
    r"\\(?:"
    r"(?P<comment>[\"#].*)|f(?:\[[^\]\n]*\]|\(..|.)|s[-+]?(?:\[[^\]\n]*\]|\d)|[mM](?:\[[^\]\n]*\]|\(..|.)"
    r"|\[(?P<named>[^\]\n]{1,20})\]|\((?P<two>..)|\*(?:\[(?P<string>[^\]\n]*)\]|\((?P<str2>..)|(?P<str1>.))"
    r"|[hvwXYZLlDbox]'[^'\n]*'|k.|n(?:\[[^\]\n]*\]|\(..|.)|(?P<one>.))"
)
_ONE = {"-": "-", "e": "\\", "~": " ", " ": " ", "0": " ", "t": "\t", ".": ".", "'": "´", "`": "`"}
_STRINGS = {"lq": "“", "rq": "”", "R": "®", "Tm": "™", 'L"': '"', 'R"': '"', "C'": "'", "C`": "`"}
_FONTS = {"B", "I", "SM", "SB", "R"}
_ALTERNATING = {"BR", "RB", "IR", "RI", "BI", "IB"}
_BREAKS = {"PP", "P", "LP", "Pp", "sp", "HP", "Lp"}
_CODE_BEGINS, _CODE_ENDS = {"nf", "EX", "Bd"}, {"fi", "EE", "Ed"}
_STRUCTURE = frozenset(_FONTS | _ALTERNATING | _BREAKS | _CODE_BEGINS | _CODE_ENDS)
# Requests of the typesetter and macros that have no text: fonts, spacing, traps, indexes, dates.
_NO_TEXT = frozenset(
    "ab ad af aln asciify backtrace bd blm box boxa bp br break brp c2 cc ce cf cflags ch char "
    "chop close color continue cp cs cu da defcolor di do dt ec eo em end ev evc ex fam fc fchar "
    "fl fp fspecial ft ftr fzoom gcolor hc hcode hla hlm hpf hw hy hym hys in it itc kern lc "
    "length lf lg linetabs ll ls lsm lt mc mk mso na ne nh nm nn nop nr nroff ns nx open opena os "
    "output pc pev pi pl pm pn po ps psbb pso ptr pvs rchar rd return rfschar rj rn rnn rr rs "
    "rt schar shc shift sizes so ss stringdown stringup sty substring sv sy ta tc ti tkf tl tm "
    "tm1 tmc tr trf trin trnt troff uf ul unformat vpt vs warn warnscale wh write writec writem "
    "AT Bf Bk Dd DT Ef Ek FT IX LINKSTYLE Os PD Rs Sm Tg UC YS".split()
)
_BULLETS = {"•", "*", "-", "–", "o", "·"}
_NUMBERED = re.compile(r"\(?\w{1,3}[.)]")
# `.\"`, `'\"`, `.  \#`, and requests that no page defines and many use so: `'''`, `."`.
_COMMENT = re.compile(r"[.'][ \t]*(?:\\[\"#]|['\"])|\\[\"#]")
_PROSE_END = (".", ":", ",", ";", "!", "?")
_MAX_TERM_WORDS = 8


def read_manpage(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a manual page; a file with such a suffix that is not roff is plain text."""
    text, encoding = decode(read_bytes(source, budget))
    if not is_roff(text):
        yield make_document(text, "", source.name, {"format": "text", "encoding": encoding})
        return
    page = ManualPage()
    for line in text.replace("\r", "").replace("\\\n", "").split("\n"):
        page.add_line(line)
    page.finish()
    if not page.writer.text():
        refers = re.search(r"^[.']\s*so\s", text, re.MULTILINE)
        raise InputError(
            "has no text of its own" + (": it refers to another page" if refers else "")
        )
    metadata = {"format": "man", "encoding": encoding, "terms": page.writer.terms()}
    yield make_document(page.writer.text(), page.title, source.name, metadata)


def is_roff(text: str) -> bool:
    """Whether a text is the source of a manual page."""
    return any(
        line[:3] in {".TH", ".SH", ".Dd", ".Sh", "'TH"} for line in text[:20_000].split("\n")
    )


def _stands_over_numbers(rows: list[list[str]]) -> bool:
    """Whether some column has a number in all rows but the first."""
    columns = zip(*rows, strict=False) if len(rows) > 1 else ()
    numbered = ([any(map(str.isdigit, cell)) for cell in column] for column in columns)
    return any(not first and all(others) for first, *others in numbered)


class ManualPage:
    """Interprets a page line by line."""

    def __init__(self) -> None:
        self.writer = MarkupWriter()
        self.title = ""
        self._columns: list[list[str]] | None = None  # the rows of a list in columns
        self._text: list[str] = []
        self._code: list[str] | None = None
        self._table: list[list[str]] | None = None
        self._table_state = ("", False)  # separator, whether rows have begun
        self._formats: list[str] = []  # of its rows, from the first
        self._headed = False  # whether its first row is set apart
        self._macros = RoffMacros(_STRUCTURE | self._HANDLERS.keys())
        self._expect_term = 0  # 1: the next line is a term, 2: the body follows
        self._bodies: list[int] = []  # open bodies at each nesting by RS or Bl
        self._insets: list[int] = []  # nestings that each RS or Bl began
        self._term: list[str] | None = None  # the parts of a term of several lines …
        self._apart = True  # … and whether spaces stand between them

    def add_line(self, line: str) -> None:
        """Interpret a line, if it is no comment."""
        if _COMMENT.match(line):
            return
        for expanded in self._macros.expand(line):
            self._interpret(expanded)

    def _interpret(self, line: str) -> None:
        if self._term is not None:
            self._add_to_term(line)
            return
        request = line[:1] in ".'" and line[1:2] not in ("", ".")
        if self._table is not None and not line.startswith((".TE", '.\\"')):
            self._add_table_line(line)
        elif request and not line.startswith(('.\\"', "'\\\"")):
            self._add_request(line)
        elif line[:2] not in (".\\", "'\\", "..", "."):
            self._add_text(unescape_roff(line))

    def finish(self) -> None:
        """Write what is pending."""
        if self._code is not None:
            self._end_code()
        self._flush()

    # -- text

    def _add_text(self, text: str) -> None:
        if self._code is not None:
            self._code.append(text)
        elif self._expect_term == 1:
            self._write_term(text)
        elif not text.strip():
            self._flush()
        else:
            self._text.append(text)

    def _flush(self) -> None:
        text = " ".join(self._text)
        self._text = []
        if text.strip():
            self.writer.paragraph(text)

    def _write_term(self, text: str) -> None:
        self._flush()
        self._close_body()
        self.writer.term(text)
        self.writer.open_body()
        self._bodies[-1:] = [self._depth_here() + 1]
        self._expect_term = 0

    def _add_to_term(self, line: str) -> None:
        """Add a line to a term of several lines; `Xc` ends it, `Sm` switches spaces on and off."""
        assert self._term is not None
        words = split_arguments(line[1:] if line[:1] == "." else line)
        if words[:1] == ["Sm"]:
            self._apart = words[1:] != ["off"] if words[1:] else not self._apart
            return
        if line[:1] == "." and words[0] in _NO_TEXT:
            return
        closing = "Xc" in words or words[:1] in (["It"], ["El"], ["Sh"], ["Ss"], ["Pp"])
        if "Xc" in words:
            words.remove("Xc")
        elif closing:  # it is not closed: what follows is no term
            words = []
        gap = " " if (self._apart or len(self._term) == 1) and words else ""
        self._term.append(gap + self._write_mdoc(words).replace(" ", " " if self._apart else ""))
        if closing:
            term, self._term = join_mdoc("".join(self._term)), None
            self._write_term(term)
            if line[:3] != ".Xc" and not words:
                self._interpret(line)

    def _depth_here(self) -> int:
        return self._bodies[-1] if self._bodies else 0

    def _close_body(self) -> None:
        if self._depth_here():
            self.writer.close()
            self._bodies[-1] -= 1

    # -- requests

    def _add_request(self, line: str) -> None:
        name, rest = split_request(line)
        if (handler := self._HANDLERS.get(name)) is not None:
            handler(self, name, rest)
        elif name in _BREAKS:
            self._break_paragraph()
        elif name in _CODE_BEGINS:
            self._begin_code()
        elif name in _CODE_ENDS:
            self._end_code()
        elif name == "br" and self._text and self._code is None:
            self._text.append("\n")
        else:
            self._add_macro(name, split_arguments(rest), line)

    def _add_macro(self, name: str, words: list[str], line: str) -> None:
        """Add the text of a macro; one that is not known may have any, and is kept as text."""
        if name in _FONTS:
            self._add_text(unescape_roff(" ".join(words)))
        elif name in _ALTERNATING:
            self._add_text("".join(unescape_roff(part) for part in words))
        elif name in MDOC_INLINE:
            self._add_text(self._write_mdoc([name, *words]))
        elif name in MDOC_LINES:  # a line of its own: a command to type, or an example
            self._break_line(self._write_mdoc(words))
        elif name.startswith("%"):  # a part of a reference
            self._add_text(self._write_mdoc(words).rstrip(",") + ",")
        elif name == "Re" and self._text:  # the end of a reference
            self._text[-1] = self._text[-1].rstrip(",") + "."
        elif name and name not in _NO_TEXT and (text := keep_text(name, words, line)):
            self._add_text(unescape_roff(text))

    def _write_mdoc(self, words: list[str]) -> str:
        literal = ((LITERAL if word.startswith("\\&") else "", word) for word in words)
        return write_mdoc([mark + unescape_roff(word) for mark, word in literal], self.title)

    def _break_line(self, text: str) -> None:
        if self._code is not None:
            self._code.append(text)
        elif text:
            self._flush()
            self.writer.code(text)

    def _break_paragraph(self) -> None:
        if self._code is not None:
            self._code.append("")
            return
        self._flush()
        if not self._bodies or len(self._bodies) == 1:
            self._close_body()
        self._expect_term = 0

    def _begin_code(self) -> None:
        self._flush()
        if self._code is None:
            self._code = []

    def _end_code(self) -> None:
        if self._code is not None:
            self.writer.code("\n".join(self._code))
            self._code = None

    def _begin_page(self, _: str, rest: str) -> None:
        parts = [unescape_roff(part) for part in split_arguments(rest)]
        if parts and not self.title:
            section = f"({parts[1]})" if len(parts) > 1 and parts[1] else ""
            self.title = parts[0].lower() + section if parts[0].isupper() else parts[0] + section

    def _begin_section(self, name: str, rest: str) -> None:
        self._end_code()
        self._flush()
        self._bodies, self._insets = [0], []
        title = unescape_roff(" ".join(split_arguments(rest)))
        self.writer.heading(2 if name in {"SH", "Sh"} else 3, title)

    def _begin_tagged(self, name: str, rest: str) -> None:
        self._end_code()
        if name == "TQ":
            self._expect_term = 1
            self._close_body()
        else:
            self._flush()
            self._expect_term = 1
        self._bodies = self._bodies or [0]

    def _begin_indented(self, _: str, rest: str) -> None:
        """An item with a tag: a bullet, a number, or a term; without one a further paragraph."""
        self._end_code()
        self._flush()
        parts = [unescape_roff(part).strip() for part in split_arguments(rest)]
        tag = parts[0] if parts else ""
        self._bodies = self._bodies or [0]
        if tag in _BULLETS or _NUMBERED.fullmatch(tag):
            self._close_body()
            self.writer.open_item("-" if tag in _BULLETS else tag)
            self._bodies[-1] += 1
        elif tag:
            self._write_term(tag)

    def _begin_inset(self, name: str, rest: str) -> None:
        """Indented text; after a short line that is no sentence it is what this term means."""
        self._bodies = self._bodies or [0]
        if name == "Bl" and "-column" in rest.split():
            self._flush()
            self._columns = []
            return
        if is_term := name == "RS" and self._code is None and looks_like_term(self._text):
            self._write_term(" ".join(self._text_taken()))
        self._flush()
        self._bodies.append(0)
        self._insets.append(1 + is_term)

    def _text_taken(self) -> list[str]:
        text, self._text = self._text, []
        return text

    def _add_row(self, words: list[str]) -> None:
        """Begin a row of a list in columns: `Ta` stands between its cells."""
        assert self._columns is not None
        self._end_row()
        cells: list[list[str]] = [[]]
        for word in words:
            if word == "Ta":
                cells.append([])
            else:
                cells[-1].append(word)
        self._columns.append([self._write_mdoc(cell) for cell in cells])

    def _end_row(self) -> None:
        """Add the lines below a row to its last cell."""
        more = " ".join(self._text_taken())
        if self._columns and more:
            self._columns[-1][-1] = f"{self._columns[-1][-1]} {more}".strip()

    def _end_inset(self, name: str, rest: str) -> None:
        if name == "El" and self._columns is not None:
            self._end_row()
            rows, self._columns = [row for row in self._columns if any(row)], None
            self.writer.rows(write_table(rows) if rows else [])
            return
        self._flush()
        if not self._insets:
            return
        self._close_body()
        self._bodies.pop()
        if self._insets.pop() > 1:  # the body of the term before it
            self._close_body()

    def _begin_item(self, _: str, rest: str) -> None:
        """An item of an mdoc list: with arguments a term, else a bullet."""
        if self._columns is not None:
            self._add_row(split_arguments(rest))
            return
        self._end_code()
        self._flush()
        self._bodies = self._bodies or [0]
        words = split_arguments(rest)
        if "Xo" in words and "Xc" not in words:  # the term goes on over the lines up to `Xc`
            words.remove("Xo")
            self._term, self._apart = [self._write_mdoc(words)], True
        elif words:
            self._write_term(self._write_mdoc(words))
        else:
            self._close_body()
            self.writer.open_item("-")
            self._bodies[-1] += 1

    def _begin_table(self, _: str, rest: str) -> None:
        self._flush()
        self._table, self._table_state = [], ("\t", False)
        self._formats, self._headed = [], False

    def _add_table_line(self, line: str) -> None:
        assert self._table is not None
        separator, begun = self._table_state
        if not begun:
            if found := re.search(r"tab\s*\((.)\)", line):
                separator = found[1]
            if not line.rstrip().endswith(";"):  # options of the table
                self._formats += [one.strip(" \t.") for one in line.split(",")]
            self._table_state = (separator, line.rstrip().endswith("."))
        elif line.strip() in {"_", "="}:
            self._headed |= len(self._table) == 1  # a rule below the first row
        elif line[:1] not in ".'":
            raw = line.split(separator)
            self._headed |= not self._table and all(cell.startswith("\\f") for cell in raw)
            cells = [unescape_roff(cell).strip() for cell in raw]
            self._table.append([cell for cell in cells if cell not in {"T{", "T}"}])

    def _end_table(self, _: str, rest: str) -> None:
        """Write the rows; the first names the columns only if it is set apart from the others."""
        rows = [row for row in self._table or [] if any(row)]
        self._table = None
        if rows:
            apart = self._headed or len(set(self._formats)) > 1 or _stands_over_numbers(rows)
            self.writer.rows(write_table(rows, headed=apart))

    _HANDLERS: ClassVar[dict[str, Callable[["ManualPage", str, str], None]]] = {
        **dict.fromkeys(("TH", "Dt"), _begin_page),
        **dict.fromkeys(("SH", "SS", "Sh", "Ss"), _begin_section),
        **dict.fromkeys(("TP", "TQ"), _begin_tagged),
        "IP": _begin_indented,
        **dict.fromkeys(("RS", "Bl"), _begin_inset),
        **dict.fromkeys(("RE", "El"), _end_inset),
        "It": _begin_item,
        "TS": _begin_table,
        "TE": _end_table,
    }


def looks_like_term(lines: list[str]) -> bool:
    """Whether the lines of a paragraph are a term: few words, and no sentence."""
    text = " ".join(lines).strip()
    return 0 < len(text.split()) <= _MAX_TERM_WORDS and not text.endswith(_PROSE_END)


def keep_text(name: str, words: list[str], line: str) -> str:
    """The text of a line with an unknown macro: a name that is a word or a path is text too."""
    is_macro = name[:1].isalpha() and (len(name) < 4 or name.isupper() or "_" in name)
    return " ".join(words) if line[:1] == "." and is_macro else line


def unescape_roff(text: str) -> str:
    """Replace escape sequences by the characters they stand for; fonts are dropped."""
    return _ESCAPE.sub(_replace_escape, text) if "\\" in text else text


def _replace_escape(found: re.Match[str]) -> str:
    name = found["named"] or found["two"]
    if name is not None:
        if name.startswith("u") and len(name) > 4:
            parts = [part for part in name[1:].split("_") if re.fullmatch("[0-9A-F]{4,6}", part)]
            return "".join(chr(int(part, 16)) for part in parts if int(part, 16) < 0x110000)
        if len(name) == 2 and name[0] in _ACCENTS and name[1].isalpha():
            return name[1] + _ACCENTS[name[0]]
        return _SPECIAL.get(name, "")
    text = found["string"] or found["str2"] or found["str1"]
    if text is not None:
        return _STRINGS.get(text, "")
    return _ONE.get(found["one"] or "", "")
