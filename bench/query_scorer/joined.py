"""Questions over several linked tables of our own, each with the query that it means.

`joined.jsonl.gz` holds one set of tables a line with its questions; README.md says what their
fields mean. A column of a table that another one refers to is written with that table's name,
`birds.name`, and is looked for among those that joining brings, as the product joins tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.query_scorer.asked import FOLDER, make_query, make_table
from clew.agents.tables.load import Partner, Table, join_tables
from clew.agents.tables.propose_unlinked import Reference, list_references
from clew.agents.tables.reading import Query, Unlinked
from clew.agents.tables.run import TableResult, find_answer
from clew.ingest.readers.tables import choose_label

JOINED = FOLDER / "joined.jsonl.gz"
_COLUMNS = ("of", "tell", "group", "key")


class UnreadableError(ValueError):
    """What a question asks cannot be said of the tables as the product joins them."""


@dataclass(frozen=True)
class TableSet:
    """Linked tables, and these joined."""

    single: Mapping[str, Table]
    joined: Mapping[str, Table]

    @classmethod
    def read(cls, line: Mapping[str, Any]) -> "TableSet":
        """Return the tables of a line as the product loads and joins them."""
        single = {one["table"]: _load(one) for one in line["tables"]}
        joined = join_tables(list(single.values()))
        return cls(single, {one.stem: one for one in joined})

    @property
    def tables(self) -> list[Table]:
        """All tables, single ones first."""
        return [*self.single.values(), *self.joined.values()]

    @property
    def references(self) -> list[Reference]:
        """Which rows of a table refer to which of another."""
        return list_references(self.tables)

    def make_query(self, ask: Mapping[str, Any]) -> Query:
        """Return the query that a question means."""
        table = self.single[ask["from"]]
        if "without" in ask:
            return self._make_unlinked(table, ask)
        names = {one for one in _list_columns(ask) if one not in table.columns}
        joined = self._find_joined(ask["from"]) if names else table
        called = {name: find_brought(joined, name) for name in names}
        if not set(called.values()) <= table.columns.keys():
            table = joined  # else what refers is called as what it refers to
        return make_query(table, _rename(ask, called))

    def _find_joined(self, name: str) -> Table:
        if name not in self.joined:
            raise UnreadableError(f"{name} is not joined")
        return self.joined[name]

    def _make_unlinked(self, parent: Table, ask: Mapping[str, Any]) -> Query:
        """Return the query for rows to which no row of another table refers."""
        child = self._find_joined(ask["without"]["table"])
        partner = next((one for one in child.partners if one.table is parent), None)
        if partner is None:
            raise UnreadableError(f"{child.stem} does not refer to {parent.stem}")
        own = {key: value for key, value in ask.items() if key != "without"}
        query = make_query(parent, own)
        where = ask["without"].get("where", [])
        names = {one for one in _list_columns({"where": where}) if one not in child.columns}
        renamed = _rename({"where": where}, {name: find_brought(child, name) for name in names})
        theirs = make_query(child, {"get": "count"} | renamed)
        return replace(query, unlinked=Unlinked(child, theirs.filters, partner.rows))


def _load(line: Mapping[str, Any]) -> Table:
    table = make_table(dict(line))
    names = list(table.columns)
    rows = [
        {name: table.columns[name].cells[at] for name in names} for at in range(len(table.rows))
    ]
    filled = [{name: cell for name, cell in row.items() if cell is not None} for row in rows]
    return replace(table, label=choose_label(filled, names))


def find_brought(table: Table, name: str) -> str:
    """Return how a column of a linked table, `birds.name`, is called in a joined one."""
    other, _, column = name.partition(".")
    for partner in table.partners:
        if other in (partner.table.stem, partner.link) and column in partner.table.columns:
            called = _find_called(partner, column)
            is_link = called == partner.label and partner.repeats_link(table)
            return partner.link if is_link else called
    raise UnreadableError(f"{table.stem} has no {name}")


def _find_called(partner: Partner, column: str) -> str:
    called = (column, f"{partner.table.stem}.{column}", f"{partner.link}.{column}")
    return next((one for one in called if one in partner.columns), partner.link)


def _list_columns(ask: Mapping[str, Any]) -> Iterator[str]:
    """Yield the columns that a question uses."""
    for field in _COLUMNS:
        value = ask.get(field, [])
        yield from value if isinstance(value, list) else [value]
    for name, sign, *rest in ask.get("where", []):
        yield name
        yield from rest if sign.endswith(" col") else ()


def _rename(ask: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a question with columns called as in the joined table."""
    found = dict(ask)
    for field in _COLUMNS:
        if isinstance(value := ask.get(field), list):
            found[field] = [names.get(one, one) for one in value]
        elif value is not None:
            found[field] = names.get(value, value)
    found["where"] = [
        [names.get(name, name), sign, *(_rename_other(sign, one, names) for one in rest)]
        for name, sign, *rest in ask.get("where", [])
    ]
    return found


def _rename_other(sign: str, value: Any, names: Mapping[str, str]) -> Any:
    return names.get(value, value) if sign.endswith(" col") else value


def read_asks(
    tables: TableSet, asks: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], Query | None, TableResult | None]]:
    """Yield each question with what it means and what the rows answer; None if they do not say.

    What cannot be read, or has no answer, is left out.
    """
    for ask in asks:
        if ask["get"] == "none":
            yield ask, None, None
            continue
        try:
            query = tables.make_query(ask)
            result = find_answer(query)
        except (UnreadableError, KeyError, ValueError, TypeError):
            continue
        if result is not None and not _has_untimed(query):
            yield ask, query, result


def _has_untimed(query: Query) -> bool:
    """Whether a time is said of a column that is not read as one: 04/06/2024 may be two days."""
    other = query.unlinked
    used = [(query.table, one) for one in query.filters]
    used += [(other.table, one) for one in other.filters] if other else []
    times = [(table.columns[one.column], one) for table, one in used]
    return any(
        one.how in ("year", "month", "within") and not (column.type == "date" or column.has_years)
        for column, one in times
    )
