"""Writes a Chinese or Japanese question about tables in the words of the English operators.

They have no spaces: a question is cut at the names of columns and the values of cells that it
has, then at the words of `operators_zh.toml` or `operators_ja.toml`. What is asked comes first, as
in English; the noun beside it follows. Names and values stay as they are.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from clew.agents.tables.load import Table
from clew.text.language import is_chinese, is_unspaced

_MAX_NAME_CHARS = 16
_MIN_PART = 2  # characters of a column's name that stand for it
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_OTHER_RUN = re.compile(r"[^\u3040-\u30ff\u3400-\u9fff\s，。？！、：；]+")
# What stands behind a number stands before it in English.
_BEHIND = re.compile(
    r"(?P<number>\d[\d,.]*(?:-\d{1,2}){0,2})\s*[年人件個]?\s*(?:(?P<before>之前|以前|より前)|"
    r"(?P<after>之后|以后|以降|より後)|(?P<more>より大きい|より多い|より高い|を超える)|"
    r"(?P<less>より小さい|より少ない|より低い|未満)|(?P<least>以上)|(?P<most>以下))"
)


class _Piece(NamedTuple):
    text: str
    kind: str  # ask, name, word, or "" for what is unknown


@cache
def load_words(language: str) -> Mapping[str, tuple[str, str]]:
    """Return each word of a language with its kind and the English words for it."""
    raw = (files("clew.agents.tables") / f"operators_{language}.toml").read_text(encoding="utf-8")
    kinds = {"asks": "ask", "operators": "word", "fillers": "word"}
    return {
        word: (kinds[kind], english)
        for kind, entries in tomllib.loads(raw).items()
        for word, english in entries.items()
    }


def _find_language(question: str) -> str:
    if is_chinese(question):
        return "zh"
    return "ja" if is_unspaced(question) else ""


def asks_unspaced(question: str) -> bool:
    """Whether a Chinese or Japanese question has a word that asks for rows or values."""
    language = _find_language(question)
    words = load_words(language) if language else {}
    return any(word in question for word, (kind, _) in words.items() if kind == "ask")


def write_unspaced_in_english(question: str, tables: Sequence[Table]) -> str:
    """Return a question with English operators; one with spaces is returned as it is."""
    language = _find_language(question)
    if not language:
        return question
    pieces = _cut(_BEHIND.sub(_put_before, question), tables, load_words(language))
    asks = [at for at, piece in enumerate(pieces) if piece.kind == "ask"]
    if not asks:
        return question
    at = asks[0]
    rest = [piece for number, piece in enumerate(pieces) if number != at]
    noun = _find_noun(pieces, at)
    if noun is not None:
        rest = [noun, *(piece for piece in rest if piece is not noun)]
    return " ".join(piece.text for piece in (pieces[at], *rest) if piece.text) + "?"


def _put_before(found: re.Match[str]) -> str:
    words = {"before": "before", "after": "after", "least": "at least", "most": "at most"}
    words |= {"more": "more than", "less": "less than"}
    which = next(name for name in words if found[name])
    return f" {words[which]} {found['number']} "


def _find_noun(pieces: Sequence[_Piece], at: int) -> _Piece | None:
    """Return the name just behind what asks ("哪个城市"), or just before it ("城市是哪个")."""
    if pieces[at].text not in ("which", "how many"):
        return None
    behind = [piece for piece in pieces[at + 1 : at + 2] if piece.kind == "name"]
    before = [piece for piece in pieces[:at] if piece.text][-1:]
    found = behind or [piece for piece in before if piece.kind == "name"]
    return found[0] if found else None


def _cut(
    question: str, tables: Sequence[Table], words: Mapping[str, tuple[str, str]]
) -> list[_Piece]:
    pieces: list[_Piece] = []
    at = 0
    while at < len(question):
        if not _UNSPACED.match(question, at):
            run = _OTHER_RUN.match(question, at)
            if run:
                pieces.append(_Piece(run[0], "name"))
            at = run.end() if run else at + 1
            continue
        size, name = _longest_name(question, at, tables)
        word = max((w for w in words if question.startswith(w, at)), key=len, default="")
        if size >= max(1, len(word)):
            pieces.append(_Piece(name, "name"))
        elif word:
            size, (kind, english) = len(word), words[word]
            pieces.append(_Piece(english, kind))
        else:
            size = 1
            pieces.append(_Piece(question[at], ""))
        at += size
    return pieces


def _longest_name(question: str, at: int, tables: Sequence[Table]) -> tuple[int, str]:
    """Return the longest name or value that begins here, and how many characters it takes."""
    for size in range(min(_MAX_NAME_CHARS, len(question) - at), 0, -1):
        text = question[at : at + size]
        if any(_holds(table, text.casefold()) for table in tables):
            return size, text
        if size >= _MIN_PART and (column := _begins_column(text, tables)):
            return size, column
    return 0, ""


def _begins_column(text: str, tables: Sequence[Table]) -> str:
    """Return the only column whose name begins so: "设立" for "设立日期"; "" for none."""
    names = {name for table in tables for name in table.columns if name.startswith(text)}
    return names.pop() if len(names) == 1 else ""


def _holds(table: Table, text: str) -> bool:
    if text in table.words:
        return True
    return any(
        text in column.words or text == column.name.casefold() or text in column.rows_by_value
        for column in table.columns.values()
    )
