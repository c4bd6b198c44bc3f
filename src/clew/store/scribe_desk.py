"""The scribe's own process: reads additions from its input, writes them when it is asked to."""

import gc
import importlib
import marshal
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from clew.store.draft import Draft
from clew.store.protocol import Addition
from clew.store.sqlite import SqliteStore
from clew.types import Chunk, Document, Extraction, FoundEntity, FoundFact


def work(folder: str, module: str, name: str) -> None:
    """Work until the input ends; it does with the caller, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller hears Ctrl-C and dismisses us
    gc.disable()  # nothing here is circular, and all of it is kept to the end
    draft, store = Draft(), SqliteStore(Path(folder))
    publish = getattr(importlib.import_module(module), name)
    line = messages(sys.stdin.buffer)
    for what, more in line:
        if what == "add":
            for told in more:
                draft.take(heard(told))
        else:
            store.write_draft(draft, publish, lambda: _told_to(line))
            sys.stdout.write("written\n")
            sys.stdout.flush()
    os._exit(0)  # nothing is open that matters, and taking all of it down takes its time


def _told_to(line: Iterator[tuple[str, Any]]) -> None:
    """Wait for the word; without it nothing is to be written."""
    if next(line, None) is None:
        raise EOFError


def messages(source: BinaryIO) -> Iterator[tuple[str, Any]]:
    """Each as it comes; a broken one is the end."""
    while len(size := source.read(8)) == 8:
        raw = source.read(int.from_bytes(size, "little"))
        if len(raw) < int.from_bytes(size, "little"):
            return
        yield marshal.loads(raw)  # from the process that started this one


def heard(told: tuple[Any, ...]) -> Addition:
    """The addition that was told."""
    document, chunks, extractions, stamp = told
    return Addition(
        Document(*document),
        tuple([Chunk(*chunk) for chunk in chunks]),
        tuple(
            [
                Extraction(
                    tuple([FoundEntity(*one) for one in entities]),
                    tuple([FoundFact(*one) for one in facts]),
                    failed,
                    exact,
                )
                for entities, facts, failed, exact in extractions
            ]
        ),
        stamp,
    )
