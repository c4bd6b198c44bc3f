"""Tables of documents as SQLite tables: what they hold is described to a model, which asks by SQL.

They are read from the documents when they are needed: a spreadsheet, a CSV file, and the tables
within HTML, DOCX and Markdown. A query runs over copies in memory, may only read, and ends by
itself; its rows can be cited by the column `row`.
"""

import asyncio
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from clew.context import Context
from clew.errors import InputError
from clew.text.tables import Row, read_tables, write_row_place
from clew.types import Document, Evidence, Finding, Passage

ROW = "row"
"""The column of every table with the number of the row in its file."""
_MAX_ROWS = 100  # of a result
_MAX_SECONDS = 2.0
_MAX_BYTES = 100_000  # of one value
_MAX_SHOWN_CHARS = 4000  # of a result
_MAX_CITED = 20  # rows
_MAX_DOCUMENTS = 8  # whose tables are described after one search
_SAMPLE = 3  # values of a column in a description
_STEPS = 1_000  # of SQLite's machine between two looks at the clock
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_PIPES = re.compile(r"^[ \t]*\|(.+)\|[ \t]*$", re.MULTILINE)
_RULE = re.compile(r"[ \t:|-]+")
_NAMED_CELL = re.compile(r"([^:|]{1,60}): (.*)", re.DOTALL)
_SLUG = re.compile(r"\W+")
_NO_TABLE = re.compile(r"no such table: (?:main\.)?(\w+)")
_READS = frozenset(
    (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
)


@dataclass(frozen=True)
class StoredTable:
    """A table of a document: the name it has in SQL, its columns, and its rows with their spans."""

    sql_name: str
    name: str
    document: Document
    file: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def describe(self) -> str:
        """Say what can be asked: name, file, columns with types and some values."""
        named = self.columns_in_sql()
        columns = ", ".join(
            f'"{named[column]}" {kind} ({", ".join(map(repr, self._sample(column)))})'
            for column, kind in self.types().items()
        )
        where = f"{self.file}, {self.name}" if self.name else self.file
        return f"table {self.sql_name} ({where}; {len(self.rows)} rows): {ROW} INTEGER, {columns}"

    def _sample(self, column: str) -> list[str]:
        values = dict.fromkeys(row.cells[column] for row in self.rows if column in row.cells)
        return [value[:40] for value in list(values)[:_SAMPLE]]

    def columns_in_sql(self) -> dict[str, str]:
        """Return the name of each column in SQL, where case tells no names apart."""
        taken = {ROW}
        named: dict[str, str] = {}
        for column in self.columns:
            name, number = column, 2
            while name.casefold() in taken:
                name, number = f"{column}_{number}", number + 1
            taken.add(name.casefold())
            named[column] = name
        return named

    def types(self) -> dict[str, str]:
        """Return the type of each column: REAL where all its values are numbers, else TEXT."""
        return {
            column: "REAL"
            if all(_NUMBER.fullmatch(row.cells.get(column, "0").strip()) for row in self.rows)
            else "TEXT"
            for column in self.columns
        }

    def cite(self, row: Row) -> Passage:
        """Return a row as a passage, headed by its place."""
        text = self.document.text[row.start : row.end]
        where = (f"{self.document.id}:{row.start}", self.file, self.document.title, 1.0, text)
        heading = write_row_place(self.name, row.number)
        return Passage(*where, row.start, row.end, heading=heading)

    def cite_all(self) -> Passage:
        """Return the beginning of the table as a passage."""
        start, end = self.rows[0].start, self.rows[-1].end
        text = self.document.text[start : min(end, start + _MAX_SHOWN_CHARS)]
        where = (f"{self.document.id}:{start}", self.file, self.document.title, 1.0, text)
        return Passage(*where, start, start + len(text), heading=self.name)


async def describe_tables(ctx: Context, evidence: Evidence) -> Evidence:
    """Describe the tables of the documents that were found, as findings; empty where none has."""
    names = list(dict.fromkeys(one.doc for one in evidence.chunks))[:_MAX_DOCUMENTS]
    tables = await load_tables(ctx, names)
    return Evidence(findings=tuple(Finding(one.describe(), "sql") for one in tables))


async def query_tables(ctx: Context, query: str) -> Evidence:
    """Run a query; the documents whose tables it names are found by their names.

    InputError says what is wrong with it, and which tables there are.
    """
    if not query.strip():
        raise InputError("nothing was asked")
    known: dict[str, StoredTable] = {}
    while True:
        try:
            columns, rows = await asyncio.to_thread(run_query, query, list(known.values()))
            break
        except sqlite3.Error as error:
            missing = _NO_TABLE.search(str(error))
            found = await _find_table(ctx, missing[1]) if missing else None
            if found is None or found.sql_name in known:
                described = "; ".join(one.describe() for one in known.values())
                raise InputError(
                    f"{error}{f'; there is {described}' if described else ''}"
                ) from error
            known[found.sql_name] = found
    lines = [" | ".join(columns), *(" | ".join(map(_show, row)) for row in rows)]
    text = "\n".join(lines)[:_MAX_SHOWN_CHARS] if rows else "no rows"
    sources = tuple(_cited(columns, rows, list(known.values())))
    return Evidence(findings=(Finding(f"{query}\n{text}", "sql", sources),))


async def load_tables(ctx: Context, names: Sequence[str]) -> list[StoredTable]:
    """Return the tables of the documents added under these names, each read once a generation."""
    memo: dict[str, list[StoredTable]] = ctx.view.memo.setdefault("tables", {})
    new = [name for name in names if name not in memo]
    if new and ctx.sources is not None:
        ids = {name: one.document for name, one in (await ctx.sources(new)).items()}
        documents = await ctx.snapshot.documents(list(set(ids.values())))
        for name in new:
            document = documents.get(ids.get(name, ""))
            memo[name] = [] if document is None else list(find_tables(document, name))
    return [one for name in names for one in memo.get(name, ())]


async def _find_table(ctx: Context, sql_name: str) -> StoredTable | None:
    """Find a table by its name in SQL, which begins with that of its file."""
    if ctx.sources is None:
        return None
    known: list[str] = ctx.view.memo.get("names of sources", [])
    if not known:
        known = ctx.view.memo["names of sources"] = sorted(await ctx.sources(None))
    wanted = sql_name.casefold()
    likely = [name for name in known if wanted.startswith(_slug(name))]
    for table in await load_tables(ctx, likely[:_MAX_DOCUMENTS]):
        if table.sql_name == wanted:
            return table
    return None


def find_tables(document: Document, file: str) -> Iterator[StoredTable]:
    """Find the tables of a document: those it is made of, or those that stand in its text."""
    made_of = read_tables(document.text, document.metadata)
    stem = _slug(file)
    for table in made_of:
        name = f"{stem}_{_slug(table.name)}" if table.name else stem
        yield StoredTable(name, table.name, document, file, table.columns, tuple(table.rows()))
    for number, (columns, rows) in enumerate(_pipe_tables(document.text) if not made_of else (), 1):
        name = f"{stem}_{number}"
        yield StoredTable(name, f"table {number}", document, file, columns, rows)


def _slug(file: str) -> str:
    """Return a name that SQL takes without quotes, from that of a file without its folder."""
    stem = file.replace("\\", "/").rpartition("/")[2].partition(".")[0]
    bare = _SLUG.sub("_", stem.casefold()).strip("_")
    return bare if bare and not bare[0].isdigit() else f"t_{bare}"


def _pipe_tables(text: str) -> Iterator[tuple[tuple[str, ...], tuple[Row, ...]]]:
    """Yield tables whose rows are lines between pipes: with named cells, or below a header."""
    run: list[re.Match[str]] = []
    for line in [*_PIPES.finditer(text), None]:
        if run and (line is None or text[run[-1].end() : line.start()].strip("\r\n")):
            if len(run) > 1:
                yield from _read_run(run)
            run = []
        if line is not None:
            run.append(line)


def _read_run(run: Sequence[re.Match[str]]) -> Iterator[tuple[tuple[str, ...], tuple[Row, ...]]]:
    lines = [[cell.strip() for cell in line[1].split("|")] for line in run]
    if len(lines) > 2 and _RULE.fullmatch(run[1][0]):
        header, cells, run = lines[0], lines[2:], run[2:]
        found = [dict(zip(header, row, strict=False)) for row in cells]
    else:
        named = [[_NAMED_CELL.fullmatch(cell) for cell in row] for row in lines]
        if not all(all(row) for row in named):
            return
        found = [{cell[1]: cell[2] for cell in row if cell} for row in named]
    columns = tuple(dict.fromkeys(column for row in found for column in row if column))
    rows = [
        Row(number, line.start(), line.end(), {k: v for k, v in row.items() if k and v}, {})
        for number, (line, row) in enumerate(zip(run, found, strict=True), start=1)
    ]
    yield columns, tuple(rows)


def run_query(query: str, tables: Sequence[StoredTable]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run a query over copies of tables; sqlite3.Error where it fails, writes or takes too long."""
    base = sqlite3.connect(":memory:")
    try:
        for table in tables:
            _copy(base, table)
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_BYTES)
        base.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        base.set_authorizer(_allow)
        ends = monotonic() + _MAX_SECONDS
        base.set_progress_handler(lambda: monotonic() > ends, _STEPS)
        done = base.execute(query)
        return [one[0] for one in done.description or ()], done.fetchmany(_MAX_ROWS)
    finally:
        base.close()


def _allow(action: int, first: str | None, second: str | None, *_: object) -> int:
    harmless = action in _READS and second not in ("load_extension", "fts3_tokenizer")
    return sqlite3.SQLITE_OK if harmless else sqlite3.SQLITE_DENY


def _copy(base: sqlite3.Connection, table: StoredTable) -> None:
    types, names = table.types(), table.columns_in_sql()
    named = ", ".join(f"{_quote(names[column])} {kind}" for column, kind in types.items())
    base.execute(f"CREATE TABLE {_quote(table.sql_name)} ({ROW} INTEGER, {named})")
    marks = ", ".join("?" * (len(types) + 1))
    values = ((row.number, *_to_values(row.cells, types)) for row in table.rows)
    base.executemany(f"INSERT INTO {_quote(table.sql_name)} VALUES ({marks})", values)  # noqa: S608


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _to_values(cells: Mapping[str, str], types: Mapping[str, str]) -> Iterator[str | float | None]:
    for name, kind in types.items():
        value = cells.get(name)
        yield float(value.replace(",", "")) if value is not None and kind == "REAL" else value


def _show(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 10**15:
        return str(int(value))
    return "" if value is None else " ".join(str(value).split())


def _cited(
    columns: Sequence[str], rows: Sequence[tuple[Any, ...]], tables: Sequence[StoredTable]
) -> Iterator[Passage]:
    """Yield the rows that a result names in a column `row`, or in a list of them.

    Of several tables it is the one that has another value of the result in that row. Where no row
    is named, the tables that were asked are cited.
    """
    at = next((n for n, c in enumerate(columns) if ROW in _SLUG.split(c.casefold())), None)
    count = 0
    for values in rows:
        if at is None:
            break
        numbers = {int(one) for one in re.findall(r"\b\d+\b", str(values[at]))}
        shown = {_show(value) for value in values}
        for table in tables:
            for row in table.rows:
                named = row.number in numbers and count < _MAX_CITED
                if named and (len(tables) == 1 or shown & set(row.cells.values())):
                    count += 1
                    yield table.cite(row)
    if not count:
        yield from (table.cite_all() for table in tables if table.rows)
