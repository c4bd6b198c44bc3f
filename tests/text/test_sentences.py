"""Sentence boundaries: the laws for any text, and what people expect of prose."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.text.sentences import sentence_spans
from conftest import one_in_three

PIECES = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from(
            '. |! |?\n|\n\n|。|؟ |। |...|Mr. |J. R. |e.g. |."|The |- |1. |# |a|[1] | '.split("|")
        ),
    ),
    max_size=30,
).map("".join)


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@given(PIECES)
def test_spans_are_trimmed_ordered_and_cover_everything_visible(text: str) -> None:
    last = 0
    for start, end in sentence_spans(text):
        assert not text[last:start].strip()
        assert start < end and text[start:end] == text[start:end].strip()
        last = end
    assert not text[last:].strip()


@pytest.mark.parametrize(
    "sentences",
    [
        ["Teutberga died in 875.", "She was a queen.", "Was she?", "Yes!"],
        ["It was produced by P. Nair for King Philip V.", "The film (fl. 713) is lost."],
        ["Henry (1176? – d. 1216) saw Help! (1965) again.", "Why not?", "He left."],
        ["J. R. R. Tolkien wrote it.", "He lived in Oxford."],
        ["Dr. Smith met Mr. W. H. Grey at St. Maurice's Abbey.", "They talked."],
        ["It costs 3.50 dollars, i.e. 4.20 euros, at No. 10.", "Cheap."],
        ["He moved to the U.S. Senate in Jan. 1950.", "The rest is history."],
        ["She lives in the U.S.", "He does not."],
        ["Apple Inc. was founded by Steve Jobs et al. in 1976.", "It grew."],
        ["He said “Stop.”", "Then (at last.)", "Nobody moved."],
        ["“What is God?” first appeared in 1989.", "Yahoo! was there."],
        ["Well... maybe not.", "Wait…", "No."],
        ["It is known.[1][2]", "More follows."],
        ["東京は首都です。", "人口は多い！", "本当？", "「はい。」", "終わり"],
        ["هل هذا صحيح؟", "نعم، إنه كذلك."],
        ["यह भारत है।", "यह बड़ा है।"],
        ["Am 3. März 1950 kam er an.", "Er blieb."],
        ["Er wurde 1950 geboren.", "Sie auch."],
    ],
)
def test_prose(sentences: list[str]) -> None:
    glue = "" if "。" in sentences[0] else " "
    assert split(glue.join(sentences)) == sentences


def test_wrapped_lines_stay_one_sentence_and_paragraphs_do_not() -> None:
    wrapped = "The queen of Lotharingia by marriage to Lothair the Second\nwas Teutberga."
    assert split(f"{wrapped}\n\nAnother paragraph without a stop\n\nThird") == [
        wrapped,
        "Another paragraph without a stop",
        "Third",
    ]


def test_headings_lists_and_rows_stand_alone() -> None:
    text = (
        "# A heading\nProse begins here.\n- one\n- two\n1. First\n2. Second\n| a | b |\n| c | d |"
    )
    assert split(text) == [
        "# A heading",
        "Prose begins here.",
        "- one",
        "- two",
        "1. First",
        "2. Second",
        "| a | b |",
        "| c | d |",
    ]


def test_a_definition_ends_before_the_next_term() -> None:
    text = (
        "ttl\n:   Seconds kept. Raise it if it is slow.\npool\n:   Kept open.\n-a\n--all\n:   All."
    )
    assert split(text) == [
        "ttl\n:   Seconds kept.",
        "Raise it if it is slow.",
        "pool\n:   Kept open.",
        "-a\n--all\n:   All.",
    ]
    assert split("term\n:   Its body goes on\n    in the next line.") == [
        "term\n:   Its body goes on\n    in the next line."
    ]


def test_nothing_visible_gives_nothing() -> None:
    assert sentence_spans("") == sentence_spans(" \n\t ") == []


@pytest.mark.parametrize(
    "unit", one_in_three([".", ". ", "\n", " ", "a", "A. ", "!?) ", "[1]", "。", "- ", "1.\n", '"'])
)
@pytest.mark.parametrize("count", [50_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_long_monotony_is_linear(unit: str, count: int) -> None:
    text = unit * count
    began = time.process_time()
    sentence_spans(text)
    assert time.process_time() - began < 5  # quadratic would take minutes


def test_a_number_that_fits_no_list_goes_on_with_its_sentence() -> None:
    assert split("It returns a status of\n127. If it is found, it returns 126.") == [
        "It returns a status of\n127.",
        "If it is found, it returns 126.",
    ]
    assert len(split("He was born on\n12. Mai 1900 in Orm.")) == 1
    assert split("Bring these things\n4. a rope\n5. a lamp")[1:] == ["4. a rope", "5. a lamp"]


NOTES = (
    "anna brings the tent and the lamp",
    "bruno brings the stove",
    "bus leaves at 7.40 from the old station",
    "the cabin costs 90 euro a night",
)


@pytest.mark.parametrize("glue", ["\n", ".\n", ". "])
def test_notes_in_small_letters_are_a_sentence_each(glue: str) -> None:
    text = glue.join(NOTES)
    assert [one.rstrip(".") for one in split(text)] == list(NOTES)
    assert [one.rstrip(".") for one in split(f"bring list\n\n{text}\n")] == ["bring list", *NOTES]
    assert [one.rstrip(".") for one in split(f"# Trip\n\n{text}\n")] == ["# Trip", *NOTES]


def test_small_letters_end_no_sentence_behind_abbreviations_and_within_names() -> None:
    sentences = [
        "take a light lamp, e.g. the one of anna, i.e. the blue one.",
        "the key is in locker no. 7 beside version 2.1 of config.toml.",
        "ask dr. vint about the pkg. of rope, it weighs 5 kg.",
        "the rest is at home.",
    ]
    assert split(" ".join(sentences)) == sentences


def test_wrapped_prose_in_small_letters_keeps_its_lines_together() -> None:
    sentences = [
        "the pump is drained through the\nsmall valve below the tank once a\nweek, "
        "before the night shift begins.",
        "what runs out of it is collected\nin the blue barrel behind the door.",
    ]
    assert split("\n".join(sentences)) == sentences
    assert split(f"bottling\n\n{sentences[0]}") == ["bottling", sentences[0]]


def test_capitals_anywhere_keep_small_letters_behind_a_stop_within_their_sentence() -> None:
    text = "The dist. court met at approx. noon. It ruled\nat once."
    assert split(text) == ["The dist. court met at approx. noon.", "It ruled\nat once."]
