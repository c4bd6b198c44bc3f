"""Questions over tables and graphs of our own, each with the query or the path that it means.

`tables.jsonl.gz` and `graphs.jsonl.gz` hold one table or graph a line with its questions, in
several wordings each; README.md says what their fields mean.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clew.agents.rules.table_words import fold_text
from clew.agents.tables.load import Column, Table
from clew.agents.tables.propose import Part
from clew.agents.tables.reading import Filter, Query
from clew.retrieve.paths.judged import say_path
from clew.text.dates import parse_whole_date
from clew.text.names import relation_segments, relations_to_words

FOLDER = Path(__file__).parent
TABLES, GRAPHS = FOLDER / "tables.jsonl.gz", FOLDER / "graphs.jsonl.gz"
DIVIDED_GRAPHS = FOLDER / "divided_graphs.jsonl.gz"
_SIGNS = {"over": ">", "under": "<", "at least": ">=", "at most": "<="}
_SIGNS |= {"contains": "contains", "starts": "starts"}
_COLUMN_SIGNS = {"over col": "over column", "under col": "under column"}
_COLUMN_SIGNS |= dict.fromkeys(("is col", "is not col"), "is column")
_COMPARISONS = {"more": ("check", "max"), "less": ("check", "min")}
_COMPARISONS |= {"more-by": ("difference", "max"), "less-by": ("difference", "min")}
_COMPARISONS |= {"difference": ("difference", ""), "ratio": ("ratio", "")}
_HELD = 7  # every seventh table and graph is held out
_MAX_ROUTES = 200

Step = tuple[str, bool]
"""A relation, and whether it is gone from tail to head."""


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the tables or graphs of a file."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def is_held(name: str) -> bool:
    """Whether a table or graph of this name is left out of training."""
    return sum(map(ord, name)) % _HELD == 0


def make_table(line: dict[str, Any]) -> Table:
    """Return a table as the product would load it."""
    columns = {}
    for at, name in enumerate(line["columns"]):
        cells = [_to_cell(row[at]) for row in line["rows"]]
        columns[name] = Column(name, cells)
    keys = [name for name, one in columns.items() if one.is_key]
    named = [name for name in keys if columns[name].type == "text"]
    spoken = [name for name in named if not columns[name].holds_codes]
    label = next(iter([*spoken, *keys]), "")
    rows = [(str(at), "", "") for at in range(len(line["rows"]))]
    return Table(f"{line['table']}.csv", label, columns, rows)


def _to_cell(value: Any) -> Any:
    if value is None or value == "":
        return None
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def make_query(table: Table, ask: dict[str, Any]) -> Query:
    """Return the query that a question means."""
    base = Query(table, "value", tuple(_make_filters(table, ask.get("where", []))))
    return _MAKERS[ask["get"]](base, ask)


def _make_filters(table: Table, where: Sequence[Sequence[Any]]) -> Iterator[Filter]:
    for name, sign, *rest in where:
        column, value = table.columns[name], rest[0] if rest else ()
        if sign in ("is", "is not"):
            for one in value if isinstance(value, list) else [value]:
                yield _make_equal(column, one, negated=sign == "is not")
        elif sign in _SIGNS:
            yield Filter(name, _SIGNS[sign], _to_value(column, value))
        elif sign in _COLUMN_SIGNS:
            yield _make_comparing(table, name, sign, str(value))
        elif sign == "in year":
            yield Filter(name, "year" if column.type == "date" else "=", str(value))
        elif sign == "in month":
            text = str(value)
            yield Filter(name, "month", text if "-" in text else f"-{int(text):02}-")
        elif sign == "between" and column.type == "number":
            yield from (
                Filter(name, how, str(one)) for how, one in zip((">=", "<="), value, strict=True)
            )
        elif sign == "between":
            yield Filter(name, "within", "/".join(_to_value(column, one) for one in value))
        else:
            yield Filter(name, sign)


def _make_comparing(table: Table, name: str, sign: str, other: str) -> Filter:
    """Return a condition that compares two columns of a row, of one type."""
    if table.columns[name].type != table.columns[other].type:
        raise ValueError(f"{name} and {other} cannot be compared")
    return Filter(name, _COLUMN_SIGNS[sign], other, negated=sign.startswith("is not"))


def _make_equal(column: Column, value: Any, negated: bool) -> Filter:
    truths = column.truths or {}
    truth = truths.get(value, truths.get(str(value)))
    if truth is not None:
        return Filter(column.name, "flag", negated=truth == negated)
    if column.is_quantity and str(value) in ("0", "0.0"):
        return Filter(column.name, "empty", negated=negated)
    return Filter(column.name, "=", _to_value(column, value), negated=negated)


def _to_value(column: Column, value: Any) -> str:
    """Return a value as conditions compare it."""
    if column.type == "text":
        return fold_text(value)
    day = parse_whole_date(value) if column.type == "date" else None
    is_part = str(value).isdigit() or str(value).count("-") == 1  # a year, or a month of one
    return str(value) if day is None or is_part else day.isoformat()


def _first(of: Any) -> str:
    return str(of[0] if isinstance(of, list) else of)


def _make_value(base: Query, ask: dict[str, Any]) -> Query:
    of = ask["of"]
    return replace(base, targets=_order(base.table, of if isinstance(of, list) else [of]))


def _order(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    """Return columns in the order of the table, as they are proposed."""
    return tuple(sorted(dict.fromkeys(names), key=list(table.columns).index))


def _make_best(base: Query, ask: dict[str, Any]) -> Query:
    of = _first(ask["of"])
    told = ask["tell"] if isinstance(ask["tell"], list) else [ask["tell"]]
    tell = _order(base.table, [name for name in told if name != of])
    best = "max" if ask["get"] == "top" else "min"
    query = replace(base, wants="best", best=best, measure=of, targets=tell)
    return replace(query, rank=ask.get("rank", 1), limit=ask.get("n", 1))


def _make_group(base: Query, ask: dict[str, Any]) -> Query:
    counted = ask["agg"] == "count"
    query = replace(base, group=ask["group"], aggregate="" if counted else ask["agg"])
    query = replace(query, measure="" if counted else _first(ask["of"]))
    if ask["get"] == "each":
        return replace(query, wants="groups")
    best = "max" if ask["get"] == "group-top" else "min"
    return replace(
        *(query,), wants="group", best=best, rank=ask.get("rank", 1), limit=ask.get("n", 1)
    )


def _make_comparison(base: Query, ask: dict[str, Any]) -> Query:
    """Return what compares two that are named: by a column, or by their number of rows."""
    key, (wants, best) = ask["key"], _COMPARISONS[ask["get"]]
    two = [Filter(key, "=", fold_text(one), at=at) for at, one in enumerate(ask["between"], 1)]
    query = replace(base, wants=wants, best=best, group=key, filters=(*base.filters, *two))
    return _measure_by(query, ask)


def _measure_by(query: Query, ask: dict[str, Any]) -> Query:
    """Return a query with what it measures; sums need not be said of what is compared."""
    how = ask.get("agg", "")
    if how == "count":
        return query
    return replace(query, measure=_first(ask["of"]), aggregate="" if how == "sum" else how)


def _make_difference(base: Query, ask: dict[str, Any]) -> Query:
    if "key" in ask:
        return _make_comparison(base, ask)
    measure, second = ask["of"]
    return replace(base, wants=_COMPARISONS[ask["get"]][0], measure=measure, second=second)


def _make_is_best(base: Query, ask: dict[str, Any]) -> Query:
    """Return what asks whether a row or group that is named is the best."""
    key = ask["key"]
    named = Filter(key, "=", fold_text(ask["named"]), at=1)
    best = "max" if ask["get"] == "is-top" else "min"
    query = replace(base, wants="check", best=best, filters=(*base.filters, named))
    if "agg" not in ask:
        return replace(query, measure=_first(ask["of"]), targets=(key,))
    if ask["agg"] == "count":
        return replace(query, group=key)
    return replace(query, group=key, measure=_first(ask["of"]), aggregate=ask["agg"])


def _make_bound(base: Query, ask: dict[str, Any]) -> Query:
    bound = (_SIGNS[ask["sign"]], str(ask["than"]))
    return _measure_by(replace(base, wants="check", bound=bound), ask)


_MAKERS: dict[str, Callable[[Query, dict[str, Any]], Query]] = {
    "value": _make_value,
    "list": lambda base, ask: replace(base, targets=(_first(ask["of"]),)),
    "count": lambda base, _: replace(base, wants="count"),
    "distinct": lambda base, ask: replace(base, wants="distinct", targets=(_first(ask["of"]),)),
    "group-over": lambda base, ask: replace(
        base, wants="repeated", group=ask["group"], limit=ask.get("n", 1)
    ),
    "check": lambda base, _: replace(base, wants="check"),
    "share": lambda base, _: replace(base, wants="share"),
}
_MAKERS |= dict.fromkeys(("top", "bottom"), _make_best)
_MAKERS |= dict.fromkeys(("group-top", "group-bottom", "each"), _make_group)
_MAKERS |= dict.fromkeys(("more", "less", "more-by", "less-by"), _make_comparison)
_MAKERS |= dict.fromkeys(("difference", "ratio"), _make_difference)
_MAKERS |= dict.fromkeys(("is-top", "is-bottom"), _make_is_best)
_MAKERS |= {"check-total": _make_bound}
_MAKERS |= dict.fromkeys(
    ("sum", "mean", "median"),
    lambda base, ask: replace(
        base, wants="aggregate", aggregate=ask["get"], measure=_first(ask["of"])
    ),
)
_MAKERS |= dict.fromkeys(
    ("max", "min"),
    lambda base, ask: replace(base, wants="best", best=ask["get"], measure=_first(ask["of"])),
)


def list_own_parts(query: Query) -> set[Part]:
    """Return the parts that a query is made of."""
    if query.unlinked is not None:
        own = list_own_parts(replace(query, unlinked=None))
        return {*own, Part("without", query.unlinked.table.stem)}
    asks = {Part("ask", name) for name in query.targets}
    extreme = {Part(query.best, query.measure)} if query.best and query.measure else set()
    match query.wants:
        case "distinct":
            return {Part("distinct", query.targets[0])}
        case "aggregate":
            return {Part(query.aggregate, query.measure)}
        case "best":
            return asks | extreme
        case "group":
            counted = {Part("most" if query.best == "max" else "fewest")}
            return {Part("ask", query.group)} | (extreme or counted)
        case "groups":
            computed = Part(query.aggregate, query.measure) if query.measure else Part("count")
            return {Part("each", query.group), computed}
        case "repeated":
            return {Part("over", query.group)}
        case "check" | "difference" | "ratio":
            return _list_compared_parts(query, extreme)
        case "count" | "share":
            return {Part(query.wants)}
    return asks


def _list_compared_parts(query: Query, extreme: set[Part]) -> set[Part]:
    """Return the parts of what compares rows or groups that are named."""
    found = {Part("check" if query.wants == "check" else "difference")} | extreme
    if query.aggregate == "mean":
        found.add(Part("mean", query.measure))
    elif query.measure and not query.best:
        is_one = query.second or (query.group and query.table.columns[query.group].is_key)
        found.add(Part("ask" if is_one else query.aggregate or "sum", query.measure))
        found |= {Part("ask", query.second)} if query.second else set()
    elif query.best and not query.measure:
        found.add(Part("most" if query.best == "max" else "fewest"))
    elif query.group or query.bound[0]:
        found |= set() if query.measure else {Part("count")}
    return found


@dataclass(frozen=True)
class SmallGraph:
    """A graph of a few triples, with the steps from each of its names."""

    steps: dict[str, dict[Step, list[str]]]

    @classmethod
    def read(cls, line: dict[str, Any]) -> "SmallGraph":
        """Return the graph of a line."""
        steps: dict[str, dict[Step, list[str]]] = defaultdict(lambda: defaultdict(list))
        for head, relation, tail in line["triples"]:
            steps[str(head)][relation, False].append(str(tail))
            steps[str(tail)][relation, True].append(str(head))
        return cls({name: dict(own) for name, own in steps.items()})

    def follow(self, topic: str, path: Sequence[Step]) -> list[list[str]]:
        """Return the names along each way that a path leads."""
        found = [[topic]]
        for step in path:
            found = [
                [*route, name]
                for route in found
                for name in self.steps.get(route[-1], {}).get(step, [])
                if name not in route
            ][:_MAX_ROUTES]
        return found

    def list_paths(self, topic: str, longest: int, most: int) -> list[tuple[Step, ...]]:
        """Return the paths of relations from a name, short ones first."""
        found: list[tuple[Step, ...]] = []
        front: list[tuple[Step, ...]] = [()]
        for _ in range(longest):
            longer = []
            for path in front:
                ends = {route[-1] for route in self.follow(topic, path)}
                for step in sorted({step for end in ends for step in self.steps.get(end, {})}):
                    if self.follow(topic, (*path, step)):
                        longer.append((*path, step))
            found += longer
            front = longer[:most]
        return found

    def say(self, topic: str, path: Sequence[Step]) -> str:
        """Say a path as the scorer reads it."""
        routes = self.follow(topic, path)
        ends = list(dict.fromkeys(route[-1] for route in routes))
        return say_path(self.list_facts(routes[0], path), list_directions(path), ends)

    def list_facts(self, route: Sequence[str], path: Sequence[Step]) -> list[tuple[str, str, str]]:
        """Return the facts along a path through these names, with relations in plain words."""
        facts = []
        short = relations_to_words([relation_segments(relation)[-1] for relation, _ in path])
        for (_, backward), said, near, far in zip(path, short, route, route[1:], strict=False):
            facts.append((far, said, near) if backward else (near, said, far))
        return facts


def list_directions(path: Sequence[Step]) -> list[bool]:
    """Return which steps of a path go from tail to head."""
    return [backward for _, backward in path]


def read_path(ask: dict[str, Any]) -> tuple[Step, ...] | None:
    """Return the path that a question means, None if the graph does not say."""
    if ask["path"] == "none":
        return None
    return tuple((step.removeprefix("^"), step.startswith("^")) for step in ask["path"])
