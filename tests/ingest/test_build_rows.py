"""Adding again: rows that went, names given twice, and documents without a name."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.engine import KnowledgeBase
from clew.ingest.readers.source import make_document as made
from clew.types import Document
from conftest import document, stream

PEOPLE = [
    "Alice Smith lives in Paris.",
    "Bob Jones lives in Berlin.",
    "Carl Miller lives in Rome.",
]


def write_rows(path: Path, *rows: dict[str, str]) -> None:
    path.write_text("\n".join(json.dumps(row) for row in rows))


async def texts(base: KnowledgeBase) -> dict[str, str]:
    """Every document's text by its name."""
    held = await base.store.sources()
    async with base.store.snapshot() as now:
        found = await now.documents([one.document for one in held.values()])
    return {name.rpartition("/")[2]: found[one.document].text for name, one in held.items()}


async def test_rows_taken_out_of_a_file_go(base: KnowledgeBase, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    write_rows(path, *({"text": text} for text in PEOPLE))
    await base.add([path])
    write_rows(path, {"text": PEOPLE[0]})
    assert (await base.plan([path])).removed == 2
    done = await base.add([path])
    assert (done.unchanged, done.removed, done.counts.documents) == (1, 2, 1)
    assert await texts(base) == {"rows.jsonl#1": PEOPLE[0]}
    assert await base.verify() == []


async def test_a_row_that_moves_up_keeps_its_document(base: KnowledgeBase, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,text\n" + "".join(f"{at},{text}\n" for at, text in enumerate(PEOPLE)))
    await base.add([path])
    path.write_text(f"id,text\n2,{PEOPLE[2]}\n0,{PEOPLE[1]}\n")
    done = await base.add([path])
    assert (done.updated, done.unchanged, done.removed) == (1, 1, 1)
    assert await texts(base) == {"rows.csv#2": PEOPLE[2], "rows.csv#0": PEOPLE[1]}


@pytest.mark.parametrize("left", ["", "{", '{"note": "no text"}'])
async def test_a_file_that_can_no_longer_be_read_loses_nothing(
    base: KnowledgeBase, tmp_path: Path, left: str
) -> None:
    path = tmp_path / "rows.jsonl"
    write_rows(path, *({"text": text} for text in PEOPLE))
    await base.add([path])
    path.write_text(left)
    done = await base.add([path])
    assert (len(done.skipped), done.removed, done.counts.documents) == (1, 0, 3)


async def test_only_the_rows_of_what_was_read_go(base: KnowledgeBase, tmp_path: Path) -> None:
    one, two = tmp_path / "a.jsonl", tmp_path / "a.jsonl2.jsonl"
    for path in (one, two):
        write_rows(path, *({"text": text} for text in PEOPLE))
    await base.add([one, two])
    write_rows(one, {"text": PEOPLE[1]})
    done = await base.add([one])
    assert done.removed == 2
    assert set(await texts(base)) == {"a.jsonl#1", *(f"a.jsonl2.jsonl#{n}" for n in (1, 2, 3))}


async def test_a_graph_in_a_folder_keeps_its_parts(base: KnowledgeBase, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    graph = folder / "graph.csv"
    graph.write_text("text,relation,tail\nAlice,lives in,Paris\nBob,lives in,Rome\n")
    await base.import_graph(graph, form="csv")
    held = set(await base.store.sources())
    assert held
    await base.add([folder])  # reads the same file as rows
    assert held <= set(await base.store.sources())


async def test_the_first_row_of_an_id_has_it_every_time(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    write_rows(path, *({"id": "x", "text": text} for text in PEOPLE))
    for _ in range(3):
        done = await base.add([path])
        assert [skip.name.rpartition("/")[2] for skip in done.skipped] == ["rows.jsonl#x"] * 2
        assert "another document" in done.skipped[0].reason
        assert await texts(base) == {"rows.jsonl#x": PEOPLE[0]}
    assert (done.added, done.updated, done.unchanged) == (0, 0, 1)


async def test_a_row_without_id_at_the_line_of_an_id_is_not_lost_in_silence(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    write_rows(path, {"id": "2", "text": PEOPLE[0]}, {"text": PEOPLE[1]})
    done = await base.add([path])
    assert (done.added, len(done.skipped)) == (1, 1)


async def test_the_same_said_twice_is_one(base: KnowledgeBase) -> None:
    one = document("a", PEOPLE[0])
    done = await base.take(stream([one, one, document("b", PEOPLE[0])]))
    assert (done.added, done.unchanged, done.skipped) == (2, 1, ())
    assert set(await texts(base)) == {"a", "b"}


async def test_of_several_names_only_those_that_are_taken_are_left_out(base: KnowledgeBase) -> None:
    both = Document(document("b", PEOPLE[1]).id, PEOPLE[1], names=("a", "b"))
    done = await base.take(stream([document("a", PEOPLE[0]), both]))
    assert (done.added, [skip.name for skip in done.skipped]) == (2, ["a"])
    assert await texts(base) == {"a": PEOPLE[0], "b": PEOPLE[1]}


async def test_a_text_without_a_name_is_told(base: KnowledgeBase) -> None:
    async def nameless() -> AsyncIterator[Document]:
        yield made(PEOPLE[0], name="")

    done = await base.take(nameless())
    assert (done.added, done.unchanged, done.counts.documents) == (0, 0, 0)
    assert [(skip.name, skip.reason) for skip in done.skipped] == [
        (PEOPLE[0], "has no name; set one")
    ]
