"""Main function of the writer process: reads additions from stdin and writes them on request."""

import gc
import importlib
import marshal
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from clew.store.draft import PreparedAdditions
from clew.store.protocol import Addition
from clew.store.sqlite import SqliteStore
from clew.types import Chunk, Document, Extraction, RawEntity, RawFact


def main(folder: str, module: str, name: str) -> None:
    """Run until the input ends, at the latest when the parent exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and stops this process
    gc.disable()  # there are no reference cycles, and everything lives until the end
    draft, store = PreparedAdditions(), SqliteStore(Path(folder))
    publish = getattr(importlib.import_module(module), name)
    stream = read_messages(sys.stdin.buffer)
    for command, payload in stream:
        if command == "add":
            for raw in payload:
                draft.add(decode_addition(raw))
        else:
            store.write_prepared(draft, publish, lambda: _wait_for_write(stream))
            sys.stdout.write("written\n")
            sys.stdout.flush()
    os._exit(0)  # skips the slow teardown; nothing needs closing


def _wait_for_write(stream: Iterator[tuple[str, Any]]) -> None:
    """Wait for the write command; raise EOFError if the input ends first."""
    if next(stream, None) is None:
        raise EOFError


def read_messages(source: BinaryIO) -> Iterator[tuple[str, Any]]:
    """Yield messages as they arrive; a truncated one ends the stream."""
    while len(size := source.read(8)) == 8:
        raw = source.read(int.from_bytes(size, "little"))
        if len(raw) < int.from_bytes(size, "little"):
            return
        yield marshal.loads(raw)  # trusted: sent by the parent process


def decode_addition(raw: tuple[Any, ...]) -> Addition:
    """Rebuild an addition from its tuples."""
    document, chunks, extractions, stamp = raw
    return Addition(
        Document(*document),
        tuple([Chunk(*chunk) for chunk in chunks]),
        tuple(
            [
                Extraction(
                    tuple([RawEntity(*one) for one in entities]),
                    tuple([RawFact(*one) for one in facts]),
                    failed,
                    exact,
                )
                for entities, facts, failed, exact in extractions
            ]
        ),
        stamp,
    )
