"""One bad row costs that row; a file that is cut removes nothing."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from clew.engine import KnowledgeBase
from clew.ingest.files import read
from clew.ingest.readers.source import FileEnd, ReadBudget, Skipped
from clew.types import Document
from conftest import one_in_three

ROWS = [{"id": f"r{n}", "text": f"Text number {n} about Vessen."} for n in range(6)]


@pytest.mark.parametrize("end", [-1, -5, -20])
async def test_rows_of_a_file_that_was_cut_are_kept(
    base: KnowledgeBase, tmp_path: Path, end: int
) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text("\n".join(map(json.dumps, ROWS)))
    await base.add([file])
    file.write_text("\n".join(map(json.dumps, ROWS[:3]))[:end])
    added = await base.add([file])
    assert added.removed == 0
    assert len(await base.store.sources()) == len(ROWS)
    file.write_text("\n".join(map(json.dumps, ROWS[:3])))
    assert (await base.add([file])).removed == 3


async def test_rows_after_a_quote_that_is_not_closed_are_read(tmp_path: Path) -> None:
    lines = ["id,text", "1,good", '2,"open', *(f"{n},text {n}" for n in range(3, 2000))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    found = [item async for item in read([tmp_path / "t.csv"])]
    bad = [item for item in found if isinstance(item, Skipped)]
    assert [(item.line, item.reason) for item in bad] == [(3, "has a quote that is not closed")]
    assert len(found) == 1999


async def test_a_file_is_not_taken_for_a_row_of_another(
    base: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    (tmp_path / "r.jsonl#note.md").write_text("A note of its own about Hallowmere.")
    await base.add(["r.jsonl", "r.jsonl#note.md"])
    assert (await base.add(["r.jsonl"])).removed == 0
    assert "r.jsonl#note.md" in await base.store.sources()
    await base.remove(["r.jsonl"])
    assert list(await base.store.sources()) == ["r.jsonl#note.md"]


_GOOD = {"head": "Ilse", "relation": "born in", "tail": "Vessen"}
_HOSTILE_ROWS = {
    "a list for a name": {"id": "x", "name": ["a", ["b"]], "type": {"k": 1}},
    "a surrogate": {"head": "\ud800", "relation": "r", "tail": "t"},
    "members of another form": {"kind": "fact", "clew_members": [["a"], 5], "relation": []},
    "a surrogate as a member": {"kind": "fact", "clew_members": [["\udfff", "head"]]},
    "attributes of another form": {"kind": "entity", "name": "n", "attributes": ["x"]},
    "labels of another form": {"type": "node", "id": {"a": 1}, "labels": {"b": [2]}},
    "ends of another form": {"type": "relationship", "start": [1], "end": {"id": None}},
    "a relation that is a list": {"kind": "fact", "clew_members": [["a", "b"]], "relation": [1]},
}


@pytest.mark.parametrize("row", one_in_three(_HOSTILE_ROWS.values()), ids=_HOSTILE_ROWS.keys())
async def test_a_hostile_graph_row_costs_that_row(
    base: KnowledgeBase, tmp_path: Path, row: dict[str, object]
) -> None:
    (tmp_path / "g.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(_GOOD)}\n")
    done = await base.import_graph(tmp_path / "g.jsonl")
    assert done.counts.facts >= 1
    assert await base.verify() == []


async def test_a_field_of_131_kilobytes_is_no_traceback(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    long = "x" * 140_000
    (tmp_path / "g.csv").write_text(f"{long},r,t\nIlse,born in,Vessen\n")
    done = await base.import_graph(tmp_path / "g.csv", form="csv")
    assert done.counts.facts >= 1


async def test_only_unreadable_files_and_a_model_make_an_empty_knowledge_base(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    from clew.testing.fakes import ScriptedChat

    (tmp_path / "a.pdf").write_bytes(b"\x00\x01")
    added = await base.add([tmp_path / "a.pdf"], extractor="offline")
    assert len(added.skipped) == 1
    assert await base.identity.summarize_descriptions(ScriptedChat([])) == 0


async def test_a_header_of_garbage_costs_little(tmp_path: Path) -> None:
    head = f"Subject: Short\nContent-Type: multipart/mixed{'[' * 60_000}; boundary=x\n"
    (tmp_path / "a.eml").write_text(f"{head}\nThe text of the message.\n")
    [found] = [item async for item in read([tmp_path / "a.eml"], budget=ReadBudget(seconds=20))]
    assert isinstance(found, Document) and found.title == "Short"


async def test_a_table_that_has_no_body_breaks_no_reader(tmp_path: Path) -> None:
    (tmp_path / "a.tex").write_text("Text.\n\\begin{tabular}{ll}\\end{tabular}\nMore.\n")
    [found] = [item async for item in read([tmp_path / "a.tex"])]
    assert isinstance(found, Document) and found.text.split() == ["Text.", "More."]


async def test_a_mail_with_a_date_of_many_digits_is_skipped(tmp_path: Path) -> None:
    date = f"Mon, 1 Jan {'9' * 30} 10:00:00 +{'9' * 30}"
    (tmp_path / "a.eml").write_text(f"Subject: One\nDate: {date}\n\nIt spans the Tarn.\n")
    [found] = [item async for item in read([tmp_path / "a.eml"]) if not isinstance(item, FileEnd)]
    assert isinstance(found, Document | Skipped)


async def test_a_table_whose_column_is_not_utf8_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE notes (remark TEXT)")
        db.execute("INSERT INTO notes VALUES ('It spans the Tarn.')")
        db.commit()
    file.write_bytes(file.read_bytes().replace(b"remark", b"rem\xff\xferk"))
    found = [item async for item in read([file]) if not isinstance(item, FileEnd)]
    assert [type(item) for item in found] == [Skipped]
    assert "is not a readable SQLite file" in str(found[0])


async def test_a_parquet_file_with_text_that_is_not_utf8_is_skipped(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    raw = arrow.array([b"It spans \xff\xfe the Tarn."], arrow.binary())
    table = arrow.table({"text": arrow.StringArray.from_buffers(1, *raw.buffers()[1:])})
    parquet.write_table(table, tmp_path / "t.parquet")
    found = [item async for item in read([tmp_path / "t.parquet"]) if isinstance(item, Skipped)]
    assert "is not a readable Parquet file" in str(found[0])
