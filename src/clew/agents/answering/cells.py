"""Look up a cell: the value that a table or a list of terms has for what is asked of a thing.

One label names the thing ("K7", "Q102"), the other what is asked: in its words, in a word of the
same concept (`[columns]` of the rule table), or by meaning. A table that lacks what is asked has no
answer, however well its rows fit the thing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.agents.answering.exact_terms import ExactUnit
from clew.agents.answering.lacking import cosine
from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.reading.choose import find_asked_stem
from clew.agents.reading.spans import asked_words
from clew.agents.rules.table import RuleTable, drop_asking_words, table_for
from clew.context import Context
from clew.text.definitions import holds_term
from clew.text.names import STOP_WORDS
from clew.text.structure import Block, find_blocks, find_headings
from clew.text.unicode import split_words
from clew.text.word_forms import holds_form
from clew.types import Citation, Passage

_FORM = 0.9  # from which two words are forms of one
_SAME_MEANING = 0.55  # cosine of what is asked and a label
_CONCEPT = 0.9  # what a label of the same concept counts
_MEASURED = ("speed", "age", "height", "depth", "width", "warmth")  # concepts "how" asks for
_TIE = 0.02  # two columns that fit as well as each other
_TERM_LINE = re.compile(r"[-*•+][ \t]+(?P<term>`[^`\n]+`|\S+): +(?P<rest>\S.*)", re.DOTALL)
_OFFERS = re.compile(r"\bor\b", re.IGNORECASE)
_FEW_LETTERS = 3  # a word as short tells nothing alone: "get"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table or a term of a list: its cells are pairs of column and value."""

    passage: Passage
    start: int
    end: int
    cells: tuple[tuple[str, str], ...]
    section: str

    @property
    def label(self) -> str:
        """The value of the first column, which names the row."""
        return self.cells[0][1]

    def around(self) -> str:
        """Return what the row stands under: titles and the names of its columns."""
        columns = " ".join(column for column, _ in self.cells)
        return f"{self.passage.title} {self.passage.heading} {self.section} {columns}"

    def name(self, value: str) -> ExactUnit:
        """Cite the row for one of its values."""
        return ExactUnit(make_citation(self.passage, SupportSpan(self.start, self.end, 1.0)), value)


def find_rows(passages: Sequence[Passage]) -> list[Row]:
    """Return the rows of all tables and the items that begin with a term, in order."""
    return [row for passage in passages for row in _rows_of(passage)]


def _rows_of(passage: Passage) -> Iterator[Row]:
    header: list[str] = []
    headings = list(find_headings(passage.text))
    for block in find_blocks(passage.text):
        text = passage.text[block.start : block.end]
        if block.kind == "header":
            header = _split_row(text)
        cells = _read_cells(block, text, header)
        if len(cells) > 1:
            above = [one.title for one in headings if one.start < block.start][-1:]
            yield Row(passage, block.start, block.end, cells, "".join(above))
        if block.kind not in ("header", "row"):
            header = []


def _split_row(text: str) -> list[str]:
    return [cell.strip() for cell in text.strip().strip("|").split("|")]


def _read_cells(block: Block, text: str, header: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a row; of an item that begins with a term, what stands behind it."""
    if block.kind == "row" and header:
        return tuple(zip(header, _split_row(text), strict=False))
    if block.kind == "row":
        return tuple(_name_value(cell) for cell in _split_row(text))
    found = _TERM_LINE.match(text) if block.kind == "item" else None
    if found is None:
        return ()
    parts = [_name_value(part.strip()) for part in found["rest"].split(";")]
    return (("", found["term"]), *parts)


def _name_value(cell: str) -> tuple[str, str]:
    column, colon, value = cell.partition(": ")
    return (column.strip(), value.strip()) if colon else ("", cell.strip())


async def find_asked_cell(ctx: Context, passages: Sequence[Passage]) -> ExactUnit | None:
    """Return the cell that a question asks for, with its row, if both its labels fit."""
    rows = find_rows(passages)
    if not rows or _OFFERS.search(ctx.question):  # which of two is no cell
        return None
    return _find_key(ctx.question, rows) or await _find_value(ctx, rows)


def lies_in_rows(cited: Citation, passages: Sequence[Passage]) -> bool:
    """Whether a citation begins within a table or a list of terms."""
    return any(
        row.passage.id == cited.chunk and row.start <= cited.start - row.passage.start < row.end
        for row in find_rows([p for p in passages if p.id == cited.chunk])
    )


def _content(text: str) -> list[str]:
    return [word for word in asked_words(text) if word not in STOP_WORDS]


def _fits(label: str, question: str) -> bool:
    """Whether a question has all words of a label; one of single signs as it is: "-6", "C"."""
    words, asked = _content(label), split_words(question)
    if not words:
        return any(map(str.isalnum, label)) and holds_term(label.strip("`"), question)
    return all(holds_form(asked, word, _FORM) for word in words)


# -- which value a thing has


async def _find_value(ctx: Context, rows: Sequence[Row]) -> ExactUnit | None:
    """Return the value of what is asked of the thing that a row or a column is named after."""
    things, parts = _find_things(ctx.question, rows)
    found: list[tuple[float, Row, str]] = []
    for row in rows:
        for column, value in row.cells[1:]:
            if row.label in parts or column in parts:
                continue
            pairs = ((row.label, column), (column, row.label))
            named = [(thing, label) for thing, label in pairs if thing in things]
            fits = [await _measure_asked(ctx, row, thing, label) for thing, label in named]
            if max(fits, default=0.0) > 0:
                found.append((max(fits), row, value))
    found.sort(key=lambda one: -one[0])
    others = [fit for fit, _, value in found if value != found[0][2]]
    if not found or (others and found[0][0] - others[0] < _TIE):
        return None
    return found[0][1].name(found[0][2])


def _find_things(question: str, rows: Sequence[Row]) -> tuple[set[str], set[str]]:
    """Return the labels that a question names, and those of them that are parts of others: "K7".

    One that says what is asked ("meaning") is none.
    """
    table = table_for(question)
    labels = {label for row in rows for label in (row.label, *(c for c, _ in row.cells[1:]))}
    things = [label for label in labels if not names_concept(table, question, label)]
    named = {label: set(_content(label)) or {label} for label in things if _fits(label, question)}
    parts = {
        one
        for one in named
        if (longer := [other for other in named if named[one] < named[other]])
        and not _fits(one, _leave_out(question, longer))  # "of the BX and of the BX Pro"
    }
    return named.keys() - parts, parts


def _leave_out(question: str, labels: Sequence[str]) -> str:
    for label in labels:
        question = re.sub(re.escape(label), " ", question, flags=re.IGNORECASE)
    return question


async def _measure_asked(ctx: Context, row: Row, thing: str, label: str) -> float:
    """Return how well a label says what a question asks of a thing: 0 if it does not."""
    table = table_for(ctx.question)
    rest = find_rest(ctx.question, row, thing)
    if names_concept(table, ctx.question, label):
        return _CONCEPT
    if not rest and not _concept(table, ctx.question):  # "What is Q102?"
        return _CONCEPT if _concept(table, label) == "meaning" or not label else 0.0
    words = _content(label)
    matched = [word for word in words if holds_form(rest, word, _FORM)]
    unsaid = [
        word
        for word in rest
        if not holds_form(words, word, _FORM)
        and not holds_form(split_words(row.around()), word, _FORM)
        and len(word) > _FEW_LETTERS
    ]
    measured = _concept(table, ctx.question) in _MEASURED
    if matched and not unsaid and not measured:
        return len(matched) / len(words)
    if measured:  # "how fast did the stones" asks for no stones
        rest = unsaid
    return await _measure_meaning(ctx, " ".join(rest), label) if label and rest else 0.0


def find_rest(question: str, row: Row, thing: str) -> list[str]:
    """Return the words of a question beside the thing, its column's name, and what only asks."""
    known = [*split_words(thing), *split_words(row.cells[0][0])]
    words = asked_words(drop_asking_words(question))
    return [word for word in words if not holds_form(known, word, _FORM)]


def _concept(table: RuleTable, text: str) -> str:
    return next((name for name, words in table.columns if words.search(text)), "")


def names_concept(table: RuleTable, question: str, label: str) -> bool:
    """Whether a label says, in another word, what a question asks for: "cause" for "why"."""
    concept = _concept(table, label)
    return bool(concept) and concept == _concept(table, question)


async def _measure_meaning(ctx: Context, asked: str, label: str) -> float:
    if ctx.embed is None:
        return 0.0
    near = cosine(*await ctx.vectors([asked, label]))
    return near if near >= _SAME_MEANING else 0.0


# -- which thing has a value


def _find_key(question: str, rows: Sequence[Row]) -> ExactUnit | None:
    """Return the row's name where a question asks for it by what the row says: "which option …"."""
    stem = find_asked_stem(question)
    if not stem:
        return None
    light = table_for(question).links
    words = [w for w in asked_words(question) if not w.startswith(stem) and not light.search(w)]
    found = []
    for row in rows:
        above = f"{row.section} {row.passage.heading} {row.passage.title}"
        kind = split_words(f"{row.cells[0][0]} {above}")
        said = _list_said(row, words)
        if any(word.startswith(stem) for word in kind) and words:
            if all(holds_form(said, word, _FORM) for word in words):
                found.append(row)
    return found[0].name(found[0].label.strip("`")) if len(found) == 1 else None


def _list_said(row: Row, words: Sequence[str]) -> list[str]:
    """Return the words of a row's values, and the names of columns whose value a word is in."""
    said: list[str] = []
    for column, value in row.cells[1:]:
        told = split_words(value)
        if any(holds_form(told, word, _FORM) for word in words):
            told += split_words(column)
        said += told
    return said
