"""Writes what the query scorer is trained on: questions beside right and wrong queries.

    python -m bench.query_scorer.pairs --out PAIRS.gz [--prose QUESTIONS.jsonl]

Wrong are proposals of the product itself, the queries of other questions over the same table, and
queries of other tables; for graphs see `graph_pairs`. `--prose` adds questions that no
table answers.
"""

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.machine import print_result
from bench.query_scorer.asked import (
    DIVIDED_GRAPHS,
    GRAPHS,
    TABLES,
    is_held,
    list_own_parts,
    make_query,
    make_table,
    read_lines,
)
from bench.query_scorer.graph_pairs import GraphWriter
from bench.query_scorer.joined import JOINED
from bench.query_scorer.joined_pairs import JoinedWriter
from clew.agents.rules.table_words import is_same_word
from clew.agents.tables.asked import Asked
from clew.agents.tables.column_pairs import swap_columns
from clew.agents.tables.load import Column, Table
from clew.agents.tables.propose import (
    Part,
    list_filters,
    list_parts,
    make_queries,
    say_condition,
    say_part,
    weigh_conditions,
)
from clew.agents.tables.reading import COLUMN_SIGNS, Filter, Query
from clew.agents.tables.run import TableResult, find_rows, run_query
from clew.agents.tables.wording import say_query

Item = tuple[str, int, str]
"""What is compared with a question, whether it is right, and part, cond, full or path."""
_PROPOSED, _OTHERS, _ELSEWHERE = 14, 5, 4  # wrong queries of each kind
_CHANGED = 14  # right queries with one thing changed
_TURNED: dict[str, tuple[str, ...]] = {
    ">": ("<", ">="),
    "<": (">", "<="),
    ">=": ("<=", ">"),
    "<=": (">=", "<"),
}
_TURNED |= {one: tuple(o for o in COLUMN_SIGNS if o != one) for one in COLUMN_SIGNS}
_LIKELY, _POSSIBLE = 0.8, 0.4  # chances that are given to parts


@dataclass
class Writer:
    """Makes the items of questions; counts what was reached."""

    rng: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    tables: list[Table] = field(default_factory=list)

    def write_tables(self, lines: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the questions over tables with their items."""
        for line in lines:
            table = make_table(line)
            self.tables.append(table)
            asks = [
                (ask, None if ask["get"] == "none" else make_query(table, ask))
                for ask in line["asks"]
            ]
            known = [query for _, query in asks if query is not None]
            for ask, gold in asks:
                result = run_query(gold) if gold is not None else None
                if gold is not None and result is None:
                    self.counts["without an answer"] += 1
                    continue
                for question in ask["q"]:
                    items = self._list_items(Asked(question), table, gold, result, known)
                    held = is_held(line["table"])
                    yield {"q": question, "held": held, "none": gold is None, "items": items}

    def _list_items(
        self,
        asked: Asked,
        table: Table,
        gold: Query | None,
        result: TableResult | None,
        known: Sequence[Query],
    ) -> list[Item]:
        parts, filters = list_parts(table), list_filters(asked, table)
        own = list_own_parts(gold) if gold is not None else set()
        said = {one for one in filters if gold is not None and _is_among(table, one, gold.filters)}
        items: list[Item] = []
        if gold is not None and result is not None:
            self._count(table, gold, parts, filters)
            every = dict.fromkeys([*parts, *sorted(own, key=str)])
            items += [(say_part(table, one), int(one in own), "part") for one in every]
            conditions = dict.fromkeys([*filters, *gold.filters])
            items += [
                (say_condition(table, one), int(one in said or one in gold.filters), "cond")
                for one in conditions
            ]
            items.append((say_query(gold, result), 1, "full"))
        wrong = self.propose(asked, table, gold, [one for one in filters if one not in said])
        wrong += self.borrow(known, filters)
        if len(self.tables) > 1 and self.rng.random() < 0.6:
            wrong += self.propose_elsewhere(asked, self.rng.choice(self.tables[-40:-1]))
        return [*items, *self.keep_wrong(wrong, gold, result)]

    def _count(
        self, table: Table, gold: Query, parts: Sequence[Part], filters: Sequence[Filter]
    ) -> None:
        reached = [any(_is_among(table, f, [one]) for f in filters) for one in gold.filters]
        self.counts["questions"] += 1
        self.counts["conditions"] += len(reached)
        self.counts["conditions proposed"] += sum(reached)
        self.counts["queries proposed"] += all(reached) and list_own_parts(gold) <= set(parts)

    def propose(
        self, asked: Asked, table: Table, gold: Query | None, wrong: list[Filter]
    ) -> list[Query]:
        """Return queries of the right parts and of wrong ones that are near."""
        own = list_own_parts(gold) if gold is not None else set()
        parts = [one for one in list_parts(table) if one not in own]
        self.rng.shuffle(parts)
        near = [p for p in parts if any(p.column == g.column or p.kind == g.kind for g in own)]
        named = [p for p in parts if p.column and _is_said(asked, table.columns[p.column])]
        chances = dict.fromkeys(own, _LIKELY)
        chances |= dict.fromkeys([*near[:4], *named[:5], *parts[:3]], _POSSIBLE)
        self.rng.shuffle(wrong)
        placed = [one for one in wrong if one.at >= 0]
        some = [*placed[:3], *wrong[:2]]
        conditions = dict.fromkeys(some, _POSSIBLE)
        if gold is not None:
            conditions |= dict.fromkeys(gold.filters, _LIKELY)
        found = list(make_queries(asked, table, chances, weigh_conditions(table, conditions)))
        found.sort(key=lambda one: -self._measure_nearness(one, gold))
        near_misses = list(self._change(gold, wrong)) if gold is not None else []
        self.rng.shuffle(near_misses)
        return [*near_misses[:_CHANGED], *found[:_PROPOSED]]

    def _change(self, gold: Query, wrong: Sequence[Filter]) -> Iterator[Query]:
        """Yield the right query with one thing changed: a condition, a column, a direction."""
        table = gold.table
        compared = gold.named if gold.wants in ("check", "difference", "ratio") else []
        if gold.wants == "check" and gold.best:
            compared += gold.filters[-1:]
        for at, one in enumerate(gold.filters):
            if one in compared:
                continue
            rest = (*gold.filters[:at], *gold.filters[at + 1 :])
            denies = one.how not in ("over column", "under column")
            others = [replace(one, negated=not one.negated)] if denies else []
            turned = [replace(one, how=how) for how in _TURNED.get(one.how, ())]
            others += turned
            if one.how in COLUMN_SIGNS:
                others += map(swap_columns, turned)
                others += [o for o in wrong if o.how in COLUMN_SIGNS and o.columns & one.columns][
                    :3
                ]
            others += [
                replace(other, at=one.at)
                for other in wrong
                if other.value == one.value
                and other.how == one.how
                and other.negated == one.negated
            ]
            yield replace(gold, filters=rest)
            yield from (replace(gold, filters=(*rest, other)) for other in others)
        if gold.best:
            yield replace(gold, best="min" if gold.best == "max" else "max")
        yield from self._change_compared(gold)
        if gold.limit > 1 or gold.rank > 1:
            yield replace(gold, limit=1, rank=1)
        columns = list(table.columns.values())
        if gold.measure:
            own = table.columns[gold.measure]
            alike = [c.name for c in columns if c.type == own.type and c.name != own.name]
            yield from (replace(gold, measure=name) for name in alike)
        if len(gold.targets) == 1 and not gold.group:
            taken = {*gold.targets, *(one.column for one in gold.filters)}
            alike = [column.name for column in columns if column.name not in taken]
            yield from (replace(gold, targets=(name,)) for name in alike)

    def _change_compared(self, gold: Query) -> Iterator[Query]:
        """Yield what compares two by name the other way round, by something else, or tells more."""
        named, rest = gold.named, [one for one in gold.filters if one not in gold.named]
        if gold.bound[0]:
            turned = _TURNED[gold.bound[0]][0]
            yield replace(gold, bound=(turned, gold.bound[1]))
            yield replace(gold, wants="count", bound=("", ""), measure="", aggregate="")
            yield replace(gold, measure="", aggregate="")
        if len(named) < 2 or gold.wants not in ("check", "difference", "ratio"):
            return
        swapped = [replace(one, at=other.at) for one, other in zip(named, named[::-1], strict=True)]
        yield replace(gold, filters=(*rest, *swapped))
        yield replace(gold, measure="", aggregate="")
        best = gold.best or "max"
        for wants in ("check", "difference", "ratio"):
            if wants != gold.wants:
                yield replace(gold, wants=wants, best="" if wants == "ratio" else best)
        how = gold.aggregate or "sum" * bool(gold.measure)
        yield replace(gold, wants="group", best=best, aggregate=how)
        alone = replace(gold, wants="aggregate", aggregate="sum", group="", best="")
        for one in named if gold.measure else ():
            yield replace(alone, filters=(*rest, one))

    def _measure_nearness(self, query: Query, gold: Query | None) -> float:
        """Return how close a query is to the right one, or how plain; partly by chance."""
        if gold is None:
            plain = not any(one.negated for one in query.filters)
            return (
                plain + 0.5 * (query.wants in ("value", "count", "aggregate")) + self.rng.random()
            )
        same = (query.wants == gold.wants) + (set(query.filters) == set(gold.filters))
        same += (query.targets == gold.targets) + (query.measure == gold.measure)
        return same + self.rng.random()

    def borrow(self, known: Sequence[Query], filters: Sequence[Filter]) -> list[Query]:
        """Return queries of other questions over the table, also with what this one names."""
        some = self.rng.sample(list(known), min(_OTHERS, len(known)))
        named = tuple(f for f in filters if f.at >= 0 and f.how == "=" and not f.negated)[:1]
        moved = [replace(one, filters=named) for one in some if named and one.wants != "check"]
        return [*some, *moved]

    def propose_elsewhere(self, asked: Asked, table: Table) -> list[Query]:
        """Return queries of another table that a question may seem to ask for."""
        parts, filters = list_parts(table), list_filters(asked, table)
        self.rng.shuffle(parts)
        self.rng.shuffle(filters)
        named = [p for p in parts if p.column and _is_said(asked, table.columns[p.column])]
        placed = [one for one in filters if one.at >= 0]
        chances = dict.fromkeys([*named[:4], *parts[:4]], _LIKELY)
        conditions = dict.fromkeys([*placed[:2], *filters[:1]], _POSSIBLE)
        found = list(make_queries(asked, table, chances, weigh_conditions(table, conditions)))
        return self.rng.sample(found, min(_ELSEWHERE, len(found)))

    def keep_wrong(
        self, queries: Iterable[Query], gold: Query | None, result: TableResult | None
    ) -> list[Item]:
        """Return the queries that are not the right one in other words."""
        found: dict[str, None] = {}
        right = say_query(gold, result) if gold is not None else ""
        for query in queries:
            own = run_query(query)
            if own is None:
                continue
            is_same = result is not None and own.values == result.values and own.rows == result.rows
            said = say_query(query, own)
            if not is_same and said != right:
                found.setdefault(said)
        return [(said, 0, "full") for said in found]

    def write_prose(self, questions: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield questions that none of the tables answers."""
        for question in questions:
            asked = Asked(question)
            queries = [
                query
                for table in self.rng.sample(self.tables, 3)
                for query in self.propose_elsewhere(asked, table)
            ]
            items = self.keep_wrong(queries, None, None)
            if items:
                self.counts["prose"] += 1
                yield {"q": question, "held": False, "none": True, "items": items}


def _is_among(table: Table, one: Filter, others: Sequence[Filter]) -> bool:
    """Whether a condition is one of others, or chooses the same rows by the same column."""
    if one in others:
        return True
    rows = find_rows(table, [one])
    if not rows or len(rows) == len(table):
        return False
    if one.how in COLUMN_SIGNS:
        return swap_columns(one) in others
    return any(
        find_rows(table, [other]) == rows and (other.column == one.column or len(rows) == 1)
        for other in others
    )


def _is_said(asked: Asked, column: Column) -> bool:
    """Whether a question has a word of a column's name."""
    return any(is_same_word(word.fold, own) for word in asked.words for own in column.words)


def write_part(given: argparse.Namespace, part: int) -> tuple[list[str], Counter[str]]:
    """Return the lines of one of the workers' parts, and what was counted."""
    writer, own = Writer(random.Random(7 + part)), slice(part, None, given.workers)
    graphs = GraphWriter(random.Random(7 + part))
    rows = [
        *writer.write_tables(list(read_lines(TABLES))[own]),
        *JoinedWriter(writer).write(list(read_lines(JOINED))[own]),
        *graphs.write([*read_lines(GRAPHS), *read_lines(DIVIDED_GRAPHS)][own]),
    ]
    if given.prose:
        lines = given.prose.read_text(encoding="utf-8").splitlines()
        questions = [json.loads(line)["question"] for line in lines]
        some = random.Random(7).sample(questions, given.most)
        rows += writer.write_prose(some[own])
    return [json.dumps(one, ensure_ascii=False) for one in rows], writer.counts + graphs.counts


def main() -> None:
    """Write the pairs."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--prose", type=Path)
    ask.add_argument("--most", type=int, default=1500, help="questions of prose")
    ask.add_argument("--workers", type=int, default=1, help="processes")
    given = ask.parse_args()
    counts: Counter[str] = Counter()
    with (
        ProcessPoolExecutor(given.workers, get_context("spawn")) as pool,
        gzip.open(given.out, "wt", encoding="utf-8") as out,
    ):
        for lines, counted in pool.map(write_part, repeat(given), range(given.workers)):
            out.writelines(f"{line}\n" for line in lines)
            counts += counted
    sizes = {"bytes": given.out.stat().st_size}
    print_result("query_scorer.pairs", dict(counts), sizes)


if __name__ == "__main__":
    main()
