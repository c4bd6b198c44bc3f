"""Where names and facts stand: spans that hold for any script, and any text at all."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.extract.locate import ChunkLocator, fold
from clew.store.quotes import find_quote
from clew.types import Chunk, RawFact


def places(text: str, start: int = 0) -> ChunkLocator:
    return ChunkLocator(Chunk("c", "d", start, start + len(text), text))


def found(text: str, name: str) -> list[str]:
    return [text[a:b] for a, b in places(text).find_name(name)]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("Ada met Ada's aunt, not Adam.", "Ada", ["Ada", "Ada"]),
        ("She lives in the us; the US army", "US", ["US"]),
        ("the polish café opened", "Polish Cafe", ["polish café"]),
        ("Person - centered therapy", "Person-centered therapy", ["Person - centered therapy"]),
        ("New\n  York is large", "New York", ["New\n  York"]),
        ("in NewYork city", "New York", ["NewYork"]),
        ("Der Fluß Weiß", "fluss weiss", ["Fluß Weiß"]),
        ("Weißs", "Weis", []),
        ("O’Brien’s boat", "O'Brien", ["O’Brien"]),
        ("the Polish–Russian War", "Polish-Russian War", ["Polish–Russian War"]),
        ("鲁迅出生于绍兴，鲁迅学医。", "鲁迅", ["鲁迅", "鲁迅"]),
        ("राम और रामायण", "राम", ["राम"]),
        ("Ο ΣΩΚΡΆΤΗΣ πέθανε", "Σωκράτης", ["ΣΩΚΡΆΤΗΣ"]),
        ("김구는 독립운동가였다", "김구", ["김구"]),
        ("ana na na", "na na", ["na na"]),
        ("e\u0301 e", "e", ["e"]),
        ("anything", "  ", []),
        ("anything", "\u0301", []),
    ],
)
def test_a_name_is_found_as_it_is_spelt_or_nearly(
    text: str, name: str, expected: list[str]
) -> None:
    assert found(text, name) == expected


def test_spans_are_offsets_in_the_document() -> None:
    assert places("Ada slept.", start=100).find_name("Ada") == ((100, 103),)
    assert places("Ada slept.", start=100).find_fact(["Ada"]).span == (100, 110)


TEXT = "Orla Quist was tall. She met Ivo Lund, Orla Quist wrote much later on. Ivo Lund left."


def said(names: list[str], text: str = "", within: str = TEXT) -> str:
    start, end = places(within).find_fact(names, text).span
    return within[start:end]


def test_a_fact_stands_in_the_smallest_sentence_that_names_both() -> None:
    text = f"{TEXT} Ivo Lund saw Orla Quist."
    assert said(["Orla Quist", "Ivo Lund"], within=text) == "Ivo Lund saw Orla Quist."


def test_else_in_a_sentence_that_names_one_and_speaks_likest() -> None:
    text = "Orla Quist was tall. She was a sister of Ivo."
    assert said(["Orla Quist", "Ivo"], "Orla Quist sister of Ivo", text) == text[21:]
    assert said(["Orla Quist", "Nobody"]) == "Orla Quist was tall."


def test_else_in_the_whole_chunk() -> None:
    assert said(["Nobody"]) == TEXT
    assert places(TEXT).find_fact(["Nobody"]).names_found == 0


def test_a_quote_is_found_however_it_is_spaced() -> None:
    assert places("It rained.\nAda  slept there.").find_quote("ada slept there.") == (11, 28)
    assert places("It rained.").find_quote("") is None


@given(st.text("ab. \n\t\u00a0", max_size=30), st.text("ab. ", max_size=8))
def test_a_fact_is_found_as_a_pattern_of_its_words_would_be(text: str, said: str) -> None:
    words = said.split()
    found = re.search(r"\s+".join(map(re.escape, words)), text) if words else None
    exact = text.find(" ".join(words))  # it goes before one with other white space
    span = (exact, exact + len(" ".join(words))) if words and exact >= 0 else None
    assert find_quote(RawFact(said, ()), text) == (span or (found.span() if found else None))


ANY = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
DENSE = st.text("aAáÁ ß.İﬁ\u0301\u200d-–'’鲁", max_size=40)


@given(st.one_of(ANY, DENSE), st.one_of(ANY, DENSE), st.integers(0, 9))
def test_what_stands_at_a_span_is_the_name(text: str, name: str, start: int) -> None:
    for a, b in places(text, start).find_name(name):
        assert 0 <= a - start < b - start <= len(text)
        assert fold(text[a - start : b - start]) == fold(name)


@given(DENSE, DENSE, DENSE)
def test_a_name_set_apart_is_found(before: str, name: str, after: str) -> None:
    text = f"{before} , {name.strip()} , {after}"
    if fold(name) and not name.strip().startswith(("\u0301", "\u200d")):
        assert places(text).find_name(name)


@given(ANY, st.lists(ANY, max_size=3))
def test_a_fact_lies_in_its_chunk(text: str, names: list[str]) -> None:
    start, end = places(text, 5).find_fact(names, text).span
    assert 5 <= start <= end <= 5 + len(text)


def test_a_large_chunk_is_searched_in_time() -> None:
    where = places("ana " * 100_000 + "é")
    assert len(where.find_name("ANA")) == 100_000
    assert where.find_name("anana") == ()


def test_a_statement_is_located_where_it_is_said_though_a_pronoun_stands_for_its_name() -> None:
    text = "# Philippa Noorden\n\nPhilippa Noorden was an engineer. She invented the Noorden valve."
    said = places(text)
    start, end = said.find_statement("Philippa Noorden invented the valve.", ["Philippa Noorden"])
    assert text[start:end] == "She invented the Noorden valve."
    start, end = said.find_statement("Philippa Noorden was an engineer.", ["Philippa Noorden"])
    assert text[start:end] == "Philippa Noorden was an engineer."
    start, end = said.find_statement("Philippa Noorden died in Lund.", ["Philippa Noorden"])
    assert text[start:end] == "# Philippa Noorden"
