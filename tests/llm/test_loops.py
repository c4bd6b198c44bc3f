import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.llm.loops import cut_loop


@pytest.mark.parametrize("repeats", [30, 3000, 100_000])
@pytest.mark.parametrize("tail", ["", "and ro"])
def test_one_round_of_a_loop_is_kept(repeats, tail):
    text = "It begins well. " + "and round it goes, " * repeats + tail
    cut = cut_loop(text)
    assert cut.startswith("It begins well.")
    assert len(cut) < 70


@given(st.text(max_size=300))
def test_what_is_cut_is_a_beginning(text):
    assert text.startswith(cut_loop(text))


@given(st.text(alphabet="ab", max_size=60), st.text(alphabet="abc ", min_size=1, max_size=30))
def test_every_loop_is_found(start, round_):
    assert len(cut_loop(start + round_ * 300)) <= len(start) + 2 * len(round_)


def test_ordinary_text_stays():
    text = " ".join(f"Sentence number {n} says something of its own." for n in range(500))
    assert cut_loop(text) == text
    assert cut_loop("ha ha ha ha ha ha") == "ha ha ha ha ha ha"


def test_ten_megabytes_in_a_blink():
    began = time.process_time()
    cut_loop("x" * 10_000_000)
    cut_loop("ab" * 5_000_000 + "c" * 10)
    assert time.process_time() - began < 3
