"""What each word of a question is taken for, over one table: columns first."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.agents.rules.table_words import Operators, Word, is_same_word, strip_plural
from clew.agents.tables.load import Column, Table
from clew.agents.tables.values import load_vocabulary
from clew.ingest.readers.tables import split_column
from clew.text.quantities import is_people

_COLUMN_WEIGHT = 2.0
VALUE_WEIGHT = 3.0
"""Of a reading's score: for each word of a value that it finds."""
_TIMELY = ("first", "last")
_MIN_VALUE = 4  # letters of a value that is no code
BEFORE_ROLE = frozenset("is was are were the a an".split())
"""What may stand between "who" and the column that it asks for."""
COLUMN_SIGNS = ("over column", "under column", "is column")
"""How two columns of a row are compared."""
Mention = tuple[int, int, str]
"""Words of a question, from and to (exclusive), and the column or meaning."""


# "Oldest" is the first of dates and years, but the largest of ages.
_EXTREMES = {"most": "max", "fewest": "min", "least": "min", "last": "max", "first": "min"}
_EXTREMES |= {"old": "min", "young": "max"}
_REVERSED = {"max": "min", "min": "max"}  # of ranks: the first is the highest
_OF_AGES = {"old": "max", "young": "min"}
_EXTREMES |= {"fast": "max", "slow": "min"}
_OF_TIMES = {"fast": "min", "slow": "max"}


def to_extreme(degree: str, column: Column | None) -> str:
    """Return max or min for what a word of degree asks of a column; "" stays."""
    is_age = column is not None and column.type == "number" and not column.has_years
    extremes = _EXTREMES | _OF_AGES if is_age else _EXTREMES
    if column is not None and column.measures == "time":
        extremes = extremes | _OF_TIMES
    found = extremes.get(degree, degree)
    return _REVERSED.get(found, found) if column is not None and column.is_rank else found


@dataclass(frozen=True)
class Guess:
    """A word of a question, or what it leaves unsaid, that was taken for something without proof.

    `kind` is one of `clew.agents.tables.confidence`; `name` is the column or value that it was
    taken for by its meaning, "" of a word that nothing accounts for.
    """

    kind: str
    word: str = ""
    name: str = ""


@dataclass(frozen=True)
class Filter:
    """A condition on a column.

    `how` is =, <, >, <=, >=, contains, starts, ends, year, month, within (a period), filled, empty
    (no value, or none of it) or flag (yes); or over, under or is column, and the value is another
    column of the row.
    """

    column: str
    how: str
    value: str = ""
    negated: bool = False
    at: int = field(default=-1, compare=False)
    """The word of the question where it stands."""
    said: str = field(default="", compare=False)
    """How the question says it, of a period."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it looks at: two if it compares them."""
        compares = self.how in COLUMN_SIGNS
        return frozenset([self.column, self.value] if compares else [self.column])


@dataclass(frozen=True)
class Unlinked:
    """Rows of another table that refer to none of those asked for: "members without a car"."""

    table: Table
    filters: tuple[Filter, ...]
    rows: Sequence[int | None] = field(repr=False)
    """For each row of that table, the row it refers to."""


@dataclass(frozen=True)
class Query:
    """What a question asks of a table."""

    table: Table
    wants: str
    """count, distinct, value or rows."""
    filters: tuple[Filter, ...] = ()
    targets: tuple[str, ...] = ()
    """The columns whose values answer."""
    measure: str = ""
    aggregate: str = ""
    """sum, mean or median of `measure`, or "" """
    best: str = ""
    """max or min: of the measure, or of the group's aggregate or size."""
    group: str = ""
    score: float = 0.0
    rank: int = 1
    """Which of the best: 2 for the second largest."""
    limit: int = 1
    """How many of the best."""
    second: str = ""
    """Another measure, for the ratio of two."""
    guesses: tuple[Guess, ...] = ()
    """The words or columns that were guessed."""
    entities: frozenset[str] = frozenset()
    """Columns of keys that the question names by what they stand for: "student"."""
    adds_up: bool = False
    """Whether "how many" asks for a sum: "how many hours"."""
    of_rows: bool = False
    """Whether rows are asked for by a superlative before their name: "the cheapest car"."""
    counts_things: bool = False
    """Whether what is counted is a kind of thing that rows are of: "lamps"."""
    unlinked: Unlinked | None = None
    """What must not refer to the rows."""
    bound: tuple[str, str] = ("", "")
    """A sign and the number that a total or a number of rows is compared with."""

    @property
    def named(self) -> list[Filter]:
        """The rows or groups that are compared by name, in the question's order."""
        own = [one for one in self.filters if one.column == self.group and one.how == "="]
        return sorted((one for one in own if not one.negated), key=lambda one: one.at)

    @property
    def columns(self) -> frozenset[str]:
        """All columns that it uses."""
        used = {name for one in self.filters for name in one.columns}
        return frozenset({*used, *self.targets, self.measure, self.second, self.group})


@dataclass
class Reading:
    """What each word of a question is taken for, over one table."""

    table: Table
    words: list[Word]
    operators: Operators
    taken: list[str]
    """Per word: what it is taken for, "" if nothing yet."""
    foreign: frozenset[str] = frozenset()
    """The words of other tables' names."""
    other_tables: frozenset[str] = frozenset()
    """Other tables that are called by one word, in the singular."""
    elsewhere: frozenset[str] = frozenset()
    """The words of columns that only other tables have."""
    columns: list[Mention] = field(default_factory=list)
    values: list[Mention] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    score: float = 0.0
    guesses: list[Guess] = field(default_factory=list)
    entities: set[str] = field(default_factory=set)
    reversed: set[int] = field(default_factory=set)
    """Words that name a flag and deny it: "unresolved"."""
    dropped: set[int] = field(default_factory=set)
    """Comparisons with what is no number: they are no names."""
    unlinked: bool = False
    """Whether the table itself is denied: "customers without orders"."""

    def guess(self, kind: str, at: int = -1, name: str = "") -> None:
        """Note that a word was taken for something without proof."""
        word = self.words[at].fold if 0 <= at < len(self.words) else ""
        self.guesses.append(Guess(kind, word, name))

    def take(self, start: int, end: int, kind: str) -> None:
        """Mark words as accounted for."""
        self.taken[start:end] = [kind] * (end - start)

    def is_free(self, start: int, end: int) -> bool:
        """Whether none of the words is taken."""
        return not any(self.taken[start:end])

    def find(self, kind: str, least: int = 1) -> list[Mention]:
        """Find the operators of a kind, of so many words, among the free ones, and take them."""
        found = [one for one in self.operators.find(kind, self.words) if self.is_free(*one[:2])]
        found = [one for one in found if one[1] - one[0] >= least]
        for start, end, _ in found:
            self.take(start, end, kind)
        return found


def find_columns(reading: Reading) -> None:
    """Find whole names of columns, the longest first, then single words that one column has."""
    names = sorted(reading.table.columns.values(), key=lambda column: -len(column.words))
    for column in names:
        for start in range(len(reading.words) - len(column.words) + 1):
            _try_column(reading, column, start)
    for at, word in enumerate(reading.words):
        if (word.fold,) in reading.operators.phrases["negations"]:
            continue  # "no" is no number: "order no"
        if reading.operators.phrases["superlatives"].get((word.fold,)) in _TIMELY:
            continue  # "serviced last" asks for the last of `last service`
        if reading.is_free(at, at + 1) and word.fold not in reading.operators.fillers:
            if not _extend_name(reading, at):
                _try_word(reading, at, names)


def _extend_name(reading: Reading, at: int) -> bool:
    """Take "number" or "code" behind a column that holds such: "phone number" for `phone`."""
    if reading.words[at].fold not in load_vocabulary().identifiers:
        return False
    for place, (start, end, name) in enumerate(reading.columns):
        if end == at and reading.table.columns[name].has_digits:
            reading.take(at, at + 1, "column")
            reading.columns[place] = (start, at + 1, name)
            return True
    return False


def _try_word(reading: Reading, at: int, names: Sequence[Column]) -> None:
    """Take a word for the only column that has it in its name."""
    word = reading.words[at]
    having = [one for one in names if any(is_same_word(word.fold, w) for w in one.words)]
    if at == 1 and reading.words[0].fold == "who":  # "baked": the baker, not `baked_on`
        having = [one for one in having if not _tells_time(one)] or having
    exact = [one for one in having if {word.fold, word.stem} & set(one.words)]
    if not exact and is_value(reading, word):
        return  # "open" of a status, not of "opened"
    if _is_table(reading, word):
        return  # "orders" are the rows, not their `order_date`
    having = _prefer_said(reading, at, _prefer_own(reading, exact or having))
    having = [one for one in having if not _is_own_id(reading, one, word)]
    if reading.words[0].fold == "what" and not (exact and _may_ask_time(reading, at)):
        having = [one for one in having if not _tells_time(one)]
    if len(having) == 1 and not word.fold[:1].isdigit():
        note_column(reading, at, at + 1, having[0].name)
        if _stands_for_rows(reading, having[0]) and word.fold not in load_vocabulary().identifiers:
            reading.entities.add(having[0].name)
    elif not having and not _try_people(reading, at):
        _try_denied_flag(reading, at)


def _stands_for_rows(reading: Reading, column: Column) -> bool:
    """Whether the values of a column are keys, by its name or since it links by codes: `led_by`."""
    links = {one.link for one in reading.table.partners if one.label}
    return column.names_rows or (column.holds_codes and column.name in links)


def _tells_time(column: Column) -> bool:
    return column.type == "date" or column.has_years


def _may_ask_time(reading: Reading, at: int) -> bool:
    """Whether "what" may ask for times by a word: "made of" does not ask for the year made."""
    is_deed = is_past(reading, at) and at == len(reading.words) - 2
    return not is_deed or reading.words[-1].fold not in reading.operators.fillers


def is_past(reading: Reading, at: int) -> bool:
    """Whether a word has the form of a past or a participle."""
    fold = reading.words[at].fold
    return fold.endswith("ed") or fold in reading.operators.irregular


def _is_table(reading: Reading, word: Word) -> bool:
    """Whether a word is the plural of the table's name."""
    own = {strip_plural(one) for one in reading.table.own_words}
    return word.fold != word.stem and word.stem in own


def _is_own_id(reading: Reading, column: Column, word: Word) -> bool:
    """Whether a word is the table's name and a column only its rows' number: orders, `order_no`."""
    rest = [own for own in column.words if not is_same_word(word.fold, own)]
    is_id = bool(rest) and load_vocabulary().identifiers.issuperset(rest)
    return is_id and any(is_same_word(word.fold, own) for own in reading.table.own_words)


def _try_people(reading: Reading, at: int) -> bool:
    """Take "people" for the only column that counts them: a population."""
    if not is_people(reading.words[at].fold):
        return False
    columns = reading.table.columns.values()
    having = [one for one in columns if one.is_quantity and any(map(is_people, one.words))]
    if len(having) == 1:
        note_column(reading, at, at + 1, having[0].name)
    return len(having) == 1


def is_value(reading: Reading, word: Word) -> bool:
    """Whether a word is just what a cell of a text says."""
    texts = [one for one in reading.table.columns.values() if one.type == "text"]
    known = word.fold not in reading.operators.fillers and len(word.fold) >= _MIN_VALUE
    return known and any(word.fold in one.rows_by_value for one in texts)


def _prefer_own(reading: Reading, having: list[Column]) -> list[Column]:
    """Return the columns a word may mean, without those that a linked table brought, if any is."""
    brought = {name for one in reading.table.partners for name in one.columns}
    return [one for one in having if one.name not in brought] or having


def _prefer_said(reading: Reading, at: int, having: list[Column]) -> list[Column]:
    """Return those of several columns of which the question says more: "goals … at home"."""
    if len(having) < 2:
        return having
    others = [word.fold for place, word in enumerate(reading.words) if place != at]
    said = {
        one.name: sum(any(is_same_word(word, own) for word in others) for own in one.words)
        for one in having
    }
    most = max(said.values())
    return [one for one in having if said[one.name] == most] if most else having


def _try_denied_flag(reading: Reading, at: int) -> None:
    """Take "unresolved" for a column of yes and no that is called "resolved"."""
    fold = reading.words[at].fold
    for prefix in reading.operators.denying:
        rest = fold.removeprefix(prefix)
        flags = [one for one in reading.table.columns.values() if one.truths is not None]
        having = [one for one in flags if any(is_same_word(rest, w) for w in one.words)]
        if rest != fold and len(having) == 1:
            note_column(reading, at, at + 1, having[0].name)
            reading.reversed.add(at)
            return


def _try_column(reading: Reading, column: Column, start: int) -> None:
    end = start + len(column.words)
    if not column.words or not reading.is_free(start, end):
        return
    pairs = zip(reading.words[start:end], column.words, strict=True)
    if all(is_same_word(word.fold, own) for word, own in pairs):
        if end - start == 1 and _is_anothers(reading, column, reading.words[start]):
            return  # "delay" of "delay minutes", not of "delayed"; "open" of a status
        note_column(reading, start, end, column.name)


def _is_anothers(reading: Reading, column: Column, word: Word) -> bool:
    """Whether a word is just as written in another column's name or a cell, not in this name."""
    forms = {word.fold, word.stem}
    if forms & set(column.words):
        return False
    having = [one for one in reading.table.columns.values() if forms & set(one.words)]
    return bool(having) or is_value(reading, word)


def is_measure(reading: Reading, at: int) -> bool:
    """Whether a word is just as a column of quantities is called: "how many hours" is their sum.

    What is counted is called in the plural, so "prices" is no measure where a column is "price".
    """
    word = reading.words[at].fold
    named = [
        reading.table.columns[name] for start, end, name in reading.columns if start <= at < end
    ]
    if any("year" in one.words for one in named):
        return False
    amounts = [one for one in named if one.is_quantity and not one.is_rank]
    concepts = reading.operators.concepts_of
    return any(
        word in one.words
        or (is_people(word) and any(map(is_people, one.words)))
        or any(concepts(word) & concepts(own) for own in one.words)
        for one in amounts
    )


def note_column(reading: Reading, start: int, end: int, name: str) -> None:
    """Take words for a column."""
    reading.take(start, end, "column")
    reading.columns.append((start, end, name))
    reading.score += _COLUMN_WEIGHT * (end - start)


def nearest_column(reading: Reading, start: int, end: int, types: Sequence[str]) -> Mention | None:
    """Return the mention of a column nearest to some words: behind them first, then before."""
    fitting = [one for one in reading.columns if reading.table.columns[one[2]].type in types]
    return nearest_of(fitting, start, end)


def nearest_of(fitting: Sequence[Mention], start: int, end: int) -> Mention | None:
    """Return the mention nearest to some words: behind them first, then before."""
    behind = sorted(one for one in fitting if 0 <= one[0] - end <= 1)
    before = sorted((one for one in fitting if one[1] <= start), reverse=True)
    return next(iter([*behind, *before, *fitting]), None)


def consume(reading: Reading, mention: Mention) -> None:
    """Take a mention of a column as part of a condition: it is not what is asked for."""
    if mention in reading.columns:
        reading.columns.remove(mention)


def find_named_before(words: Sequence[Word], start: int, columns: Sequence[Column]) -> list[Column]:
    """Return those of a value's columns that the word before it names: "to Oslo" is `to.city`.

    Nothing if the word names none of them, or all.
    """
    before = next(
        (word.fold for word in reversed(words[:start]) if word.fold not in BEFORE_ROLE), ""
    )
    found = [one for one in columns if before in split_column(one.name)]
    return found if len(found) < len(columns) else []
