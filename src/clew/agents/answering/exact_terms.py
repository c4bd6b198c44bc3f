"""Numbers, options and codes of a question: what is quoted of a row or a definition must have them.

A table has a row for 45° and one for 60°, a manual an exit status 2 and 3. Their rows and terms
differ in one value only, which neither words nor vectors tell apart.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.reading.choose import measure_coverage
from clew.agents.reading.spans import asked_words
from clew.text.code_names import find_acronyms, find_code_names
from clew.text.definitions import defines_term, find_signed_letters, holds_term
from clew.text.sentences import sentence_spans
from clew.text.structure import Block, find_blocks
from clew.text.unicode import mask_unspaced, split_words
from clew.text.word_forms import compare_words
from clew.types import Citation, Passage

_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*(?![\w-])")
_SHORT_CODE = re.compile(r"(?<![\w-])[A-Z]{1,3}-?\d{1,4}[A-Za-z]?(?![\w-])")  # E5, V-2
_LETTER = re.compile(r"(?<=[a-z] )(?!I\b)[A-Z](?=[?,;:!]|\.?\s*\Z| [a-z])")  # state Z; no initial
_SIGNED = re.compile(r"(?<!\S)-\d{1,3}(?![\w.,-]\w)")  # an option, or a number below zero
_PARTS = ("row", "definition", "item")  # kinds of blocks that differ in a value
_CELL = re.compile(
    r"(?:^|[|;])\s*(?P<column>[^|;:\n]{1,60}):\s*(?P<value>[^|;\n]{1,200}?)\s*(?=[|;]|\.?$)"
)
_VALUE_ASKED = re.compile(
    r"\b(?:defaults?|value|standardwert|vorgabe(?:wert)?|wert|par défaut|valeur|predeterminado|"
    r"por defecto|valor|по умолчанию|значение)\b"
    r"|默认|預設|缺省|既定|デフォルト|初期値|افتراضي|قيمة",
    re.IGNORECASE,
)
_SWITCH = re.compile(r"\b(?:off|true|false|none|null|unlimited)\b", re.IGNORECASE)
_STANDS_FOR = re.compile(r"\b(?:stands? for|short for|abbreviation|acronym|long form)\b", re.I)


@dataclass(frozen=True, slots=True)
class ExactUnit:
    """A row or definition that has the values of a question, and its answer if a cell is it."""

    citation: Citation
    short: str = ""


def find_exact_terms(question: str) -> tuple[str, ...]:
    """Return the numbers, options, identifiers and codes of a question."""
    codes = [found.name for found in find_code_names(question)]
    plain = mask_unspaced(question)
    codes += [c for c in _SHORT_CODE.findall(plain) if not any(c in code for code in codes)]
    codes += find_signed_letters(plain)
    codes += [c for c in (*_LETTER.findall(plain), *_SIGNED.findall(plain)) if c not in codes]
    numbers = [n for n in _NUMBER.findall(question) if not any(n in code for code in codes)]
    return tuple(dict.fromkeys((*codes, *numbers)))


def measure_exact(terms: Sequence[str], text: str) -> float:
    """Return the share of the terms that a text has as they are, or defines; 1 of none."""
    held = (holds_term(term, text) or defines_term(term, text) for term in terms)
    return sum(held) / len(terms) if terms else 1.0


def misses_value(question: str, quotes: Sequence[str]) -> bool:
    """Whether a question asks for the value of an identifier and no quote gives one."""
    codes = [found.name for found in find_code_names(question)]
    if not codes or not _VALUE_ASKED.search(question):
        return False
    for quote in quotes:
        whole = any(defines_term(code, quote) for code in codes)
        parts = [quote] if whole else [quote[a:b] for a, b in sentence_spans(quote)]
        if any(_has_value(codes, part) for part in parts):
            return False
    return True


def _has_value(codes: Sequence[str], text: str) -> bool:
    if not any(holds_term(code, text) for code in codes):
        return False
    for code in codes:
        text = text.replace(code, " ")
    return any(map(str.isdigit, text)) or bool(_VALUE_ASKED.search(text) or _SWITCH.search(text))


def find_exact_unit(
    question: str, cited: Citation, passages: Sequence[Passage]
) -> ExactUnit | None:
    """Return the row, item or definition beside what is cited that has the question's values.

    None where what is cited has them and no cell is the answer, or is no such part.
    """
    terms = find_exact_terms(question)
    home = next((p for p in passages if p.id == cited.chunk), None)
    if not terms or home is None:
        return None
    blocks = find_blocks(home.text)
    parts = [b for b in blocks if b.kind in _PARTS]
    start, end = cited.start - home.start, cited.end - home.start
    own = [b for b in parts if b.start < end and start < b.end]
    beside = [b for b in parts if measure_exact(terms, _text(home, b)) == 1]
    if not own or not beside:
        return None
    best = max(beside, key=lambda b: measure_coverage(question, _text(home, b)))
    head = [b for b in blocks if b.kind == "header" and b.start < best.start][-1:]
    row = _text(home, best)
    if head and best.kind == "row":
        row = name_cells(_text(home, head[0]), row)
    # Of a row that has the terms as the names of its columns, no value is the one asked for.
    keyed = any(holds_term(term, one["value"]) for term in terms for one in _CELL.finditer(row))
    short = find_cell(question, terms, row) if keyed else ""
    if not short and measure_exact(terms, _text(home, own[-1])) == 1:
        return None
    return ExactUnit(make_citation(home, SupportSpan(best.start, best.end, 1.0)), short)


def name_cells(header: str, row: str) -> str:
    """Return a row of a table with the name of its column before each value."""
    names, values = (
        [c.strip() for c in line.strip().strip("|").split("|")] for line in (header, row)
    )
    return "; ".join(f"{name}: {value}" for name, value in zip(names, values, strict=False))


def _text(passage: Passage, block: Block) -> str:
    return passage.text[block.start : block.end]


def find_cell(question: str, terms: Sequence[str], row: str) -> str:
    """Return the value of the column that a question names, where one column fits best, else ""."""
    asked = split_words(question)
    found = []
    for cell in _CELL.finditer(row):
        if any(holds_term(term, cell["value"]) for term in terms):
            continue
        words = asked_words(cell["column"])  # "what to do" is not what "what" asks for
        shared = sum(max(compare_words(w, a) for a in asked) for w in words) / max(1, len(words))
        found.append((shared, cell["value"].strip()))
    found.sort(key=lambda one: -one[0])
    if not found or found[0][0] == 0 or (len(found) > 1 and found[0][0] == found[1][0]):
        return ""
    return found[0][1]


def find_long_form(question: str, passages: Sequence[Passage]) -> ExactUnit | None:
    """Return what an acronym stands for, and the sentence that says so, if a question asks that."""
    if not _STANDS_FOR.search(question):
        return None
    for passage in passages:
        for start, end in sentence_spans(passage.text):
            for short, long in find_acronyms(passage.text[start:end]):
                if holds_term(short, question):
                    return ExactUnit(make_citation(passage, SupportSpan(start, end, 1.0)), long)
    return None
