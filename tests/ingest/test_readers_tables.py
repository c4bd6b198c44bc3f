"""Tables of every format: a file is one document, its rows are places in it with cells."""

import csv
import json
import re
import sqlite3
import zipfile
from pathlib import Path

import pytest

from clew.ingest.files import READERS, read
from clew.ingest.readers.source import ReadBudget, Skipped
from clew.ingest.readers.tables import choose_label, flatten_row, split_column
from clew.text.tables import read_tables
from clew.types import Document
from conftest import list_rows

TOWNS = [
    {"code": "HA", "name": "Hallowmere", "people": 1200},
    {"code": "VE", "name": "Vessen", "people": 86000},
]


async def _read(path: Path, **how: ReadBudget) -> tuple[list[Document], list[Skipped]]:
    items = [item async for item in read([path], **how)]
    return (
        [item for item in items if isinstance(item, Document)],
        [item for item in items if isinstance(item, Skipped)],
    )


def _write_csv(path: Path) -> None:
    rows = [f"{row['code']},{row['name']},{row['people']}" for row in TOWNS]
    path.write_text("\n".join(["code,name,people", *rows]))


def _write_sqlite(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute('CREATE TABLE "the ""towns""" (code TEXT, name TEXT, people INTEGER)')
        database.executemany('INSERT INTO "the ""towns""" VALUES (:code, :name, :people)', TOWNS)
    database.close()


def _write_parquet(path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(TOWNS), path)


SPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def _write_xlsx(path: Path) -> None:
    texts = ["code", "name", "people", "HA", "Hallowmere", "VE", "Vessen", "founded"]
    shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
    cells = [
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c>'
        '<c r="C1" t="s"><v>2</v></c></row>',
        '<row r="2"><c r="A2" t="s"><v>3</v></c><c r="B2" t="s"><v>4</v></c>'
        '<c r="C2"><v>1200</v></c></row>',
        '<row r="3"><c r="A3" t="s"><v>5</v></c><c r="B3" t="inlineStr"><is><t>Vessen</t></is></c>'
        '<c r="C3"><v>86000</v></c></row>',
    ]
    with zipfile.ZipFile(path, "w") as book:
        book.writestr(
            "xl/workbook.xml",
            f'<workbook {SPACE} xmlns:r="{LINKS}"><sheets>'
            '<sheet name="towns" sheetId="1" r:id="r1"/></sheets></workbook>',
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            '<Relationships><Relationship Id="r1" Target="worksheets/sheet1.xml"/></Relationships>',
        )
        book.writestr("xl/sharedStrings.xml", f"<sst {SPACE}>{shared}</sst>")
        book.writestr(
            "xl/worksheets/sheet1.xml",
            f"<worksheet {SPACE}><sheetData>{''.join(cells)}</sheetData></worksheet>",
        )


WRITERS = {
    "towns.csv": _write_csv,
    "towns.tsv": lambda path: path.write_text(
        "code\tname\tpeople\n" + "\n".join("\t".join(map(str, row.values())) for row in TOWNS)
    ),
    "towns.json": lambda path: path.write_text(json.dumps(TOWNS)),
    "inner.json": lambda path: path.write_text(json.dumps({"towns": TOWNS, "version": 3})),
    "towns.jsonl": lambda path: path.write_text("\n".join(map(json.dumps, TOWNS))),
    "towns.sqlite": _write_sqlite,
    "towns.parquet": _write_parquet,
    "towns.xlsx": _write_xlsx,
}


@pytest.mark.parametrize("name", WRITERS)
async def test_every_format_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    documents, skipped = await _read(path)
    assert not skipped
    [document] = documents
    assert document.names == (path.as_posix(),)
    assert document.text.split("\n") == [
        "code: HA; name: Hallowmere; people: 1200.",
        "code: VE; name: Vessen; people: 86000.",
    ]
    [table] = read_tables(document.text, document.metadata)
    assert (table.name, table.columns, table.label) == ("", ("code", "name", "people"), "name")
    for row, town in zip(table.rows(), TOWNS, strict=True):
        assert row.cells == {column: str(value) for column, value in town.items()}
        assert document.text[row.start : row.end].endswith(f"people: {town['people']}.")
        spans = {column: document.text[a:b] for column, (a, b) in row.spans.items()}
        assert spans == row.cells


async def test_values_with_any_marks_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    odd = ['say "a; b: c"', '"quoted"', "b: x; a: y", "ends; ", '"; "', "a.", ";", "two\nlines"]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b"], *([one, "2"] for one in odd)])
    documents, skipped = await _read(path)
    assert not skipped
    assert list_rows(documents[0]) == [{"a": " ".join(one.split()), "b": "2"} for one in odd]


async def test_a_damaged_part_of_a_workbook_is_one_skip(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    _write_xlsx(path)
    raw = bytearray(path.read_bytes())
    at = raw.find(b"<sheetData>")
    raw[at : at + 11] = b"<sheetDaTa>"
    path.write_bytes(bytes(raw))
    documents, skipped = await _read(path)
    assert not documents and "is not a readable workbook" in skipped[0].reason


@pytest.mark.parametrize("name", ["a.sqlite", "a.xlsx", "a.parquet"])
async def test_broken_tables_are_one_skip(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    path.write_bytes(b"no such file" * 100)
    documents, skipped = await _read(path)
    assert not documents and len(skipped) == 1 and "readable" in skipped[0].reason


async def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    _write_xlsx(path)
    _, skipped = await _read(path, budget=ReadBudget(file_bytes=100))
    assert "unpacks to more than" in skipped[0].reason


async def test_tables_of_one_file_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"towns": TOWNS, "rivers": [{"name": "Tarn", "km": 40}] * 2}))
    [document], _ = await _read(path)
    towns, rivers = read_tables(document.text, document.metadata)
    assert (towns.name, rivers.name) == ("towns", "rivers")
    assert [row.number for row in rivers.rows()] == [1, 2]
    assert [row.cells["name"] for row in towns.rows()] == ["Hallowmere", "Vessen"]
    first = next(rivers.rows())
    assert document.text[first.start : first.end] == "name: Tarn; km: 40."


async def test_a_table_without_a_header_has_numbered_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Hallowmere,1200\nVessen,86000\n")
    documents, _ = await _read(path)
    assert documents[0].text.split("\n") == [
        "column 1: Hallowmere; column 2: 1200.",
        "column 1: Vessen; column 2: 86000.",
    ]


def test_objects_become_columns_and_empty_cells_go() -> None:
    row = {
        "a": {"b": 1, "c": {"d": None}},
        "e": ["x", "y"],
        "f": "  ",
        "g": float("nan"),
        "h": True,
    }
    assert flatten_row(row) == {"a.b": 1, "e": "x, y", "h": True}


def test_the_column_that_names_rows() -> None:
    rows = [{"id": f"x{n}", "kind": "a", "full name": f"Town {n}"} for n in range(9)]
    assert choose_label(rows) == "full name"
    assert choose_label([{"n": 1}, {"n": 2}]) == ""
    people = (
        {"employee": "Eva Lind", "job title": "Director"},
        {"employee": "Bo Ek", "job title": "Clerk"},
    )
    assert choose_label(people) == "employee"
    films = ({"id": 1, "film title": "Grey Coast"}, {"id": 2, "film title": "Night Ferry"})
    assert choose_label(films) == "film title"
    assert split_column("birthDate") == ["birth", "date"] and split_column("eol-lts") == [
        "eol",
        "lts",
    ]


def test_readers_are_there_for_tables() -> None:
    assert {".xlsx", ".parquet", ".sqlite", ".db"} <= READERS.keys()


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("a.csv", "Energy report of Hall 7\nExported 2025-01-02\n\n"),
        ("a.csv", "Energy report,,\n"),
        ("a.tsv", "Energy report\n\n"),
        ("a.csv", ""),
    ],
)
async def test_lines_above_the_header_are_no_columns(tmp_path: Path, name: str, head: str) -> None:
    path = tmp_path / name
    rows = "Meter,Building,kWh\nE-01,North wing,12345\nE-02,South wing,8901\n"
    path.write_text(head + (rows.replace(",", "\t") if name.endswith("tsv") else rows))
    documents, skipped = await _read(path)
    assert not skipped
    [table] = read_tables(documents[0].text, documents[0].metadata)
    rows = list(table.rows())
    assert [row.cells["Building"] for row in rows] == ["North wing", "South wing"]
    assert [row.number for row in rows] == [head.count("\n") + number for number in (2, 3)]


async def test_a_sheet_whose_rows_have_no_numbers_is_read(tmp_path: Path) -> None:
    whole, bare = tmp_path / "whole.xlsx", tmp_path / "bare.xlsx"
    _write_xlsx(whole)
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(bare, "w") as new:
        for part in old.namelist():
            text = old.read(part).decode()
            if "sheet1" in part:
                text = re.sub(r' r="[A-Z]?\d+"', "", text)
            new.writestr(part, text)
    documents, skipped = await _read(bare)
    assert not skipped
    assert list_rows(documents[0]) == [{k: str(v) for k, v in town.items()} for town in TOWNS]


async def test_json_object_of_objects_is_one_row_per_key(tmp_path: Path) -> None:
    path = tmp_path / "huts.json"
    path.write_text('{"Alto": {"beds": 24}, "Bassa": {"beds": 8}, "Cima": {"beds": 3}}')
    documents, skipped = await _read(path)
    assert list_rows(documents[0])[1] == {"key": "Bassa", "beds": "8"}
    assert len(list_rows(documents[0])) == 3 and not skipped


async def test_json_object_that_is_no_row_is_read_as_settings(tmp_path: Path) -> None:
    path = tmp_path / "app.json"
    path.write_text('{"name": "kestrel", "server": {"port": 8080}, "log": {"level": "info"}}')
    documents, skipped = await _read(path)
    assert not skipped and not list_rows(documents[0])
    assert documents[0].text.split("\n") == [
        "name: kestrel",
        "server.port: 8080",
        "log.level: info",
    ]


async def test_columns_of_one_name_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "huts.csv"
    path.write_text("name,value,value\nAlto,1,2\nBassa,3,4\n")
    documents, _ = await _read(path)
    found = list_rows(documents[0])
    assert found[0] == {"name": "Alto", "value": "1", "value (2)": "2"} and len(found) == 2


async def test_equal_values_in_the_first_line_are_no_header(tmp_path: Path) -> None:
    path = tmp_path / "likes.csv"
    path.write_text("Anna,red,red\nBob,red,blue\n")
    documents, _ = await _read(path)
    assert len(list_rows(documents[0])) == 2 and "column 2" in list_rows(documents[0])[0]


def _write_formatted(path: Path) -> None:
    """Write a workbook with a date, a percentage, amounts, a formula and a hidden sheet."""
    _write_xlsx(path)
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name).decode() for name in book.namelist()}
    formats = ['"yyyy\\-mm\\-dd hh:mm:ss"', "'[$€-407]#,##0.00'", "'#,##0.00&quot; zł&quot;'"]
    codes = "".join(f"<numFmt numFmtId='{170 + n}' formatCode={c}/>" for n, c in enumerate(formats))
    styles = "".join(f'<xf numFmtId="{n}"/>' for n in (0, 170, 9, 171, 172, 20))
    parts["xl/styles.xml"] = (
        f"<styleSheet {SPACE}><numFmts>{codes}</numFmts><cellXfs>{styles}</cellXfs></styleSheet>"
    )
    names = ("when", "share", "price", "fee", "clock", "sum")
    header = "".join(f'<c t="inlineStr"><is><t>{one}</t></is></c>' for one in names)
    numbers = (45356.604166666664, 0.25, 12.5, 3, 0.6041666666)
    row = "".join(f'<c s="{n}"><v>{v}</v></c>' for n, v in enumerate(numbers, start=1))
    parts["xl/worksheets/sheet1.xml"] = (
        f"<worksheet {SPACE}><sheetData><row>{header}</row><row>{row}<c><f>A1+1</f></c></row>"
        "</sheetData></worksheet>"
    )
    parts["xl/worksheets/sheet2.xml"] = parts["xl/worksheets/sheet1.xml"]
    parts["xl/workbook.xml"] = parts["xl/workbook.xml"].replace(
        "</sheets>", '<sheet name="old" state="hidden" sheetId="2" r:id="r2"/></sheets>'
    )
    parts["xl/_rels/workbook.xml.rels"] = parts["xl/_rels/workbook.xml.rels"].replace(
        "</Relationships>",
        '<Relationship Id="r2" Target="worksheets/sheet2.xml"/></Relationships>',
    )
    with zipfile.ZipFile(path, "w") as book:
        for name, text in parts.items():
            book.writestr(name, text)


async def test_cells_of_a_workbook_are_told_as_they_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    _write_formatted(path)
    documents, skipped = await _read(path)
    assert list_rows(documents[0]) == [
        {
            "when": "2024-03-05T14:30:00",
            "share": "25%",
            "price": "€12.50",
            "fee": "3.00 zł",
            "clock": "14:30:00",
        }
    ]
    told = " ".join(map(str, skipped))
    assert "old: is a hidden sheet" in told
    assert "1 cell is empty: formulas without a stored value" in told


async def test_sqlite_search_indexes_are_no_tables_and_booleans_are_yes(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE dog (name TEXT, trained BOOLEAN, paws INTEGER)")
        database.execute("INSERT INTO dog VALUES ('Rex', 1, 1), ('Ulla', 0, 4)")
        database.execute("CREATE VIRTUAL TABLE words USING fts5(name, content='dog')")
        database.execute("CREATE VIRTUAL TABLE memo USING fts5(body)")
        database.execute("INSERT INTO memo VALUES ('Buy hay.')")
    database.close()
    documents, skipped = await _read(path)
    assert not skipped and set(documents[0].text.split("\n")) == {
        *("## dog", "name: Rex; trained: yes; paws: 1.", "name: Ulla; trained: no; paws: 4."),
        *("## memo", "body: Buy hay..", ""),
    }
