"""Proposes rows to which no row of another table refers: birds that never went on a visit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from clew.agents.tables.load import Partner, Table
from clew.agents.tables.reading import Filter, Query, Unlinked

_MAX_SETS = 4  # of conditions on the rows, and on those that refer


@dataclass(frozen=True)
class Reference:
    """A joined table, and the table that its rows refer to."""

    table: Table = field(repr=False)
    partner: Partner = field(repr=False)

    @property
    def stem(self) -> str:
        """What the rows that refer are called."""
        return self.table.stem


def list_references(tables: Sequence[Table]) -> list[Reference]:
    """Return which tables refer to which."""
    return [Reference(table, one) for table in tables for one in table.partners]


def list_references_to(table: Table, references: Sequence[Reference]) -> list[Reference]:
    """Return what refers to a table, once for each other table."""
    own = [] if table.partners else [one for one in references if one.partner.table is table]
    return list({one.stem: one for one in reversed(own)}.values())[::-1]


def make_unlinked(
    reference: Reference,
    conditions: Mapping[tuple[Filter, ...], float],
    theirs: Mapping[tuple[Filter, ...], float],
) -> Iterator[tuple[Query, float]]:
    """Yield the rows that satisfy conditions and to which none refers that satisfies others.

    With each comes the chance of both.
    """
    partner = reference.partner
    for some in list(theirs)[:_MAX_SETS]:
        places = {one.at for one in some} - {-1}
        unlinked = Unlinked(reference.table, some, partner.rows)
        for own in list(conditions)[:_MAX_SETS]:
            if places.isdisjoint(one.at for one in own):
                query = Query(partner.table, "value", own, unlinked=unlinked)
                yield query, conditions[own] * theirs[some]


def keep_own(reference: Reference, filters: Mapping[Filter, float]) -> dict[Filter, float]:
    """Return the conditions that are of the rows that refer, not of what they refer to."""
    brought = reference.partner.columns | {reference.partner.link}
    return {one: filters[one] for one in filters if brought.isdisjoint(one.columns)}
