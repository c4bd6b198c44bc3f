"""Chunkers: the laws that hold for every document, and how each one cuts."""

import time
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew.errors import ConfigError
from clew.ingest.chunk import CHUNKERS, ByHeadings, BySentences, ByTokens, token_count
from clew.ingest.readers.source import make_document
from clew.types import Chunk, Document

Chunker = ByTokens | BySentences | ByHeadings

SIZES = st.integers(1, 12)
ANY_CHUNKER = st.one_of(
    SIZES.flatmap(lambda size: st.builds(ByTokens, st.just(size), st.integers(0, size // 2))),
    SIZES.flatmap(lambda size: st.builds(BySentences, st.just(size), st.integers(0, size // 2))),
    st.builds(ByHeadings, SIZES),
)
PIECES = [
    ". ",
    "\n\n",
    "# One\n",
    "## Two\n",
    "Title\n===\n",
    "```\n",
    "。",
    "東京都",
    "हिन्दी ",
    "👩‍👩‍👧",
    "🇫🇷🇩🇪",
]
TEXTS = st.lists(
    st.one_of(st.text(max_size=10), st.sampled_from(PIECES), st.just("a word ")), max_size=40
).map("".join)
NO_OVERLAP: list[Chunker] = [ByTokens(3, 0), BySentences(3), ByHeadings(3)]


def bare(text: str) -> str:
    return "".join(text.split())


def prose(sentences: int) -> str:
    return " ".join(f"Sentence number {n} is about the queen." for n in range(sentences))


def check_laws(source: Document, chunks: list[Chunk]) -> None:
    reached = 0
    for chunk in chunks:
        assert chunk.text == source.text[chunk.start : chunk.end] == chunk.text.strip() != ""
        assert not source.text[reached : max(reached, chunk.start)].strip()  # nothing lost between
        assert chunk.document == source.id and chunk.title == source.title
        reached = max(reached, chunk.end)
    assert not source.text[reached:].strip()
    assert [c.start for c in chunks] == sorted({c.start for c in chunks})
    assert [c.end for c in chunks] == sorted({c.end for c in chunks})
    assert len({chunk.id for chunk in chunks}) == len(chunks)


@given(TEXTS, ANY_CHUNKER)
@example("\n0\u093a", ByTokens(1, 0))  # a mark takes its letter along and leaves white space
def test_the_laws(text: str, chunker: Chunker) -> None:
    source = make_document(text, "A title")
    check_laws(source, chunker(source))


@given(TEXTS, st.sampled_from(NO_OVERLAP))
def test_without_overlap_chunks_add_up_to_the_text(text: str, chunker: Chunker) -> None:
    source = make_document(text)
    assert "".join(bare(chunk.text) for chunk in chunker(source)) == bare(source.text)


@given(TEXTS, ANY_CHUNKER)
def test_a_chunk_is_not_much_larger_than_asked(text: str, chunker: Chunker) -> None:
    for chunk in chunker(make_document(text)):
        # Marks stay with their letter, whatever the size.
        marks = sum(not c.isalnum() and not c.isspace() for c in chunk.text)
        assert token_count(chunk.text) <= chunker.size * 1.25 + marks + 1


@pytest.mark.parametrize("size", [500_000, pytest.param(5_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("chunker", CHUNKERS.values(), ids=CHUNKERS)
def test_a_giant_word_is_cut(chunker: Chunker, size: int) -> None:
    source = make_document("x" * size)
    began = time.process_time()
    chunks = chunker(source)
    assert time.process_time() - began < 20  # quadratic would take hours
    check_laws(source, chunks)
    assert max(len(chunk.text) for chunk in chunks) <= chunker.size * 6


@pytest.mark.parametrize("chunker", CHUNKERS.values(), ids=CHUNKERS)
def test_the_same_document_gives_the_same_chunks(chunker: Chunker) -> None:
    assert chunker(make_document(prose(200))) == chunker(make_document(prose(200)))
    assert chunker(make_document("")) == chunker(make_document(" \n ")) == []


def test_sentences_are_kept_whole() -> None:
    chunks = BySentences(size=40)(make_document(prose(30)))
    assert len(chunks) > 3
    assert all(c.text.startswith("Sentence") and c.text.endswith("queen.") for c in chunks)


def test_a_document_a_little_too_long_stays_whole() -> None:
    text = prose(10)
    size = token_count(text)
    assert len(BySentences(size=int(size / 1.2))(make_document(text))) == 1
    assert len(BySentences(size=int(size / 1.5))(make_document(text))) == 2


def test_a_tiny_tail_joins_the_chunk_before() -> None:
    text = prose(20)
    per_sentence = token_count(text) // 20
    chunks = BySentences(size=per_sentence * 5 + 2)(make_document(text + " End."))
    assert chunks[-1].text.startswith("Sentence")


def test_sentence_overlap_repeats_whole_sentences() -> None:
    chunks = BySentences(size=40, overlap=12)(make_document(prose(30)))
    for one, following in zip(chunks, chunks[1:], strict=False):
        assert one.start < following.start < one.end
        assert following.text.startswith("Sentence")


def test_token_overlap_is_shared_and_at_most_half() -> None:
    words = " ".join(f"w{n}" for n in range(1000))
    chunks = ByTokens(size=100, overlap=20)(make_document(words))
    assert {
        token_count(words[b.start : a.end]) for a, b in zip(chunks, chunks[1:], strict=False)
    } == {20}
    assert len(ByTokens(size=100, overlap=50)(make_document(words))) == 19
    with pytest.raises(ConfigError, match="half"):
        ByTokens(size=100, overlap=51)


def test_headings_begin_chunks_and_give_their_path() -> None:
    text = "Before.\n\n# A\n\nIn A.\n\n## B\n\n### C\nIn C.\n\n# D\nIn D.\n"
    text += "```\n# no heading\n```\n\nLast\n----\nEnd."
    chunks = ByHeadings()(make_document(text))
    assert [(c.heading, c.text.split("\n")[0]) for c in chunks] == [
        ("", "Before."),
        ("A", "# A"),
        ("A > B > C", "## B"),
        ("D", "# D"),
        ("D > Last", "Last"),
    ]


def test_long_sections_keep_their_heading_on_every_chunk() -> None:
    chunks = ByHeadings(size=50)(make_document(f"# Queens\n\n{prose(30)}"))
    assert len(chunks) > 2
    assert {chunk.heading for chunk in chunks} == {"Queens"}


def test_pages_come_from_where_the_chunk_begins() -> None:
    text = prose(5) + "\n\n" + prose(5) + "\n\n" + prose(5)
    page = len(prose(5)) + 2
    source = replace(
        make_document(text), page_starts=(0, page, page, 2 * page)
    )  # the second is empty
    chunks = BySentences(size=token_count(prose(5)))(source)
    assert [chunk.page for chunk in chunks] == [1, 3, 4]
    assert BySentences()(make_document(text))[0].page is None


@pytest.mark.parametrize("unit", ["é" + "\u0301", "👩‍👩‍👧", "🇫🇷", "नि", "각", "👍🏽"])
def test_what_the_eye_sees_as_one_character_is_not_split(unit: str) -> None:
    source = make_document(unit * 50)
    whole = source.text[: len(source.text) // 50]
    for chunk in ByTokens(size=7, overlap=0)(source):
        assert chunk.text == whole * (len(chunk.text) // len(whole))


def test_marks_without_end_are_still_cut() -> None:
    source = make_document("a" + "\u0301" * 10_000)
    chunks = ByTokens(size=50, overlap=0)(source)
    check_laws(source, chunks)
    assert len(chunks) > 100


def test_text_without_spaces_is_counted_by_character() -> None:
    assert token_count("東京都は首都です") == 8
    assert token_count("The queen died in 875.") == 6
    source = make_document("東京都は首都です" * 100)
    assert {len(chunk.text) for chunk in ByTokens(size=80, overlap=0)(source)} == {80}


@pytest.mark.parametrize(
    "make", [lambda: ByTokens(0), lambda: BySentences(5, -1), lambda: ByHeadings(0)]
)
def test_sizes_that_cannot_be_are_refused(make: type[ByTokens]) -> None:
    with pytest.raises(ConfigError, match="chunk size"):
        make()
