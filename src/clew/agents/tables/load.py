"""Tables as columns of typed values, and joined."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Literal, cast

from clew.agents.rules.table_words import fold_text, is_same_word, load_operators
from clew.agents.tables.values import is_year, load_vocabulary, read_truths
from clew.ingest.readers.tables import split_column
from clew.text.dates import parse_clock, parse_slashed, parse_whole_date, split_slashed
from clew.text.quantities import (
    WrittenNumber,
    choose_decimal,
    parse_number,
    split_unit,
    to_float,
)

ColumnType = Literal["number", "date", "time", "text", "flag"]
_SAMPLE = 400  # different values by which a column is first looked at
_PLAIN_DIGITS = frozenset("0123456789.-")
_MOSTLY = 0.95  # share of the values that decides a column's type
_KEY_SHARE = 0.999
_LINK_SHARE = 0.95  # share of a column's values that are keys of the other table
_MIN_LINKED = 3  # different numbers that a link needs: fewer agree by chance
_MAX_CODE = 3  # characters of texts that agree by chance: yes, no, codes of countries
_MIN_TEXTS = 2  # different texts that are a link whatever the column is called
_MAX_JOINED = 200_000  # rows of all tables together, beyond which links are not looked for
_MAX_MEASURED = 100  # numbers up to this agree by chance
_LETTERS_OR_DIGITS = re.compile(r"[^\W\d_]{2,}|\d{2,}")
_MARKED_UNIT = re.compile(r"[(\[]\s*([^\W\d_]+|[€$£¥₽%])\s*[)\]]\s*$")
_NO_UNITS = ("min", "sec")  # more often the smallest, or a section
_SURE_IDS = ("id", "ids", "code", "key", "uid", "uuid")


@dataclass(frozen=True)
class Column:
    """A column: its name, and a value or None per row."""

    name: str
    cells: Sequence[Any]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of its name."""
        return tuple(split_column(self.name))

    @cached_property
    def type(self) -> ColumnType:
        """What nearly all of its values are."""
        there = self._counts
        if self.truths is not None and not all(parse_number(cell) in (0, 1) for cell in there):
            return "flag"
        if there and any(isinstance(cell, bool) for cell in there):
            return "flag"
        least = _MOSTLY * there.total()
        if there and sum(n for cell, n in there.items() if cell in self._floats) >= least:
            return "number"
        for kind, known in (("date", self._days), ("time", self._clocks)):
            if there and sum(n for cell, n in there.items() if cell in known) >= least:
                return cast(ColumnType, kind)
        return "text"

    @cached_property
    def _days(self) -> Mapping[Any, date]:
        """The values that are dates, if they are not rare."""
        if not self._is_seldom(parse_whole_date):
            return {cell: day for cell in self._counts if (day := parse_whole_date(cell))}
        return {} if self._is_seldom(split_slashed) else parse_slashed(self._counts)

    @cached_property
    def _clocks(self) -> Mapping[Any, int]:
        """The values that are times of day, in minutes, if they are not rare."""
        if self._is_seldom(parse_clock):
            return {}
        return {c: minutes for c in self._counts if (minutes := parse_clock(c)) is not None}

    @cached_property
    def truths(self) -> Mapping[Any, bool] | None:
        """What its values mean if they are yes and no."""
        return read_truths(self.cells)

    def is_true(self, row: int) -> bool | None:
        """Whether a row's value is yes; no value is no where all values are yes."""
        known = self.truths or {}
        missing = None if False in known.values() else False
        return known.get(self.cells[row], missing)

    @cached_property
    def _counts(self) -> Counter[Any]:
        """How often each value stands here."""
        return Counter(cell for cell in self.cells if cell is not None)

    def _is_seldom(self, parse: Callable[[Any], object | None]) -> bool:
        """Whether few of some values can be parsed: then most of all cannot, either."""
        step = max(1, len(self._counts) // _SAMPLE)
        some = list(islice(self._counts, 0, None, step))
        return sum(parse(cell) is not None for cell in some) < len(some) / 2

    @cached_property
    def _plain(self) -> Mapping[Any, float] | None:
        """The values as numbers if all are digits with at most a point, else None: it is quick."""
        texts = [cell for cell in self._counts if isinstance(cell, str)]
        if len(texts) < len(self._counts) or not _PLAIN_DIGITS.issuperset("".join(texts)):
            return None
        try:
            return {cell: float(cell) for cell in texts}
        except ValueError:
            return None

    @cached_property
    def _quantities(self) -> Mapping[Any, WrittenNumber]:
        """The values that are numbers, if their units agree."""
        cells = self._counts
        if self._plain is not None:
            return {cell: WrittenNumber(cell, "", False) for cell in cells}
        if self._is_seldom(split_unit):
            return {}
        found = {cell: one for cell in cells if (one := split_unit(cell)) is not None}
        sizes: Counter[str] = Counter()
        for cell, one in found.items():
            sizes[one.unit.casefold()] += cells[cell]
        units = {unit for unit in sizes if unit}
        known = load_vocabulary().units
        if len({known[unit][0] if unit in known else unit for unit in units}) > 1:
            return {cell: one for cell, one in found.items() if not one.unit}
        if any(unit not in known for unit in units) and sizes[""]:
            return {cell: one for cell, one in found.items() if not one.unit}
        return found

    @cached_property
    def unit(self) -> tuple[str, bool]:
        """The unit that most values are written with, and whether it stands before them."""
        units = Counter((one.unit, one.leads) for one in self._quantities.values() if one.unit)
        return units.most_common(1)[0][0] if units else ("", False)

    @cached_property
    def shown_unit(self) -> tuple[str, bool]:
        """The unit that computed numbers are told with: of its values, else of its name."""
        known = load_vocabulary().units
        marked = _MARKED_UNIT.search(self.name)
        last = marked[1].casefold() if marked else self.last_of_name
        is_word = bool(marked) or (len(last) > 1 and last not in _NO_UNITS)
        if self.unit[0] or last not in known or not is_word:
            return self.unit
        is_code = known[last][0] == "money" and last.isalpha() and len(last) == 3
        return (last.upper() if is_code else marked[1] if marked else last), not last.isalnum()

    @property
    def last_of_name(self) -> str:
        """The last word of its name, where it may be a unit: not of `visitors_per_year`."""
        return self.words[-1] if len(self.words) > 1 and self.words[-2] != "per" else ""

    @cached_property
    def is_grouped(self) -> bool:
        """Whether thousands are told apart by commas in its values."""
        if self._plain is not None:
            return False
        decimal = choose_decimal(one.digits for one in self._quantities.values())
        return decimal == "." and any("," in one.digits for one in self._quantities.values())

    @cached_property
    def measures(self) -> str:
        """What its unit measures (length, money, …), by its values or its name; "" if unknown."""
        known = load_vocabulary().units
        named = self.unit[0].casefold() or self.last_of_name
        return known[named][0] if named in known and self.type == "number" else ""

    @cached_property
    def _floats(self) -> Mapping[Any, float]:
        """The values that are numbers, in the column's unit."""
        if self._plain is not None:
            return self._plain
        decimal = choose_decimal(one.digits for one in self._quantities.values())
        known, found = load_vocabulary().units, {}
        _, own = known.get(self.unit[0].casefold(), ("", 1.0))
        for cell, one in self._quantities.items():
            number = parse_number(cell) if decimal == "." and not one.unit else None
            number = to_float(one.digits, decimal) if number is None else number
            if number is not None:
                _, size = known.get(one.unit.casefold(), ("", own))
                found[cell] = number * (size / own)
        return found

    @cached_property
    def is_id(self) -> bool:
        """Whether its numbers are names of rows rather than quantities: by the column's name."""
        if self.type != "number" or not self.words:
            return False
        last = self.words[-1]
        is_whole = all(number.is_integer() for number in self._floats.values())
        known = last in load_vocabulary().identifiers
        return is_whole and known and (last in _SURE_IDS or self.is_nearly_key)

    @property
    def names_rows(self) -> bool:
        """Whether its values are keys, numbers or texts, that stand for something: `vet_id`."""
        named = len(self.words) > 1 and self.words[-1] in _SURE_IDS
        return self.is_id or (self.type == "text" and named)

    @cached_property
    def holds_codes(self) -> bool:
        """Whether its values are texts of letters and digits without a space: C1, G-2."""
        cells = [str(cell) for cell in self._counts]
        return self.type == "text" and all(
            any(map(str.isdigit, one)) and any(map(str.isalpha, one)) and " " not in one
            for one in cells
        )

    @cached_property
    def has_digits(self) -> bool:
        """Whether most of its values are texts or names of rows with a digit: numbers, codes."""
        named = [cell for cell in self._counts if any(map(str.isdigit, str(cell)))]
        is_name = self.is_id or self.type == "text"
        return is_name and 2 * len(named) > len(self._counts)

    @cached_property
    def is_rank(self) -> bool:
        """Whether its numbers are places in an order: the highest is 1."""
        return self.type == "number" and not load_vocabulary().ranks.isdisjoint(self.words)

    @property
    def has_few_numbers(self) -> bool:
        """Whether its numbers are few whole ones that come again, as those of bus lines."""
        whole = self.type == "number" and all(n.is_integer() for n in self._floats.values())
        return whole and 2 * len(self._counts) <= self._counts.total()

    @property
    def is_quantity(self) -> bool:
        """Whether its values are numbers that can be added up or compared."""
        return self.type == "number" and not self.is_id

    def reaches(self, limit: float) -> bool:
        """Whether a number lies between its smallest and its largest."""
        return self.range is not None and self.range[0] <= limit <= self.range[1]

    @cached_property
    def range(self) -> tuple[float, float] | None:
        """Its smallest and its largest number, if it has any."""
        known = [number for number in self.numbers if number is not None]
        return (min(known), max(known)) if known else None

    @property
    def is_stock(self) -> bool:
        """Whether it says how many things a row stands for: by its name."""
        whole = all(number.is_integer() for number in self._floats.values())
        named = bool(self.words) and self.words[-1] in load_vocabulary().stocks
        return self.is_quantity and whole and named and not self.unit[0]

    @property
    def is_additive(self) -> bool:
        """Whether its values are amounts of which a group has the sum: by its name."""
        named = any("turnover" in load_operators().concepts_of(word) for word in self.words)
        return self.is_stock or (self.is_quantity and named)

    @property
    def is_reading(self) -> bool:
        """Whether it holds what another column of its row says is measured: by its name."""
        named = bool(self.words) and self.words[-1] in load_vocabulary().readings
        return self.is_quantity and named

    @cached_property
    def numbers(self) -> list[float | None]:
        """The values as numbers; dates as days and times as minutes, so that they are compared."""
        known = {cell: self._to_number(cell) for cell in set(self.cells)}
        return [known[cell] for cell in self.cells]

    def _to_number(self, cell: Any) -> float | None:
        if cell is None:
            return None
        if self.type == "date":
            day = self._days.get(cell)
            return float(day.toordinal()) if day else None
        return self._clocks.get(cell) if self.type == "time" else self._floats.get(cell)

    @cached_property
    def folded(self) -> list[str | None]:
        """The values as they are compared with words."""
        known = {cell: None if cell is None else fold_text(cell) for cell in set(self.cells)}
        return [known[cell] for cell in self.cells]

    @cached_property
    def rows_by_value(self) -> Mapping[str, list[int]]:
        """The rows with each value, folded."""
        found = defaultdict(list)
        for row, fold in enumerate(self.folded):
            if fold is not None:
                found[fold].append(row)
        return dict(found)

    @property
    def tells_kinds(self) -> bool:
        """Whether its values are common nouns, of which there are many: dog, not Denmark."""
        plain = sum(str(cell)[:1].islower() for cell in self._counts)
        return self.type == "text" and plain * 2 > len(self._counts)

    @cached_property
    def has_years(self) -> bool:
        """Whether its numbers are years: by its name, or since all could be."""
        known = [number for number in self.numbers if number is not None]
        if self.type != "number" or not known:
            return False
        named = "year" in self.words and "per" not in self.words
        return named or all(n.is_integer() and is_year(n) for n in known)

    @cached_property
    def is_nearly_key(self) -> bool:
        """Whether most values occur once."""
        known = sum(cell is not None for cell in self.cells)
        return len(self.rows_by_value) >= 0.9 * known > 0

    @cached_property
    def is_key(self) -> bool:
        """Whether every row has a value here, and hardly any two the same."""
        known = sum(cell is not None for cell in self.cells)
        return known == len(self.cells) and len(self.rows_by_value) >= _KEY_SHARE * known


@dataclass(frozen=True)
class Table:
    """A table: its columns and its rows."""

    name: str
    label: str
    columns: Mapping[str, Column]
    rows: Sequence[tuple[str, str, str]]
    """The name, document and first chunk of each row."""
    partners: tuple["Partner", ...] = ()
    """Tables whose columns were added to these."""

    @property
    def stem(self) -> str:
        """Its name without folders and the file's suffix."""
        file, _, inner = self.name.partition("#")
        return inner or PurePosixPath(file).stem

    @cached_property
    def own_words(self) -> frozenset[str]:
        """The words of its name, without folders and the file's suffix."""
        file, _, inner = self.name.partition("#")
        own = split_column(f"{PurePosixPath(file).stem} {inner}")
        return frozenset([*own, *(p for word in own for p in _LETTERS_OR_DIGITS.findall(word))])

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its name and its partners'."""
        return self.own_words.union(*(one.table.words for one in self.partners))

    @cached_property
    def amounts(self) -> tuple[str, ...]:
        """The columns of which a group of rows has the sum: by their names, else of money."""
        concepts = load_operators().concepts_of
        named = [name for name, one in self.columns.items() if one.is_additive]
        paid = [name for name, one in self.columns.items() if one.measures == "money"]
        rates = {n for n in paid for w in self.columns[n].words if concepts(w) & {"price", "pay"}}
        return tuple(named or (name for name in paid if name not in rates))

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)


@dataclass(frozen=True)
class Link:
    """A column whose values are keys of another table."""

    column: str
    other: Table = field(repr=False)
    key: str


@dataclass(frozen=True)
class Partner:
    """A table joined to another: its row for each row of that one, and the columns it brought."""

    table: Table = field(repr=False)
    rows: Sequence[int | None] = field(repr=False)
    columns: frozenset[str]
    link: str = ""
    """The column that refers to it."""
    label: str = ""
    """The column that names its rows, as it is called here."""

    def repeats_link(self, table: Table) -> bool:
        """Whether rows refer to it by the names of its rows, so that they know them already."""
        names, own = (table.columns[one].folded for one in (self.label or self.link, self.link))
        return self.label != "" and all(a in (None, b) for a, b in zip(names, own, strict=True))


def find_links(table: Table, others: Sequence[Table]) -> list[Link]:
    """Return the columns of a table whose values are keys of another one."""
    found = []
    for name, column in table.columns.items():
        values = column.rows_by_value.keys()
        least = 1 if column.type == "text" or column.is_id else _MIN_LINKED
        if len(values) < least or column.type == "date":
            continue
        for other in others:
            for key, keys in other.columns.items():
                if keys.type == "date" or not keys.is_key:
                    continue
                if other is table and (name == key or not _refers_within(column)):
                    continue
                if len(values & keys.rows_by_value.keys()) >= _LINK_SHARE * len(values):
                    found.append(Link(name, other, key))
    return found


def _refers_within(column: Column) -> bool:
    """Whether a column of ids refers to rows of its own table: `manager_id`."""
    said = set(column.words) - load_vocabulary().identifiers
    return column.is_id and not load_vocabulary().references.isdisjoint(said)


def join_tables(tables: Sequence[Table]) -> list[Table]:
    """Return every table that refers to others, with the columns of these beside its own."""
    if sum(map(len, tables)) > _MAX_JOINED:
        return []
    found = [_join(table, tables) for table in tables]
    return [table for table in found if table.partners]


def _join(table: Table, tables: Sequence[Table]) -> Table:
    columns = dict(table.columns)
    partners: list[Partner] = []
    for link in find_links(table, tables):
        own = table.columns[link.column]
        is_meant = _is_named_alike(own, link.other, link.key) or _refers_by_values(own, link)
        is_meant = is_meant or link.other is table or _refers_by_codes(own, link)
        if not is_meant and not _has_texts(own):
            continue  # values that agree by chance: years and small numbers do
        keys = link.other.columns[link.key].rows_by_value
        rows = [keys[fold][0] if fold is not None and fold in keys else None for fold in own.folded]
        if any(one.link == link.column and one.table is link.other for one in partners):
            continue  # by another key
        names = _name_brought(link, columns)
        columns |= {
            name: Column(name, [None if row is None else cells[row] for row in rows])
            for own_name, name in names.items()
            for cells in (link.other.columns[own_name].cells,)
        }
        label = names.get(link.other.label, "")
        partners.append(Partner(link.other, rows, frozenset(names.values()), link.column, label))
    return replace(table, columns=columns, partners=tuple(partners))


def _name_brought(link: Link, columns: Mapping[str, Column]) -> dict[str, str]:
    """Return how the columns of a linked table are called beside those that are there."""
    found = {}
    for name in link.other.columns:
        if name != link.key or name == link.other.label:
            called = [name, f"{link.other.stem}.{name}", f"{link.column}.{name}"]
            found[name] = next((one for one in called if one not in columns), "")
    return {name: called for name, called in found.items() if called}


def _has_texts(column: Column) -> bool:
    """Whether the values are texts too long to agree by chance."""
    long = [fold for fold in column.rows_by_value if len(fold) > _MAX_CODE]
    return column.type == "text" and len(long) >= _MIN_TEXTS


def _refers_by_values(column: Column, link: Link) -> bool:
    """Whether a column of numbers can only hold the ids of another table.

    All are among them, and either its name says that it refers ("assigned to"), or the ids lie
    too far from zero and too close together to be hit by numbers that measure something.
    """
    keys = link.other.columns[link.key]
    if not keys.is_id or column.unit[0] or column.rows_by_value.keys() - keys.rows_by_value.keys():
        return False
    if column.words and column.words[-1] in load_vocabulary().references:
        return True
    ids = [number for number in keys.numbers if number is not None]
    return not column.has_years and max(ids) - min(ids) < min(ids) and min(ids) > _MAX_MEASURED


def _refers_by_codes(column: Column, link: Link) -> bool:
    """Whether all values are keys of another table that are written as codes: C1, C2."""
    keys = link.other.columns[link.key]
    values = column.rows_by_value.keys()
    least = _MIN_TEXTS if keys.names_rows else _MIN_LINKED
    is_code = column.holds_codes and (keys.names_rows or keys.holds_codes)
    return is_code and len(values) >= least and values <= keys.rows_by_value.keys()


def _is_named_alike(column: Column, other: Table, key: str) -> bool:
    """Whether a column's name has a word of the other table's name, or of its key's."""
    known = {*other.words, *other.columns[key].words}
    said = set(column.words) - load_vocabulary().identifiers or set(column.words) - {"id"}
    return any(is_same_word(word, own) for word in said for own in known)
