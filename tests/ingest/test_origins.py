"""Where citations stand in the user's files: lines and, where it has the words, characters."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import stream

from clew.engine import KnowledgeBase
from clew.ingest.files import find_files, read, read_source_items
from clew.ingest.readers.source import DEFAULT_BUDGET
from clew.text.align import align_words, split_words
from clew.text.origins import (
    ESCAPES,
    SAME,
    Piece,
    compose,
    decode_origin,
    encode_origin,
    locate,
    trace_text,
)
from clew.types import Document

FACTS = (
    "The Hemlock bridge was built in 1902 by Ilse Brandvik.",
    "The ferry Selma sails to Trosa on Mondays & Fridays.",
    "Code E7 means that the inlet valve is stuck.",
)


def write_markdown(facts: tuple[str, ...]) -> str:
    rows = "\n".join(f"| n{at} | {fact} |" for at, fact in enumerate(facts))
    listed = "\n".join(f"- {fact}" for fact in facts)
    top = "---\ntitle: Notes\nauthor: Alva\n---\n\n# Notes\n\n<!-- left out\n\n-->\n"
    return f"{top}{listed}\n\n## Table\n\n| key | fact |\n|---|---|\n{rows}\n"


def write_html(facts: tuple[str, ...]) -> str:
    told = "\n".join(
        f"<p><b>{fact[:3]}</b>{fact[3:]}</p>".replace("&", "&amp;").replace(" by ", "\n  by ")
        for fact in facts
    )
    menu = "<nav><a href='a.html'>Home</a><a href='b.html'>Shop</a></nav>"
    style = "<style>p { color: red }</style>"
    head = f"<head><title>Notes</title>{style}</head>"
    return f"<html>{head}<body>{menu}\n<main>\n{told}\n</main></body></html>"


def write_rst(facts: tuple[str, ...]) -> str:
    terms = "\n".join(f"term{at}\n    {fact}\n" for at, fact in enumerate(facts))
    return f"Notes\n=====\n\n.. comment\n\n{terms}\n.. note:: {facts[0]}\n"


def write_manual(facts: tuple[str, ...]) -> str:
    told = "\n".join(f".TP\n\\fB\\-\\-option{at}\\fR\n{fact}" for at, fact in enumerate(facts))
    return f'.\\" a comment\n.TH NOTES 1\n.SH NAME\nnotes \\- facts\n.SH OPTIONS\n{told}\n'


def write_notebook(facts: tuple[str, ...]) -> str:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Part\n", fact]} for fact in facts
    ]
    return json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}, indent=1)


def write_latex(facts: tuple[str, ...]) -> str:
    told = "\n\n".join(f"\\section{{Part}}\n\\textbf{{{f[:3]}}}{f[3:]}" for f in facts)
    told = told.replace("&", "\\&")
    return f"\\documentclass{{article}}\n\\begin{{document}}\n{told}\n\\end{{document}}\n"


def write_csv(facts: tuple[str, ...]) -> str:
    return "id,text\n" + "".join(f'{at},"{fact}\nIt is known."\n' for at, fact in enumerate(facts))


def write_table(facts: tuple[str, ...]) -> str:
    return "name,fact\n" + "".join(f'n{at},"{fact}"\n' for at, fact in enumerate(facts))


def write_rows(facts: tuple[str, ...]) -> str:
    rows = [{"id": f"r{at}", "text": f'{fact} "Yes"'} for at, fact in enumerate(facts)]
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def write_list(facts: tuple[str, ...]) -> str:
    rows = [{"id": f"r{at}", "text": f"{fact}\n— é"} for at, fact in enumerate(facts)]
    return json.dumps(rows, indent=2)


def write_text(facts: tuple[str, ...]) -> str:
    return "\n\n".join(facts) + "\n"


def write_mail(facts: tuple[str, ...]) -> str:
    head = "From: a@example.org\nTo: b@example.org\nSubject: Notes\nContent-Type: text/plain\n\n"
    return head + "\n\n".join(facts) + "\n"


def write_code(facts: tuple[str, ...]) -> str:
    return "\n".join(f'def fact{at}():\n    """{fact}"""\n' for at, fact in enumerate(facts))


FORMATS: dict[str, Callable[[tuple[str, ...]], str]] = {
    "notes.md": write_markdown,
    "notes.html": write_html,
    "notes.rst": write_rst,
    "notes.1": write_manual,
    "notes.ipynb": write_notebook,
    "notes.tex": write_latex,
    "notes.csv": write_csv,
    "notes.tsv": lambda facts: write_table(facts).replace(",", "\t", 1).replace(',"', '\t"'),
    "table.csv": write_table,
    "notes.jsonl": write_rows,
    "notes.json": write_list,
    "notes.txt": write_text,
    "notes.eml": write_mail,
    "notes.py": write_code,
    "notes.log": write_text,
}


def read_documents(path: Path) -> list[Document]:
    (source,) = find_files([path])
    return [one for one in read_source_items(source, DEFAULT_BUDGET) if isinstance(one, Document)]


def words_of(text: str, suffix: str) -> list[str]:
    for escape, sign in (("&amp;", "&"), ("\\u2014", "—"), ("\\u00e9", "é"), ("\\&", "&")):
        text = text.replace(escape, sign)
    text = text.replace("\\n", " ") if suffix in {".json", ".ipynb", ".jsonl"} else text
    for tag in ("<b>", "</b>", "\\textbf{", "}"):
        text = text.replace(tag, "")
    return [word for word, *_ in split_words(text)]


def find_span(text: str, fact: str) -> tuple[int, int] | None:
    """Where a text has the words of a fact in a row."""
    words, wanted = split_words(text), [word for word, *_ in split_words(fact)]
    for at in range(len(words) - len(wanted) + 1):
        if [word for word, *_ in words[at : at + len(wanted)]] == wanted:
            return words[at][1], words[at + len(wanted) - 1][2]
    return None


def check_facts(path: Path, facts: tuple[str, ...]) -> None:
    """Every fact that was read stands in the lines, and at the characters, that are told."""
    with path.open(encoding="utf-8-sig") as file:
        content = file.read()
    lines = content.split("\n")
    found = 0
    for document in read_documents(path):
        for fact in facts:
            if (span := find_span(document.text, fact)) is None:
                continue
            found += 1
            place = locate(document.origin, document.text, *span)
            assert place is not None, (fact, document.text)
            told = "\n".join(lines[place.line - 1 : place.end_line])
            wanted = words_of(fact, path.suffix)
            had = words_of(told, path.suffix)
            assert all(word in had for word in wanted), (fact, told)
            assert place.end_line - place.line <= 3
            if place.start is not None:
                quoted = document.text[span[0] : span[1]]
                assert content[place.start : place.end].split() == quoted.split()
    assert found >= len(set(facts))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_what_was_read_is_found_in_its_file(name: str, ends: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(FORMATS[name](FACTS).replace("\n", ends).encode())
    check_facts(path, FACTS)


WORDS = st.lists(
    st.sampled_from("alder birch cedar elm fir hazel larch maple oak pine rowan willow".split()),
    min_size=6,
    max_size=14,
)


@pytest.mark.parametrize("name", ["notes.md", "notes.html", "notes.1", "notes.json", "notes.csv"])
def test_any_sentences_are_found_in_their_lines(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("files")

    @given(st.lists(WORDS, min_size=1, max_size=6, unique_by=tuple))
    def check(sentences: list[list[str]]) -> None:
        facts = tuple(
            f"{' '.join(words).capitalize()} stand {at} deep." for at, words in enumerate(sentences)
        )
        path = folder / name
        path.write_text(FORMATS[name](facts), encoding="utf-8")
        check_facts(path, facts)

    check()


def test_an_unchanged_text_has_no_map(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("One sentence.\nAnother one.\n")
    assert [one.origin for one in read_documents(path)] == [SAME]


LETTERS = st.lists(st.sampled_from("abcdefg"), max_size=40)
Cells = list[tuple[int, int, int, int, bool, bool]]
PIECES = st.lists(
    st.tuples(
        st.integers(0, 900),
        st.integers(-900, 900),
        st.integers(1, 999),
        st.integers(-9, 9),
        st.booleans(),
        st.booleans(),
    ),
    max_size=30,
)


@given(PIECES)
def test_an_origin_is_read_as_it_was_written(
    cells: list[tuple[int, int, int, int, bool, bool]],
) -> None:
    pieces, end, there, line = [], 0, 10_000, 500
    for gap, jump, length, lines, exact, joined in cells:
        there, line = there + jump, line + lines
        pieces.append(Piece(end + gap, length, there, line, exact, joined))
        end += gap + length
    assert (decode_origin(encode_origin(pieces)) if pieces else []) == pieces


@given(
    st.lists(st.sampled_from("abcdefg"), max_size=40),
    st.lists(st.sampled_from("abcdefg"), max_size=40),
)
def test_aligned_words_are_equal_and_each_stands_once(own: list[str], other: list[str]) -> None:
    pairs = align_words(own, other)
    assert all(own[at] == other[there] for at, there in pairs)
    assert len({at for at, _ in pairs}) == len(pairs)


@given(st.lists(st.text("abc é\n", max_size=30), max_size=8), st.data())
def test_what_is_left_of_a_text_is_found_in_the_file(parts: list[str], data: st.DataObject) -> None:
    source = "".join(f"<p>{part}</p>\n" for part in parts)
    before = "\n".join(parts)
    origin = trace_text(before, source, ESCAPES["html"])
    lines = before.split("\n")
    kept = [line for line in lines if data.draw(st.booleans())]
    after = "\n".join(kept)
    composed = compose(origin, before, after)
    for word, start, end in split_words(after):
        place = locate(composed, after, start, end)
        if place is not None and place.start is not None:
            assert source[place.start : place.end] == word
            assert source[: place.start].count("\n") + 1 == place.line


async def test_citations_tell_lines_and_keep_them_through_every_change(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    path = tmp_path / "notes.md"
    path.write_text(write_markdown(FACTS))
    await base.take(read([path]))
    answer = await base.ask("Who built the Hemlock bridge?")
    lines = path.read_text().split("\n")
    assert answer.citations
    for one in answer.citations:
        assert one.line is not None and one.end_line is not None
        assert "Ilse Brandvik" in "\n".join(lines[one.line - 1 : one.end_line])
    # The same text in another file layout: nothing is extracted again, the lines are the new ones.
    path.write_text(write_markdown(FACTS).replace("<!-- left out", "<!-- left out\n\n\n"))
    again = await base.take(read([path]))
    assert again.unchanged == 1
    moved = (await base.ask("Who built the Hemlock bridge?")).citations[0]
    assert moved.line == (answer.citations[0].line or 0) + 3


async def test_without_a_file_nothing_is_told(base: KnowledgeBase) -> None:
    await base.take(stream([Document("d1", FACTS[0], "Bridge", ("bridge",))]))
    cited = (await base.ask("Who built the Hemlock bridge?")).citations
    assert cited and all(one.line is None and one.file_start is None for one in cited)
