"""Names by their letters."""

from hypothesis import given
from hypothesis import strategies as st

from clew.graph.letters import build_ngram_index

NAMES = ["Caro diario", "Casablanca", "The Prowler", "Café Müller", "是谁", "X"]


def test_a_misspelt_name_is_nearest_to_the_right_one() -> None:
    at, share = build_ngram_index(NAMES).find_similar("caro diairo", 2)
    assert NAMES[at[0]] == "Caro diario" and share[0] > 0.5


def test_any_script_and_a_single_letter_find_themselves() -> None:
    index = build_ngram_index(NAMES)
    for number, name in enumerate(NAMES):
        at, share = index.find_similar(name, 1)
        assert at.tolist() == [number] and share[0] == 1


def test_nothing_in_common_is_nothing() -> None:
    assert build_ngram_index(NAMES).find_similar("qqq", 3)[0].tolist() == []
    assert build_ngram_index([]).find_similar("x", 3)[0].tolist() == []


@given(st.lists(st.text(min_size=1), min_size=1, max_size=8, unique=True), st.text())
def test_shares_are_sorted_and_at_most_one(names: list[str], text: str) -> None:
    at, share = build_ngram_index(names).find_similar(text, 8)
    assert all(0 < one <= 1 for one in share) and sorted(share, reverse=True) == share.tolist()
    assert len(set(at.tolist())) == len(at)
