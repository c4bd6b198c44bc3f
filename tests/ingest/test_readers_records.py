"""Files of rows: which fields count, what a row is called, and how broken rows are passed over."""

import json
import tracemalloc
from pathlib import Path

import pytest

from clew.ingest.files import read
from clew.ingest.readers.source import DEFAULT_BUDGET, ReadBudget, RowNames, Skipped
from clew.types import Document


async def rows(
    path: Path, row_names: RowNames = "path", budget: ReadBudget = DEFAULT_BUDGET
) -> tuple[list[Document], list[Skipped]]:
    items = [item async for item in read([path], row_names=row_names, budget=budget)]
    documents = [item for item in items if isinstance(item, Document)]
    return documents, [item for item in items if isinstance(item, Skipped)]


async def test_rows_are_documents_named_by_their_id(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(
        '{"id": 0, "title": "Teutberga", "text": "A queen.", "year": 875}\n'
        '\n{"_id": "x", "content": "Text"}\n{"Passage": "No id"}\n"Only a string"\n'
    )
    documents, skipped = await rows(path, "id")
    name = path.as_posix()
    assert not skipped
    assert [d.names for d in documents] == [("0",), ("x",), (f"{name}#4",), (f"{name}#5",)]
    assert (documents[0].title, documents[0].text) == ("Teutberga", "A queen.")
    assert documents[0].metadata == {"year": 875}
    by_path, _ = await rows(path)
    assert [d.names[0] for d in by_path] == [f"{name}#{row}" for row in ("0", "x", "4", "5")]
    assert [d.id for d in by_path] == [d.id for d in documents]


def write_page(links: int) -> str:
    menu = "".join(
        f"[![Image {at}: a map](https://img.example/{at}.png)](https://a.example/m_({at}) 'Map')"
        f"[Harbour {at}](https://a.example/harbours/{at})"
        for at in range(links // 3 + 1)
    )
    return f"# Tides\n\n{menu}\n\nThe tide turns at [noon](<https://a.example/noon>).\n"


@pytest.mark.parametrize("name", ["page.md", "pages.jsonl"])
async def test_a_saved_web_page_is_read_without_the_addresses_of_its_links(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    for links in (30, 3):
        text = write_page(links)
        path.write_text(json.dumps({"text": text}) if name.endswith("l") else text)
        [[document], _] = await rows(path)
        if links == 3:  # of few links the addresses may be what the text is about
            assert "https://a.example/harbours/0" in document.text
        else:
            assert "example" not in document.text and "](" not in document.text
            assert "Image 0: a map Harbour 0 Image 1: a map Harbour 1" in document.text
            assert document.text.endswith("The tide turns at noon.\n")


@pytest.mark.parametrize("name", ["page.md", "pages.jsonl"])
async def test_links_to_pages_beside_it_are_read_by_their_labels(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    text = (
        "![Map](map.png) [Home](index.md)\n\n# Grell Bridge\n\n"
        "It is in [Tolm](tolm-city.md 'Tolm'), see [`opens`](../api.md#opens) and "
        "[the town](https://tolm.example/a). `calls[name](event)` stays.\n\n"
        "```py\ncalls[name](event)\n```\n\nBy [Vera Tasch](</people/vera tasch.md>).\n"
    )
    path.write_text(json.dumps({"text": text}) if name.endswith("l") else text)
    [[document], _] = await rows(path)
    assert "It is in Tolm, see `opens` and [the town](https://tolm.example/a)." in document.text
    assert document.text.count("calls[name](event)") == 2
    assert "By Vera Tasch." in document.text and ".md" not in document.text
    assert document.title == ("" if name.endswith("l") else "Grell Bridge")


async def test_broken_rows_are_counted_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    lines = [
        b'{"text": "good"}',
        b'{"text": "cut',
        b"[1, 2]",
        b'{"title": "no text"}',
        b'{"text": "  "}',
        b'{"text": {"a": 1}}',
        b'{"text": ' + b"[" * 100_000,
        b'{"text": ' + b"9" * 5000 + b"}",
        b"\xcc\xee\xf1\xea\xe2\xe0 \xd0\xee\xf1\xf1\xe8\xff",
        b'{"text": "caf\xe9 in old letters"}',
        b'{"text": ["Two ", "parts"], "n": NaN}',
        b'{"text": "lone \\ud800 \\u0000"}',
        b'{"text": "last"}',
    ]
    path.write_bytes(b"\n".join(lines))
    documents, skipped = await rows(path)
    assert [d.text for d in documents] == [
        "good",
        "café in old letters",
        "Two parts",
        "lone \ufffd \ufffd",
        "last",
    ]
    assert documents[1].metadata == {"encoding": "latin-1"}
    json.dumps(documents[2].metadata, allow_nan=False)
    assert [skip.line for skip in skipped] == [2, 3, 4, 5, 6, 7, 8, 9]
    assert "is not JSON" in skipped[0].reason and "no field named" in skipped[2].reason


async def test_a_line_without_end_costs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.write(b'{"text": "before"}\n')
        for _ in range(64):
            file.write(b"x" * 1_000_000)
        file.write(b'\n{"text": "after"}\n')
    tracemalloc.start()
    documents, skipped = await rows(path, budget=ReadBudget(row_bytes=1_000_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [d.text for d in documents] == ["before", "after"]
    assert str(skipped[0]).endswith("line 2: the line is longer than the limit of 1 MB.")
    assert peak < 8_000_000


async def test_many_rows_are_streamed(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    row = json.dumps({"text": "x" * 100_000}) + "\n"
    with path.open("w") as file:
        file.writelines(row for _ in range(300))  # 30 MB
    tracemalloc.start()
    count = 0
    async for _ in read([path]):
        count += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 300
    assert peak < 20_000_000


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32"])
async def test_marked_encodings_of_rows(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "Zoë"}\n{"text": "東京"}\n', codec)
    documents, _ = await rows(path)
    assert [d.text for d in documents] == ["Zoë", "東京"]
    path.write_text(f'{{"text": "Zoë"}}\n{"x" * 5000}\n{{"text": "東京"}}\n', codec)
    documents, skipped = await rows(path, budget=ReadBudget(row_bytes=100))
    assert [d.text for d in documents] == ["Zoë", "東京"] and skipped[0].line == 2


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.json"])
async def test_binary_and_empty_files_of_rows_are_one_skip(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for raw in (b"", bytes(range(256)) * 50):
        path.write_bytes(raw)
        documents, skipped = await rows(path)
        assert not documents and len(skipped) == 1


async def test_json_lists_and_single_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"id": "q", "body": "One"}, {"x": 1}, {"body": "Three"}]')
    documents, skipped = await rows(path)
    assert [d.names[0] for d in documents] == [f"{path.as_posix()}#q", f"{path.as_posix()}#3"]
    assert skipped[0].reason.startswith("row 2 has no field")
    path.write_text('{"heading": "T", "text": "One"}')
    documents, _ = await rows(path)
    assert documents[0].names == (path.as_posix(),) and documents[0].title == "T"
    for broken in ("3", "[]", "{}", "[" * 100_000, "{"):
        path.write_text(broken)
        documents, skipped = await rows(path)
        assert not documents and len(skipped) == 1


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t")])
async def test_tables(tmp_path: Path, name: str, mark: str) -> None:
    path = tmp_path / name
    table = [
        "ID|Title|Text|Year",
        '7|Queen|"Two\nlines| and a ""quote"""|875',
        "8|King|",
        "9|Duke|Fine",
        "10|a|b|c|d",
        "11|Count|Last|900",
    ]
    path.write_text("\ufeff" + "\n".join(table).replace("|", mark))
    documents, skipped = await rows(path, "id")
    assert [d.names[0] for d in documents] == ["7", "9", "11"]
    assert documents[0].text == f'Two\nlines{mark} and a "quote"'
    assert documents[0].metadata == {"Year": "875"}
    assert [(skip.line, skip.reason) for skip in skipped] == [
        (4, "has an empty 'text'"),
        (6, "has 5 fields where the header has 4"),
    ]


async def test_a_table_without_text_is_read_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    documents, skipped = await rows(path)
    assert [d.text for d in documents] == ["a: 1; b: 2.\na: 3; b: 4."] and not skipped


async def test_large_cells_and_lines_that_are_too_long(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"id,text\n1,{'x' * 200_000}\n2,{'y' * 400_000}\n3,z\n")
    documents, skipped = await rows(path, "id", ReadBudget(row_bytes=300_000))
    assert [d.names[0] for d in documents] == ["1", "3"]
    assert [skip.line for skip in skipped] == [3]


async def test_a_table_cut_in_a_row_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,title,text\nr1,A,One line.\nr2,B")
    documents, skipped = await rows(path)
    assert [d.title for d in documents] == ["A"]
    assert [(s.reason, s.broken) for s in skipped] == [("ends in the middle of a row", True)]
