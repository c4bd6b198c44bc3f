"""A draft told while a model writes: no half letters, each letter read once, and not for ever."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.answering.write import SentenceStream, StreamingChat
from clew.context import AnswerDelta, Event
from clew.llm.chat import Reply, Request, TextCallback
from clew.types import Usage

TEXTS = ['Zoë "quoted" 🎈\nline \\ \\u00e9 end.', "Second é.", ""]


class Pieces:
    """A model that writes a text so many letters at a time."""

    name = "pieces"

    def __init__(self, text: str, size: int) -> None:
        self.text, self.size = text, size

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        for at in range(0, len(self.text), self.size):
            assert on_text is not None
            on_text(self.text[at : at + self.size])
        return Reply(self.text, Usage(), "stop", "pieces")


async def heard(text: str, size: int) -> str:
    told: list[Event] = []
    await StreamingChat(Pieces(text, size), told.append)(Request())
    return "".join(piece.text for piece in told if isinstance(piece, AnswerDelta))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 1000])
@pytest.mark.parametrize("plain", [True, False])
async def test_wherever_a_piece_ends_the_letters_are_whole(size: int, plain: bool) -> None:
    answer = {"sentences": [{"text": text, "sources": [1]} for text in TEXTS], "short": "x"}
    assert await heard(json.dumps(answer, ensure_ascii=plain), size) == " ".join(TEXTS)


@given(st.lists(st.text(max_size=8), max_size=3), st.integers(1, 9), st.booleans())
def test_any_texts_in_any_pieces(texts: list[str], size: int, plain: bool) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    written = json.dumps([{"text": text} for text in texts], ensure_ascii=plain)
    sentences = SentenceStream()
    pieces = [written[at : at + size] for at in range(0, len(written), size)]
    assert "".join(map(sentences.feed, pieces)) == " ".join(texts)


def test_what_was_told_is_not_kept() -> None:
    sentences = SentenceStream()
    sentences.feed('{"text": "' + "word " * 1000)
    sentences.feed('", "sources": [' + "1, " * 1000)
    assert len(repr(sentences)) < 200  # whatever it holds


async def test_a_model_that_does_not_end_is_not_told_for_ever() -> None:
    told = await heard('{"text": "' + "again " * 20_000, 50)
    assert 20_000 <= len(told) < 20_100
