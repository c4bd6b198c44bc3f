"""Names said differently, claims on names, and which passages an entity leads to.

Names by their letters.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.graph.name_matching import build_ngram_index, build_token_index, match_names
from clew.graph.page_owners import EntityPassages, name_rarities, resolve_claims
from clew.text.names import encode_name, encode_token

KNOWN = (
    "Frederick Francis Sears",
    "Ernst Ingmar Bergman",
    "Lothair II of Lotharingia",
    "University of Oxford",
    "University of Cambridge",
    "Clara Lindqvist",
)


def match(asked: str, known: tuple[str, ...] = KNOWN) -> dict[str, float]:
    codes = [encode_name(name) for name in known]
    names = np.repeat(np.arange(len(known)), [len(one) for one in codes])
    words = build_token_index(
        len(known), names, np.array([c for one in codes for c in one], np.int64)
    )
    wanted = np.array(encode_name(asked), np.int64)
    _, name, score = match_names(words, np.array([0, len(wanted)]), wanted)
    return dict(zip([known[at] for at in name], score.tolist(), strict=True))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("Ingmar Bergman", {"Ernst Ingmar Bergman"}),
        ("Fred F. Sears", {"Frederick Francis Sears"}),
        ("Lothair II", {"Lothair II of Lotharingia"}),
        ("Klara Lindqvist", set()),  # only what begins alike is taken for alike
        ("Clara Lindquist", {"Clara Lindqvist"}),
        ("University of Vessen", set()),
        ("Anton Reeve", set()),
        ("", set()),
    ],
)
def test_names_said_differently(asked: str, expected: set[str]) -> None:
    assert set(match(asked)) == expected


def test_words_in_another_order_count_less() -> None:
    straight, turned = match("Ingmar Bergman"), match("Bergman Ingmar")
    assert turned["Ernst Ingmar Bergman"] < straight["Ernst Ingmar Bergman"]


def test_an_asker_is_not_alike_to_itself() -> None:
    known = ("Ingmar Bergman", "Ernst Ingmar Bergman")
    codes = [encode_name(name) for name in known]
    words = build_token_index(
        2, np.array([0, 0, 1, 1, 1]), np.array([c for one in codes for c in one])
    )
    starts, asked = np.array([0, 2]), np.array(codes[0])
    assert match_names(words, starts, asked)[1].tolist() == [0]
    assert match_names(words, starts, asked, np.array([0]))[1].tolist() == [1]


def test_many_queries_match_like_one() -> None:
    asked = np.array(encode_name("Ada Bell"), np.int64)
    names, times = 30, 600  # 18,000 pairs: more than are scored at once
    words = build_token_index(names, np.repeat(np.arange(names), 2), np.tile(asked, names))
    selves = np.arange(times) % names
    query, name, score = match_names(words, np.arange(times + 1) * 2, np.tile(asked, times), selves)
    alone = [match_names(words, np.array([0, 2]), asked, selves[at : at + 1]) for at in (0, 1, 29)]
    assert [one[1].tolist() for one in alone] == [[1, 2], [0, 2], [0, 1]]
    assert query.tolist() == np.repeat(np.arange(times), 2).tolist()
    assert [name[query == at].tolist() for at in (570, 571, 599)] == [[1, 2], [0, 2], [0, 1]]
    assert set(score.tolist()) == {1.0}


def test_nothing_known_matches_nothing() -> None:
    assert match("Ingmar Bergman", ()) == {}


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=6))
def test_every_name_is_most_like_itself(known: list[str]) -> None:
    for name in known:
        found = match(name, tuple(known))
        assert all(0 < score <= 1.0001 for score in found.values())


@given(st.text(max_size=20), st.text(max_size=20))
def test_codes_are_63_bits_and_tell_words_apart(one: str, other: str) -> None:
    assert 0 <= encode_token(one) < 1 << 63
    if one[:3] != other[:3] and {*one[:3], *other[:3]} <= set(map(chr, range(1, 512))):
        assert encode_token(one) != encode_token(other)


# -- claims


def claim(*claims: tuple[int, int, float], words: int = 2) -> dict[tuple[int, int], float]:
    """(entity, chunk, about) of entities that all bear different names."""
    entities, chunks, about = zip(*claims, strict=True)
    count = max(entities) + 1
    owned, _ = resolve_claims(
        EntityPassages(np.array(entities), np.array(chunks), np.array(about, np.float32)),
        np.arange(count),
        np.full(count, words),
        np.ones(count, np.float32),
    )
    rows = zip(owned.entities.tolist(), owned.chunks.tolist(), owned.about.tolist(), strict=True)
    return {(entity, chunk): round(weight, 3) for entity, chunk, weight in rows}


def test_main_claims_stand() -> None:
    assert claim((0, 1, 1.0), (0, 2, 0.9)) == {(0, 1): 1.0, (0, 2): 0.9}


def test_side_claims_share_and_too_many_are_nobodys() -> None:
    assert claim((0, 1, 0.8), (0, 2, 0.8)) == {(0, 1): 0.566, (0, 2): 0.566}
    assert claim(*((0, chunk, 0.8) for chunk in range(4))) == {}


def test_a_single_word_belongs_to_its_main_owner_alone() -> None:
    assert claim((0, 1, 1.0), (0, 2, 0.6), words=1) == {(0, 1): 1.0}
    assert claim((0, 1, 1.0), (0, 2, 0.6), words=2) == {(0, 1): 1.0, (0, 2): 0.6}


def test_claims_on_other_names_do_not_matter() -> None:
    assert claim((0, 1, 0.8), (1, 2, 0.8)) == {(0, 1): 0.8, (1, 2): 0.8}


def test_rarity_falls_from_one_to_nothing() -> None:
    found = name_rarities(np.array([1, 3, 100, 1000]), 1000)
    assert found[0] == 1 and found[-1] == 0
    assert (np.diff(found) <= 0).all()


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
