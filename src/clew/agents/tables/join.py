"""Joins tables by columns that hold the keys of another one, so that a question may use both."""

from collections.abc import Sequence
from dataclasses import replace

from clew.agents.tables.load import Column, Partner, Table, find_links
from clew.agents.tables.words import is_same_word

_MAX_ROWS = 200_000  # of all tables together, beyond which links are not looked for


def join_tables(tables: Sequence[Table]) -> list[Table]:
    """Return every table that refers to others, with the columns of these beside its own."""
    if len(tables) < 2 or sum(map(len, tables)) > _MAX_ROWS:
        return []
    found = [_join(table, tables) for table in tables]
    return [table for table in found if table.partners]


def _join(table: Table, tables: Sequence[Table]) -> Table:
    columns = dict(table.columns)
    partners: list[Partner] = []
    for link in find_links(table, tables):
        own = table.columns[link.column]
        if not _is_named_alike(own, link.other, link.key):
            continue  # values that agree by chance: years and small numbers do
        keys = link.other.columns[link.key].rows_by_value
        rows = [keys[fold][0] if fold is not None and fold in keys else None for fold in own.folded]
        brought = {
            name: Column(name, [None if row is None else column.cells[row] for row in rows])
            for name, column in link.other.columns.items()
            if name not in columns
        }
        columns |= brought
        partners.append(Partner(link.other, rows, frozenset(brought)))
    return replace(table, columns=columns, partners=tuple(partners))


def _is_named_alike(column: Column, other: Table, key: str) -> bool:
    """Whether a column's name has a word of the other table's name, or of its key's."""
    known = {*other.words, *other.columns[key].words}
    return any(is_same_word(word, own) for word in column.words for own in known)
