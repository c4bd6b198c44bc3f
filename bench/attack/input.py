"""Feeds mutated files to every document reader and every graph importer.

`python -m bench.attack.input [--count N] [--seconds S] [--seed N]`; a trial reads a hundred inputs.
A reader yields documents or reasons, or refuses the file in one sentence; nothing else escapes,
what it yields can be stored, and no input takes longer than its limit.
"""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

from bench.attack.campaign import expect, parse_options, run_campaign
from bench.attack.sample import open_kb, run
from bench.attack.seeds import (
    GRAPH_ROWS,
    GRAPH_SEEDS,
    ROWS,
    TEXT_SEEDS,
    TOKENS,
    VALUES,
    ZIPPED_SEEDS,
    make_binary_seed,
    pack_zip,
)
from clew.errors import InputError
from clew.ingest.files import READERS
from clew.ingest.graphs.formats import FORMATS, detect_format
from clew.ingest.graphs.rows import StartPosition, UnreadableRow, stage_rows
from clew.ingest.graphs.staging import GraphStage
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile
from clew.types import Document

INPUTS_PER_TRIAL = 100
MAX_SECONDS = 5.0  # of processor time for one input of a few kilobytes
_BUDGET = ReadBudget(file_bytes=1_000_000, row_bytes=100_000, pages=20, seconds=2.0)


def mutate_bytes(rng: random.Random, raw: bytes) -> bytes:
    """Change a few places: flip, delete, repeat, truncate, or insert something nasty."""
    data = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 2, 8, 64)))
        match rng.randrange(6):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                del data[at:end]
            case 2:
                data[at:at] = bytes(data[at:end]) * rng.choice((2, 5, 50))
            case 3:
                del data[at:]
            case 4:
                data[at:at] = rng.randbytes(rng.choice((1, 4, 32)))
            case _:
                data[at:at] = rng.choice(TOKENS)
    return bytes(data)


def mutate_value(rng: random.Random, value: Any) -> Any:
    """Replace one value inside a JSON value by one of another form."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {**value, rng.choice(("", "\ud800", "id", "text", "#")): value[key]}
        return {**value, key: mutate_value(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return [*value[:at], mutate_value(rng, value[at]), *value[at + 1 :]]
    return rng.choice(VALUES)


def _mutate_rows(rng: random.Random, rows: list[Any]) -> bytes:
    rows = [mutate_value(rng, row) if rng.random() < 0.6 else row for row in rows]
    text = json.dumps(rows) if rng.random() < 0.2 else "\n".join(map(json.dumps, rows))
    return text.encode()


def _make_archive(rng: random.Random, suffix: str) -> bytes:
    parts = {name: text.encode() for name, text in ZIPPED_SEEDS[suffix].items()}
    hurt = rng.choice([next(iter(parts)), *parts])
    raw = pack_zip({**parts, hurt: mutate_bytes(rng, parts[hurt])})
    return mutate_bytes(rng, raw) if rng.random() < 0.2 else raw


def make_document_input(rng: random.Random) -> tuple[str, bytes]:
    """A suffix and the content of a mutated document file."""
    suffix = rng.choice(list(TEXT_SEEDS))
    if suffix in ZIPPED_SEEDS:
        return suffix, _make_archive(rng, suffix)
    if suffix in (".sqlite", ".parquet"):
        return suffix, mutate_bytes(rng, make_binary_seed(suffix))
    if suffix in (".json", ".jsonl") and rng.random() < 0.5:
        return suffix, _mutate_rows(rng, ROWS)
    return suffix, mutate_bytes(rng, TEXT_SEEDS[suffix])


def make_graph_input(rng: random.Random) -> tuple[str, bytes]:
    """A format and the content of a mutated graph file."""
    name = rng.choice(list(GRAPH_SEEDS))
    if name == "jsonl" and rng.random() < 0.7:
        return name, _mutate_rows(rng, GRAPH_ROWS)
    return name, mutate_bytes(rng, GRAPH_SEEDS[name])


def read_document_input(path: Path) -> Iterator[str]:
    """Read a file as `clew add` does; yield what came of it."""
    reader = READERS.get(path.suffix.lower(), READERS[""])
    source = SourceFile(path, path.name)
    for item in reader(source, _BUDGET):
        if isinstance(item, Document):
            expect(bool(item.text) or bool(item.title), "an empty document")
            _store_text(item.text, item.title, *item.names, json.dumps(dict(item.metadata)))
            yield "documents"
        else:
            expect(isinstance(item, Skipped), f"a reader yielded {type(item)}")
            _store_text(str(item))
            yield "skips"


def read_graph_input(path: Path, form: str) -> Iterator[str]:
    """Read a file as `clew import` does, into a stage."""
    chosen = FORMATS[form] if form else detect_format(path)
    stage = GraphStage(path.with_suffix(".stage"), "seal")
    try:
        state = stage.load_progress()
        for batch in chosen.read(path, StartPosition()):
            nodes, links, bad = stage_rows(batch.rows)
            yield from ("rows" for _ in (*nodes, *links))
            for row in bad:
                expect(isinstance(row, UnreadableRow), "not a row")
                yield "bad rows"
            stage.commit_rows(nodes, links, state)
    finally:
        stage.close()


def _store_text(*texts: str) -> None:
    for text in texts:
        text.encode()
        expect("\0" not in text, "a NUL in a text")


def attack_input(rng: random.Random, folder: Path) -> str:
    """One trial: a hundred inputs."""
    counts = {"documents": 0, "graphs": 0}
    for number in range(INPUTS_PER_TRIAL):
        work: Callable[[], Iterator[str]]
        if rng.random() < 0.5:
            suffix, raw = make_document_input(rng)
            path = folder / f"{number}{suffix}"
            work, kind = lambda p=path: read_document_input(p), "documents"  # type: ignore[misc]
        else:
            form, raw = make_graph_input(rng)
            path = folder / f"{number}.{form}"
            known = form if rng.random() < 0.8 else ""
            work, kind = lambda p=path, k=known: read_graph_input(p, k), "graphs"  # type: ignore[misc]
        path.write_bytes(raw)
        _read_one(work, path)
        counts[kind] += 1
        if number == 0 and kind == "graphs":
            run(_import_whole(path, form))
        path.unlink()
        path.with_suffix(".stage").unlink(missing_ok=True)
    return "read"


async def _import_whole(path: Path, form: str) -> None:
    """Import a mutated file to the end: stage, names, passages, vectors, write."""
    base = await open_kb(path.parent / "kb")
    try:
        await base.import_graph(path, form=form)
        found = await base.verify()
        expect(not found, f"{form}: after the import {found}")
    except InputError:
        pass
    finally:
        await base.close()


def _read_one(work: Callable[[], Iterator[str]], path: Path) -> None:
    began = process_time()
    try:
        try:
            for _ in work():
                pass
        except (InputError, OSError) as error:  # `clew add` reports both as skipped
            _store_text(str(error))
        expect(process_time() - began < MAX_SECONDS, f"{path.suffix}: took too long")
    except Exception:
        kept = Path(".attack") / f"input{path.suffix}"
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(path.read_bytes())
        raise


if __name__ == "__main__":
    run_campaign("input", attack_input, parse_options(str(__doc__), 10_000))
