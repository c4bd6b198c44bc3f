"""The tool `sql`: tables of documents, asked by a model, cited to their rows, and read only."""

import asyncio
from typing import Any

import pytest

from clew.agents.tools import TOOLS
from clew.engine import KnowledgeBase
from clew.types import Evidence
from conftest import document, stream

OFFICES = """# Offices

| City | People | Opened |
|---|---|---|
| Ribe | 1,200 | 1994 |
| Vessen | 7 | 2003 |
| Tresk | 40 | 1988 |
"""


@pytest.fixture
async def office(base: KnowledgeBase) -> KnowledgeBase:
    """A knowledge base with a table in a document, and a text without one."""
    await base.take(
        stream([document("docs/offices.md", OFFICES, "Offices"), document("n", "No table.", "N")])
    )
    return base


async def ask(base: KnowledgeBase, query: str) -> Evidence:
    """Call the tool."""
    return await base.use_tool("sql", {"query": query})


async def test_rows_are_selected_and_cited(office: KnowledgeBase) -> None:
    found = await ask(
        office, "SELECT row, City, People FROM offices_1 WHERE People > 10 ORDER BY 3"
    )
    [told] = found.findings
    assert told.text.splitlines()[1:] == [
        "row | City | People",
        "3 | Tresk | 40",
        "1 | Ribe | 1200",
    ]
    assert [one.text for one in told.sources] == [
        "| Tresk | 40 | 1988 |",
        "| Ribe | 1,200 | 1994 |",
    ]
    for one in told.sources:
        assert one.doc == "docs/offices.md" and OFFICES[one.start : one.end] == one.text


async def test_numbers_are_summed_and_the_rows_named(office: KnowledgeBase) -> None:
    found = await ask(office, "SELECT sum(People), group_concat(row) FROM offices_1")
    assert found.findings[0].text.endswith("1247 | 1,2,3") and len(found.findings[0].sources) == 3


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("DROP TABLE offices_1", "not authorized"),
        ("DELETE FROM offices_1", "not authorized"),
        ("INSERT INTO offices_1 VALUES (1, 'a', 2, 3)", "not authorized"),
        ("ATTACH '/etc/passwd' AS p", "not authorized"),
        ("PRAGMA table_info(offices_1)", "not authorized"),
        ("SELECT load_extension('x')", "no such function|not authorized"),
        ("SELECT readfile('/etc/passwd')", "no such function"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
         "interrupted"),
        ("SELECT zeroblob(900000000)", "too big"),
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("SELECT Town FROM offices_1", 'no such column: Town.*table offices_1 .*"City" TEXT'),
        ("how many people?", "syntax error"),
        ("", "nothing was asked"),
    ],
)  # fmt: skip
async def test_what_cannot_be_asked_is_said_in_a_sentence(
    office: KnowledgeBase, query: str, said: str
) -> None:
    [told] = (await ask(office, query)).findings
    import re

    assert re.search(said, told.text, re.DOTALL), told.text


async def test_at_most_a_hundred_rows_come_back(base: KnowledgeBase) -> None:
    rows = "\n".join(f"| {n} | x |" for n in range(500))
    await base.take(stream([document("many.md", f"| n | v |\n|---|---|\n{rows}", "Many")]))
    found = await ask(base, "SELECT n FROM many_1")
    assert len(found.findings[0].text.splitlines()) == 102


async def test_columns_that_differ_in_case_or_are_called_row(base: KnowledgeBase) -> None:
    text = "| row | City | city |\n|---|---|---|\n| 9 | Ribe | Vessen |"
    await base.take(stream([document("odd.md", text, "Odd")]))
    found = await ask(base, 'SELECT row, "row_2", "city_2" FROM odd_1')
    assert found.findings[0].text.splitlines()[1:] == ["row | row_2 | city_2", "1 | 9 | Vessen"]


def test_it_is_one_of_the_tools() -> None:
    assert "sql" in TOOLS
    assert asyncio.iscoroutinefunction(TOOLS["sql"])


async def test_nothing_is_left_of_a_query(office: KnowledgeBase) -> None:
    """Each query has copies of its own: what one did, no other sees."""
    before: Any = (await ask(office, "SELECT count(*) FROM offices_1")).findings[0].text
    await ask(office, "CREATE TABLE t (x)")
    assert (await ask(office, "SELECT count(*) FROM offices_1")).findings[0].text == before
