"""Messages to the writer process: each once and in order."""

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


class Input(BytesIO):
    """The standard input of the writer process."""

    def is_closing(self) -> bool:
        return False


def make_writer(answer: bytes = b"written\n") -> tuple[WriterProcess, Input]:
    pipe, messages = Input(), asyncio.StreamReader()
    messages.feed_data(answer)
    messages.feed_eof()
    return WriterProcess(cast(Any, SimpleNamespace(stdin=pipe, stdout=messages))), pipe


async def test_additions_are_sent_once_even_if_writing_begins_twice() -> None:
    writer, pipe = make_writer()
    writer.send(MARIE)
    writer.send(PIERRE)
    writer.begin_write()
    writer.begin_write()
    assert await writer.write()
    messages = list(read_messages(BytesIO(pipe.getvalue())))
    assert [what for what, _ in messages] == ["add", "begin", "write"]
    assert [decode_addition(one) for one in messages[0][1]] == [MARIE, PIERRE]


async def test_many_additions_are_sent_in_several_messages() -> None:
    writer, pipe = make_writer()
    for _ in range(70):
        writer.send(MARIE)
    writer.begin_write()
    messages = list(read_messages(BytesIO(pipe.getvalue())))
    assert [what for what, _ in messages] == ["add", "add", "add", "begin"]
    assert [len(more) for _, more in messages[:3]] == [32, 32, 6]


async def test_without_an_answer_the_caller_has_to_write() -> None:
    writer, _ = make_writer(b"")
    writer.send(MARIE)
    assert not await writer.write()
    assert not writer.done


def test_a_truncated_message_ends_the_stream() -> None:
    whole = BytesIO()
    pipe = cast(Any, SimpleNamespace(write=whole.write, is_closing=lambda: False))
    writer = WriterProcess(cast(Any, SimpleNamespace(stdin=pipe, stdout=None)))
    writer.send(MARIE)
    writer.begin_write()
    raw = whole.getvalue()
    assert [what for what, _ in read_messages(BytesIO(raw))] == ["add", "begin"]
    assert [what for what, _ in read_messages(BytesIO(raw[:-1]))] == ["add"]
    assert list(read_messages(BytesIO(raw[:12]))) == []
    assert decode_addition(encode_addition(PIERRE)) == PIERRE
