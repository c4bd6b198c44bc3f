"""Where texts that are much alike differ, and that pages of many lines are told apart."""

from hypothesis import given
from hypothesis import strategies as st

from clew.engine import KnowledgeBase
from clew.retrieve.piece_differences import AskedPieces, Pieces, find_different, is_difference_asked
from conftest import document, stream

Words = dict[int, frozenset[str]]
_WORDS = st.frozensets(st.sampled_from("abcdef"), max_size=4)
_PIECES = st.lists(_WORDS, max_size=6).map(lambda some: {hash(one): one for one in some})
_ASKED = {"a": 0.5, "b": 0.25, "x": 0.125}


def split(one: Words, other: Words) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
    """The pieces that another text has as well, more or less, and those that it has not."""
    others = [other[key] for key in other.keys() - one]
    own = [
        one[key]
        for key in one.keys() - other
        if not any(one[key] <= its or its <= one[key] for its in others)
    ]
    return [piece for piece in one.values() if piece not in own], own


@given(_PIECES, _PIECES)
def test_pieces_differ_unless_one_only_adds_words(one: Words, other: Words) -> None:
    both = Pieces.read(one), Pieces.read(other)
    for found, (texts, against) in zip(
        find_different(*both), ((one, other), (other, one)), strict=True
    ):
        told = [piece for at, piece in enumerate(texts.values()) if found >> at & 1]
        assert set(told) == set(split(texts, against)[1])


@given(_PIECES, _PIECES)
def test_a_question_is_about_what_only_the_differing_pieces_say(one: Words, other: Words) -> None:
    same, own = split(one, other)
    also_same, others = split(other, one)
    same += also_same
    told = frozenset().union(*own) & frozenset().union(*others) & _ASKED.keys()

    def most(pieces: list[frozenset[str]]) -> float:
        return max((sum(_ASKED.get(word, 0) for word in one) for one in pieces), default=0.0)

    asked = bool(told - frozenset().union(*same)) or most(own + others) > most(same)
    read = [AskedPieces.read(Pieces.read(some), _ASKED) for some in (one, other)]
    assert is_difference_asked(*read) == asked


async def test_the_list_that_is_asked_for_is_found_among_lists_alike(base: KnowledgeBase) -> None:
    lists = [
        document(
            f"list{n}",
            "\n".join(f"- Item {n}-{at}: bolt M{at}, drawer {7 * n + at}" for at in range(30)),
            f"List {n}",
        )
        for n in range(20)
    ]
    await base.take(stream(lists), "offline")
    found = await base.search("In which drawer is Item 7-12?", k=3)
    assert "List 7" in [chunk.title for chunk in found.evidence.chunks]
