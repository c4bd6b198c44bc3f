"""Check that a cell which is told says what was asked: of this row, by this column, of this kind.

A row that has the name and a column that sounds alike answer nothing by themselves. Every name and
content word of the question has to be said by the row, its columns or the text around the table;
a column of names beside the one told leads to another row ("the room of the manager of N"); and
who does what a column of names is called after ("whom does N manage") stands in other rows.
"""

import re
from dataclasses import replace

from clew.agents.answering.cells import Row, find_rest, find_rows, names_concept
from clew.agents.answering.entry_subject import is_of_other_thing
from clew.agents.answering.lacking import cosine
from clew.agents.core.types import Answer
from clew.agents.reading.choose import find_asked_noun, find_asked_stem
from clew.agents.reading.lists import wants_several
from clew.agents.reading.spans import asked_words
from clew.agents.rules.table import drop_asking_words, table_for
from clew.agents.rules.table_words import load_operators
from clew.context import Context
from clew.text.names import STOP_WORDS
from clew.text.structure import find_blocks
from clew.text.unicode import split_words
from clew.text.word_forms import compare_words, holds_form, question_language

MOST_OF_CELL = 0.45
"""Confidence of a cell that does not say what was asked."""
MOST_OF_OTHER = 0.3
"""Confidence of a cell or an entry that says it of another thing of the kind."""
_FORM = 0.85  # from which two words are forms of one
_SAME = 0.75  # cosine of a noun and a label that say the same: "colour" and "color"
_NEAR = 0.45  # cosine of a word and the label of the column that is told
_FEW_LETTERS = 3  # a word as short says nothing alone: "get"
_NUMBER = re.compile(r"\d|\b(?:no|none|zero|one|two|three|four|five|six|seven|eight|nine|ten)\b")
_NAMED = re.compile(r"[^\W\d_]{2,}")  # what a value that leads to another row has, and no digit
_NAMES = re.compile(r"(?<=\s)(?:[A-Z][\w'-]*|[\w'-]*\d[\w'-]*)")
_DIGIT = re.compile(r"\d")
_DOER = re.compile(r"(?:er|or)s?\Z")  # what columns are called after who does something
_COUNTED = re.compile(r"\bhow (?:many|much) (?P<noun>\w+) (?:do|does|did|can)\b", re.IGNORECASE)
_ASKED_OF = re.compile(  # "what is the N of", "what is X's N"
    r"\b[Ww]hat(?:'s|\s+(?:is|was|are|were))\s+(?:the\s+|[^?]*?'s\s+)(?P<noun>[^?]*?)"
    r"(?=\s+(?:of|for|in|on|at|from|to|that|which)\b|[?.]*\s*\Z)"
)
_BEHIND = re.compile(r"\s+of\s+([a-z-]+)")
_UNIT = re.compile(r"\(.*?\)|\d+")
_SUBJECT = re.compile(r"\b(?:does|do|did)\b(?P<subject>.*)", re.IGNORECASE | re.DOTALL)


async def doubt_cell(ctx: Context, answer: Answer, *, by_rows: bool = False) -> Answer:
    """Return an answer that tells a cell of a table with doubt, where it is not what was asked.

    What was computed `by_rows` has explained the question's words itself.
    """
    if ctx.chat("answer") is not None or answer.verdict == "refused" or not answer.candidate:
        return answer
    if is_of_other_thing(ctx.question, answer):
        return replace(answer, confidence=min(answer.confidence, MOST_OF_OTHER))
    if question_language(ctx.question) != "en" or wants_several(ctx.question):
        return answer
    found = [
        (row, column)
        for row in _cited_rows(answer)
        for column, value in row.cells
        if _is_same(answer.candidate, column, value)
    ]
    check = _is_of_column if by_rows else _is_asked
    if not found or any([await check(ctx, row, column) for row, column in found]):
        return answer
    return replace(answer, confidence=min(answer.confidence, MOST_OF_CELL))


def _cited_rows(answer: Answer) -> list[Row]:
    """Return the rows of tables that an answer cites."""
    cited, rows = answer.citations, find_rows(answer.evidence.chunks)
    return [
        row
        for row in rows
        if row.cells[0][0]
        and any(
            one.chunk == row.passage.id
            and row.start < one.end - row.passage.start
            and one.start - row.passage.start < row.end
            for one in cited
        )
    ]


def _is_same(candidate: str, column: str, value: str) -> bool:
    told = candidate.strip("*`_ ").casefold()
    plain = value.strip("*`_ ").casefold()
    return told in (plain, f"{column.casefold()}: {plain}")


async def _is_asked(ctx: Context, row: Row, column: str) -> bool:
    """Whether a question asks for the value that a row has in a column."""
    question, value = ctx.question, dict(row.cells)[column]
    if not await _is_of_column(ctx, row, column) or not _fits_kind(question, value):
        return False
    if is_done_by(question, row, column) or not await _says_noun(ctx, row, column):
        return False
    return not await _find_unsaid(ctx, row, column)


async def _is_of_column(ctx: Context, row: Row, column: str) -> bool:
    """Whether a column is the one of the noun asked for, where any is, and no other row's."""
    if leads_elsewhere(ctx.question, row, column):
        return False
    stem = find_asked_stem(ctx.question)
    columns = [name for name, _ in row.cells]
    asked = [one for one in columns if any(w.startswith(stem) for w in _list_called(row, one))]
    return not stem or not asked or column in asked


def _fits_kind(question: str, value: str) -> bool:
    """Whether a value is of the kind asked for."""
    kind = table_for(question).find_answer_kind(question)
    has_number = _NUMBER.search(value.casefold()) is not None
    if kind in ("date", "number"):
        return has_number
    return kind != "person" or not value[:1].isdigit()


def is_done_by(question: str, row: Row, column: str) -> bool:
    """Whether a row's name does what the column tells who does: "whom does N manage"."""
    found = _SUBJECT.search(question)
    words = [word for word in split_words(column) if _DOER.search(word)]
    if found is None or not words:
        return False
    rest = found["subject"]
    verb = [word for word in split_words(rest) if word not in split_words(row.label.casefold())]
    named = any(holds_form(split_words(rest), one, _FORM) for one in split_words(row.label))
    does = (compare_words(one, word) >= _FORM and one != word for one in verb for word in words)
    return named and any(does)


def leads_elsewhere(question: str, row: Row, column: str) -> bool:
    """Whether a question names another column of names, whose value it does not: "the manager of".

    What it asks for stands in the row of that value, or nowhere.
    """
    own = _list_called(row, column)  # "which library" names no column "Librarian"
    asked = [word for word in split_words(question) if not holds_form(own, word, _FORM)]
    for name, value in row.cells[1:]:
        words = [word for word in asked_words(name) if word not in STOP_WORDS]
        if name == column or not words or not all(holds_form(asked, word, _FORM) for word in words):
            continue
        is_name = _NAMED.match(value) and not any(map(str.isdigit, value))
        if is_name and value[:1].isupper() and not holds_form(asked, split_words(value)[0], _FORM):
            return True
    return False


def _list_called(row: Row, column: str) -> list[str]:
    """Return the words that a column is called by; what the rows are, the text above may say."""
    is_key, home = column == row.cells[0][0], row.passage
    above = f" {home.title} {home.heading} {row.section}" if is_key else ""
    return split_words(f"{column}{above}")


async def _find_unsaid(ctx: Context, row: Row, column: str) -> list[str]:
    """Return the words of a question that neither the row nor what is around it says."""
    question, passage = ctx.question, row.passage
    text = " ".join(
        passage.text[one.start : one.end]
        for one in find_blocks(passage.text)
        if one.kind not in ("row", "header")
    )
    own = {word for cell in row.cells for word in split_words(f"{cell[0]} {cell[1]}")}
    known = [*own, *split_words(f"{row.around()} {text}")]
    bare = drop_asking_words(question)
    names = set(split_words(" ".join(_NAMES.findall(bare))))
    rest = [
        word
        for word in find_rest(bare, row, row.label)
        if word not in STOP_WORDS
        and (len(word) >= _FEW_LETTERS or _DIGIT.search(word))
        and not holds_form(known, word, _FORM)
    ]
    named = [word for word in rest if word in names]
    if named or names_concept(table_for(question), question, column):
        return named
    far = [word for word in rest if await _is_far(ctx, word, column)]
    [*_, noun] = _find_noun(question)[0] or [""]
    # Behind "how many N does X", and "which N", stands one verb.
    return far[1:] if noun and holds_form(split_words(column), noun, _FORM) else far


async def _says_noun(ctx: Context, row: Row, column: str) -> bool:
    """Whether a column or row is called by the noun that is asked for, or by a synonym.

    What is only near it in meaning may be its sibling: a tax is no revenue.
    """
    question = ctx.question
    noun, behind = _find_noun(question)
    if not noun or names_concept(table_for(question), question, column):
        return True
    if column == row.cells[0][0]:
        left, label = noun, _list_called(row, column)
    else:
        own, label = split_words(row.label), split_words(column)
        left = [word for word in noun if not holds_form(own, word, _FORM)]
        behind = [word for word in behind if not holds_form(own, word, _FORM)]
    concepts = load_operators().concepts_of
    said = any(
        holds_form(label, word, _FORM) or any(concepts(word) & concepts(one) for one in label)
        for word in (*left, *behind)
    )
    if said or not left or ctx.embed is None:
        return said or not left
    return cosine(*await ctx.vectors([" ".join(left), _UNIT.sub(" ", column)])) >= _SAME


def _find_noun(question: str) -> tuple[list[str], list[str]]:
    """Return the words of the noun asked for, and those of a noun behind it: "number of books"."""
    found = _COUNTED.search(question) or _ASKED_OF.search(question)
    noun = find_asked_noun(question) or (found["noun"] if found else "")
    behind = _BEHIND.match(question[found.end("noun") :]) if found else None
    return _list_content(noun), _list_content(behind[1] if behind else "")


def _list_content(text: str) -> list[str]:
    return [word for word in asked_words(text.lower()) if word not in STOP_WORDS]


async def _is_far(ctx: Context, word: str, column: str) -> bool:
    if ctx.embed is None:
        return True
    near = cosine(*await ctx.vectors([word, column]))
    return len(word) > _FEW_LETTERS and near < _NEAR
