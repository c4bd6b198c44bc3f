"""Right and wrong queries beside questions over several linked tables.

Wrong are, beside what is wrong over one table: queries over the other tables of the set, single and
joined, rows that none refers to where some do, and the other way round.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from bench.query_scorer.asked import is_held, list_own_parts
from bench.query_scorer.joined import TableSet, read_asks
from clew.agents.tables.asked import Asked
from clew.agents.tables.load import Table
from clew.agents.tables.propose import (
    Part,
    list_filters,
    list_parts,
    make_absent,
    say_condition,
    say_part,
    weigh_conditions,
)
from clew.agents.tables.propose_unlinked import (
    keep_own,
    list_references_to,
    make_unlinked,
)
from clew.agents.tables.reading import Filter, Query, Unlinked
from clew.agents.tables.run import TableResult
from clew.agents.tables.wording import say_query

if TYPE_CHECKING:
    from bench.query_scorer.pairs import Item, Writer

_ABSENT, _TURNED = 3, 4  # queries for rows without others; right ones with that turned
_CHANCE = 0.5  # that is given to conditions of rows that refer


@dataclass
class JoinedWriter:
    """Makes the items of questions over sets of tables."""

    writer: "Writer"

    def write(self, lines: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the questions over sets of tables with their items."""
        for line in lines:
            tables = TableSet.read(line)
            self.writer.tables += tables.tables
            asks = list(read_asks(tables, line["asks"]))
            self.writer.counts["without an answer"] += len(line["asks"]) - len(asks)
            known = [query for _, query, _ in asks if query is not None]
            held = is_held(line["set"])
            for ask, gold, result in asks:
                for question in ask["q"]:
                    self.writer.counts["questions over sets"] += 1
                    items = self._list_items(Asked(question), tables, gold, result, known)
                    yield {"q": question, "held": held, "none": gold is None, "items": items}

    def _list_items(
        self,
        asked: Asked,
        tables: TableSet,
        gold: Query | None,
        result: TableResult | None,
        known: Sequence[Query],
    ) -> list["Item"]:
        listed = {id(table): list_filters(asked, table) for table in tables.tables}
        items: list[Item] = []
        wrong: list[Query] = []
        if gold is not None:
            own = listed[id(gold.table)]
            gold = replace(gold, filters=_adopt(gold.filters, own))
            if gold.unlinked is not None:
                theirs = _adopt(gold.unlinked.filters, listed[id(gold.unlinked.table)])
                gold = replace(gold, unlinked=replace(gold.unlinked, filters=theirs))
            items += self._list_parts(tables, gold, listed)
            items.append((say_query(gold, result), 1, "full"))
            others = [one for one in own if one not in gold.filters]
            wrong += self.writer.propose(asked, gold.table, gold, others)
            turned = list(_turn(tables, gold))
            self.writer.rng.shuffle(turned)
            wrong += turned[:_TURNED]
        for table in tables.tables:
            if gold is None or table is not gold.table:
                wrong += self.writer.propose_elsewhere(asked, table)
        wrong += self._propose_absent(asked, tables, listed)
        wrong += self.writer.borrow(known, [])
        if len(self.writer.tables) > len(tables.tables) and self.writer.rng.random() < _CHANCE:
            before = self.writer.tables[-40 : -len(tables.tables)]
            wrong += self.writer.propose_elsewhere(asked, self.writer.rng.choice(before))
        return [*items, *self.writer.keep_wrong(wrong, gold, result)]

    def _list_parts(
        self, tables: TableSet, gold: Query, listed: dict[int, list[Filter]]
    ) -> Iterator["Item"]:
        """Yield the parts and conditions of all tables that are right or wrong."""
        right = {say_part(gold.table, one) for one in list_own_parts(gold)}
        chosen = [(gold.table, one) for one in gold.filters]
        if gold.unlinked is not None:
            chosen += [(gold.unlinked.table, one) for one in gold.unlinked.filters]
        told = {say_condition(table, one) for table, one in chosen}
        values = {(one.how, one.value) for _, one in chosen}
        parts: dict[str, None] = dict.fromkeys(sorted(right))
        conditions: dict[str, None] = dict.fromkeys(sorted(told))
        for table in tables.tables:
            is_own = table.stem == gold.table.stem
            for part in list_parts(table, list_references_to(table, tables.references)):
                if is_own or not _is_like(table, part, gold):
                    parts.setdefault(say_part(table, part))
            for one in listed[id(table)]:
                if is_own or (one.how, one.value) not in values:
                    conditions.setdefault(say_condition(table, one))
        yield from ((text, int(text in right), "part") for text in parts)
        yield from ((text, int(text in told), "cond") for text in conditions)

    def _propose_absent(
        self, asked: Asked, tables: TableSet, listed: dict[int, list[Filter]]
    ) -> list[Query]:
        """Return some queries for rows to which none refers."""
        rng = self.writer.rng
        found: list[Query] = []
        for reference in tables.references:
            parent = reference.partner.table
            own = dict.fromkeys(_sample(rng, listed[id(parent)]), _CHANCE)
            theirs = dict.fromkeys(_sample(rng, listed[id(reference.table)]), _CHANCE)
            sets = weigh_conditions(parent, own)
            others = weigh_conditions(reference.table, keep_own(reference, theirs))
            parts = dict.fromkeys(_sample(rng, list_parts(parent)), _CHANCE)
            for base, _ in make_unlinked(reference, sets, others):
                found += make_absent(parent, parts, base)
        return rng.sample(found, min(_ABSENT, len(found)))


def _sample(rng: Random, some: Sequence[Any]) -> list[Any]:
    return rng.sample(list(some), min(3, len(some)))


def _adopt(filters: Sequence[Filter], listed: Sequence[Filter]) -> tuple[Filter, ...]:
    """Return conditions with periods said as the question says them."""
    said = {one: one for one in listed if one.how == "within"}
    return tuple(said.get(one, one) for one in filters)


def _is_like(table: Table, part: Part, gold: Query) -> bool:
    """Whether a part of another table is of a column that is called as one of the right query."""
    if part.column not in table.columns:
        return False
    own = [gold.table.columns[name].words for name in gold.columns - {""}]
    words = table.columns[part.column].words
    return any(one[-len(words) :] == words or words[-len(one) :] == one for one in own)


def _turn(tables: TableSet, gold: Query) -> Iterator[Query]:
    """Yield queries for rows with others in place of those without, and the other way round."""
    unlinked = gold.unlinked
    if unlinked is not None:
        yield replace(gold, unlinked=None)
        yield replace(gold, filters=())
        yield replace(gold, unlinked=replace(unlinked, filters=()))
        partner = next(one for one in unlinked.table.partners if one.table is gold.table)
        told = partner.link if partner.repeats_link(unlinked.table) else partner.label
        linked = Query(unlinked.table, "value", unlinked.filters, (told or partner.link,))
        yield linked
        yield replace(linked, wants="distinct")
        yield replace(linked, filters=tuple(_deny(one) for one in unlinked.filters))
        return
    for reference in tables.references:
        parent = reference.partner.table
        if reference.stem == gold.table.stem and parent.label:
            theirs = tuple(keep_own(reference, dict.fromkeys(gold.filters, 1.0)))
            absent = Unlinked(reference.table, theirs, reference.partner.rows)
            base = Query(parent, "value", (), (parent.label,), unlinked=absent)
            yield from (base, replace(base, wants="count"))
        elif parent is gold.table:
            absent = Unlinked(reference.table, (), reference.partner.rows)
            yield replace(gold, unlinked=absent)


def _deny(one: Filter) -> Filter:
    return replace(one, negated=not one.negated)
