"""What the scribe is told, message by message: each thing once and in order."""

import asyncio
from io import BytesIO
from types import SimpleNamespace
from typing import Any, cast

from clew.store.sqlite.writer_process import (
    WriterProcess,
    decode_addition,
    encode_addition,
    read_messages,
)
from clew.testing.contracts import MARIE, PIERRE


class Line(BytesIO):
    """The scribe's input."""

    def is_closing(self) -> bool:
        return False


def hired(answer: bytes = b"written\n") -> tuple[WriterProcess, Line]:
    line, said = Line(), asyncio.StreamReader()
    said.feed_data(answer)
    said.feed_eof()
    return WriterProcess(cast(Any, SimpleNamespace(stdin=line, stdout=said))), line


async def test_additions_are_told_once_however_often_writing_is_begun() -> None:
    scribe, line = hired()
    scribe.send(MARIE)
    scribe.send(PIERRE)
    scribe.begin_write()
    scribe.begin_write()
    assert await scribe.write()
    said = list(read_messages(BytesIO(line.getvalue())))
    assert [what for what, _ in said] == ["add", "begin", "write"]
    assert [decode_addition(one) for one in said[0][1]] == [MARIE, PIERRE]


async def test_many_additions_travel_in_several_messages_and_none_is_lost() -> None:
    scribe, line = hired()
    for _ in range(70):
        scribe.send(MARIE)
    scribe.begin_write()
    said = list(read_messages(BytesIO(line.getvalue())))
    assert [what for what, _ in said] == ["add", "add", "add", "begin"]
    assert [len(more) for _, more in said[:3]] == [32, 32, 6]


async def test_an_answer_that_is_none_leaves_the_writing_to_the_caller() -> None:
    scribe, _ = hired(b"")
    scribe.send(MARIE)
    assert not await scribe.write()
    assert not scribe.done


def test_a_message_that_breaks_off_is_the_end() -> None:
    whole = BytesIO()
    line = cast(Any, SimpleNamespace(write=whole.write, is_closing=lambda: False))
    scribe = WriterProcess(cast(Any, SimpleNamespace(stdin=line, stdout=None)))
    scribe.send(MARIE)
    scribe.begin_write()
    raw = whole.getvalue()
    assert [what for what, _ in read_messages(BytesIO(raw))] == ["add", "begin"]
    assert [what for what, _ in read_messages(BytesIO(raw[:-1]))] == ["add"]
    assert list(read_messages(BytesIO(raw[:12]))) == []
    assert decode_addition(encode_addition(PIERRE)) == PIERRE
