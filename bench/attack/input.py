"""Feeds mutated files to every document reader and every graph importer.

`python -m bench.attack.input [--count N] [--seconds S] [--seed N]`; a trial reads a hundred inputs.
A reader yields documents or reasons, or refuses the file in one sentence; nothing else escapes,
what it yields can be stored, and no input takes longer than its limit.
"""

import json
import random
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from time import process_time
from typing import Any

from bench.attack.campaign import expect, parse_options, run_campaign
from bench.attack.sample import open_kb, run
from clew.errors import InputError
from clew.ingest.files import READERS
from clew.ingest.graphs.formats import FORMATS, detect_format
from clew.ingest.graphs.import_graph import stage_rows
from clew.ingest.graphs.rows import StartPosition, UnreadableRow
from clew.ingest.graphs.staging import GraphStage
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile
from clew.types import Document

INPUTS_PER_TRIAL = 100
MAX_SECONDS = 5.0  # of processor time for one input of a few kilobytes
_BUDGET = ReadBudget(file_bytes=1_000_000, row_bytes=100_000, pages=20, seconds=2.0)
_ROWS: list[Any] = [
    {"id": "a1", "title": "Marrow Bridge", "text": "It spans the Tarn.", "year": 1921},
    {"id": 2, "title": ["x"], "text": ["One.", "Two."], "tags": {"a": [1, None]}},
]
_GRAPH_ROWS: list[Any] = [
    {"head": "Ilse", "relation": "born in", "tail": "Vessen", "weight": 2},
    ["Ilse", "designed", "Marrow Bridge"],
    {"id": "n1", "name": "Ilse", "type": "person", "aliases": ["I. B."], "born": 1870},
    {"type": "node", "id": "7", "labels": ["Person"], "properties": {"name": "Ilse"}},
    {"type": "relationship", "label": "KNOWS", "start": {"id": "7"}, "end": {"id": "8"}},
    {"kind": "entity", "name": "Ilse", "type": "person", "attributes": {"born": "1870"}},
    {"kind": "fact", "text": "Ilse met Oda.", "clew_members": [["Ilse", "head"], ["Oda", "tail"]]},
]
_GRAPHML = (
    '<?xml version="1.0"?><graphml><key id="d0" for="node" attr.name="name"/>'
    '<key id="d1" for="edge" attr.name="label"><default>knows</default></key><graph>'
    '<node id="a"><data key="d0">Ilse</data></node><node id="b"/>'
    '<node id="c"><data key="clew_attributes">{"born": "1870"}</data></node>'
    '<node id="d"><data key="clew_members">[["Ilse", "head"]]</data></node>'
    '<node id="e"><data key="clew_exact">{"+name": "x"}</data></node>'
    '<edge source="a" target="b"><data key="d1">met</data></edge></graph></graphml>'
)
_DOCUMENT_XML = (
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
    "<w:p><w:r><w:t>Marrow Bridge spans the Tarn.</w:t></w:r></w:p>"
    "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    "</w:body></w:document>"
)
_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<<>>>>endobj\n"
    b"4 0 obj<</Length 44>>stream\nBT /F1 12 Tf (Marrow Bridge) Tj ET\nendstream endobj\n"
    b"trailer<</Root 1 0 R>>\n"
)
TEXT_SEEDS: dict[str, bytes] = {
    ".txt": b"Marrow Bridge spans the Tarn.\n\nIt was built in 1921.\n",
    ".md": b"---\ntitle: Bridge\n---\n# Marrow\n\ntext\n\n```py\ncode\n```\n| a | b |\n|---|---|\n",
    ".rst": b"Marrow\n======\n\n.. note:: text\n\n   more\n",
    ".html": b"<html><head><title>Marrow</title></head><body><p>It <b>spans</b> the Tarn.</p>"
    b"<table><tr><td>1</td></tr></table><script>x</script></body></html>",
    ".csv": b'id,title,text\n1,Marrow,"It spans, the Tarn."\n2,Mill,"two\nlines"\n',
    ".tsv": b"id\ttext\n1\tIt spans the Tarn.\n2\ttwo\n",
    ".jsonl": "\n".join(map(json.dumps, _ROWS)).encode(),
    ".json": json.dumps(_ROWS).encode(),
    ".pdf": _PDF,
    ".docx": b"",
    ".xyz": b"plain",
}
GRAPH_SEEDS: dict[str, bytes] = {
    "tsv": b"head\trelation\ttail\tweight\nIlse\tborn in\tVessen\t2\nA\\tB\tr\tC\t1\n",
    "csv": b'Ilse,born in,Vessen\n"Mill, Tarn",in,"Vessen"\nx,y,z,0.5\n',
    "pipe": b"Ilse|born in|Vessen\nIlse|designed|Marrow Bridge\n",
    "ntriples": b"<http://x/a> <http://x/p> <http://x/b> .\n"
    b'<http://x/a> <http://x/n> "I\\u00e9"@en .\n',
    "turtle": b"@prefix x: <http://x/> .\n"
    b'x:a x:p x:b ; x:n "Ilse"@en , 3.5 .\n_:b x:q [ x:r x:c ] .\n',
    "graphml": _GRAPHML.encode(),
    "neo4j": b"id:ID,name,:LABEL,tags:string[]\n1,Ilse,Person;Author,a;b\n2,Oda,Person,\n",
    "jsonl": "\n".join(map(json.dumps, _GRAPH_ROWS)).encode(),
}
_TOKENS = (
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", b"\\", b'"', b"'", b"\r"),
    *(b"\n", b"\t", b",", b";", b"|", b"#", b"[" * 3000, b'{"a":' * 3000, b"<a>" * 2000, b"]]>"),
    *(b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"&a;", b"NaN", b"1e999", b"-0", b"9" * 5000, b"null"),
    *(b"\x1b[31m", "\u202e".encode(), "\u2028".encode(), "e\u0301".encode(), b"\x85", b"=1+1"),
    *(b'""""', b"/*", b"<table>" * 200, b"(" * 2000, b"\\u0000", b"\x1a", b"PK\x03\x04", b"%PDF-"),
)
_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        [],
        {},
        [[]],
        {"a": {"b": [1]}},
        -1,
        1e308,
        "",
        " ",
        "\ud800",
        "\x00",
        "a" * 9000,
    ),
    *([["x", "y"], ["z"]], {"": ""}, "\u202eabc", 10**400, [None, "x"], "#", "=cmd|' /C calc'!A0"),
)


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
                data[at:at] = rng.choice(_TOKENS)
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
    return rng.choice(_VALUES)


def _mutate_rows(rng: random.Random, rows: list[Any]) -> bytes:
    rows = [mutate_value(rng, row) if rng.random() < 0.6 else row for row in rows]
    text = json.dumps(rows) if rng.random() < 0.2 else "\n".join(map(json.dumps, rows))
    return text.encode()


def _make_docx(rng: random.Random) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", mutate_bytes(rng, _DOCUMENT_XML.encode()))
    raw = file.getvalue()
    return mutate_bytes(rng, raw) if rng.random() < 0.2 else raw


def make_document_input(rng: random.Random) -> tuple[str, bytes]:
    """A suffix and the content of a mutated document file."""
    suffix = rng.choice(list(TEXT_SEEDS))
    if suffix == ".docx":
        return suffix, _make_docx(rng)
    if suffix in (".json", ".jsonl") and rng.random() < 0.5:
        return suffix, _mutate_rows(rng, _ROWS)
    return suffix, mutate_bytes(rng, TEXT_SEEDS[suffix])


def make_graph_input(rng: random.Random) -> tuple[str, bytes]:
    """A format and the content of a mutated graph file."""
    name = rng.choice(list(GRAPH_SEEDS))
    if name == "jsonl" and rng.random() < 0.7:
        return name, _mutate_rows(rng, _GRAPH_ROWS)
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
        for _ in work():
            pass
    except (InputError, OSError) as error:  # `clew add` reports both as skipped
        _store_text(str(error))
    except Exception:
        kept = Path(".attack") / f"input{path.suffix}"
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(path.read_bytes())
        raise
    expect(process_time() - began < MAX_SECONDS, f"{path.suffix}: took too long")


if __name__ == "__main__":
    run_campaign("input", attack_input, parse_options(str(__doc__), 10_000))
