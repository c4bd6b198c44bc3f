"""Finds columns by meaning where a question's words are not theirs: "earns" for a salary.

Only words that nothing else accounts for are compared, and a column is taken only if it is close
and clearly closer than the others, so that what a table does not hold stays unanswered.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from clew.agents.rules.table_words import Word, is_same_word
from clew.agents.tables.load import Table
from clew.agents.tables.meanings import (
    PLACE,
    PRICE,
    SAME_CONCEPT,
    Senses,
    find_measured_phrase,
    join_last,
    list_kind_columns,
    list_kinds,
    tells_names,
)
from clew.agents.tables.reading import (
    BEFORE_ROLE,
    Filter,
    Mention,
    Reading,
    note_column,
    to_extreme,
)
from clew.agents.tables.values import load_vocabulary
from clew.agents.tables.verbs import find_time

_TIMELESS = ("number", "text", "flag")
_ALL = (*_TIMELESS, "date")
_TYPES_ASKED = {"what": _TIMELESS, "where": ("text",)}
_MEASURED = ("number", "date")
_LEAST = 0.5  # cosine of a word with the name of a column that it may mean
_LEAST_OF_ROLE = 0.45  # of "repaired" with a column of names: behind "who" few can be meant
_LEAST_OF_DEGREE = 0.35  # of "tallest" with one that can be measured: few columns can
_LEAST_OF_UNIT = 0.2  # … with one in a unit that it measures, of several
_LEAST_OF_KIND = 0.6  # of a word with a value that rows share, or with the name of the table
_LEAST_OF_SORT = 0.55  # of a word with one of the values that it is the kind of
_LEAST_OF_PRICE = 0.4  # of "price" with a column of money
_LEAST_OF_PLACE = 0.35  # of "city" with a column of places
_LEAD = 0.1  # over the next one
_SIGNS = {"max": ">", "min": "<"}


def find_meant_values(reading: Reading, senses: Senses, head: int) -> None:
    """Filter by what free words mean: "notebooks" for laptop; and take the noun for the table."""
    for at, word in enumerate(reading.words):
        if word.fold not in senses or not reading.is_free(at, at + 1) or _is_known(reading, word):
            continue
        near = senses[word.fold]
        own = max((near.get(one, 0.0) for one in reading.table.own_words), default=0.0)
        others = max((near.get(one, 0.0) for one in reading.foreign), default=0.0)
        best, lead, column, value = _nearest_value(reading.table, near)
        if at == head and own >= _LEAST_OF_KIND and own > max(best, others):
            reading.take(at, at + 1, "table")
            reading.guess("table", at)
        elif at > head >= 0 and own >= _LEAST and own > max(best, others):
            reading.take(at, at + 1, "table")
            reading.guess("table", at)
        elif best >= _LEAST_OF_KIND and lead >= _LEAD and best > max(own, others):
            called = " ".join(reading.table.columns[column].words)
            if near.get(called, 0.0) >= _LEAST or _is_mere_part(word, value):
                continue  # "animals" are all species, not the dogs
            reading.filters.append(Filter(column, "=", value, at=at))
            reading.values.append((at, at + 1, column))
            reading.take(at, at + 1, "value")
            reading.guess("value", at, value)


def _is_mere_part(word: Word, value: str) -> bool:
    """Whether a value is only close to a word since it is spelled with it: "firefighter", "fire".

    How close the two are is then of the letters they share, and says nothing of what is meant.
    """
    return word.stem in value and not is_same_word(word.fold, value)


def _nearest_value(table: Table, near: Mapping[str, float]) -> tuple[float, float, str, str]:
    """Return how near the nearest value is that rows share, by how much, its column, and itself."""
    found = [
        (near.get(value, 0.0), column.name, value)
        for column in list_kind_columns(table)
        for value in column.rows_by_value
    ]
    first, second = (sorted(found, reverse=True) + [(0.0, "", "")] * 2)[:2]
    return first[0], first[0] - second[0], first[1], first[2]


def _find_meant_columns(reading: Reading, senses: Senses) -> None:
    """Take free words for the columns they mean."""
    for at, word in enumerate(reading.words):
        if word.fold in senses and reading.is_free(at, at + 1) and not _is_known(reading, word):
            types = _TYPES_ASKED.get(reading.words[0].fold, _ALL)
            near = _compare_verb(reading, senses, at)
            name = _choose(reading, near, types, _LEAST)
            if _stands_for_role(reading, at):
                name = _choose_role(reading, near)
            if word.fold == "old":
                name = _find_ages(reading)
            if name and not _may_name(reading, at, name):
                continue
            if name and any(
                _is_mere_part(word, v) for v in list_kinds(reading.table.columns[name])
            ):
                continue  # "sheep" of "grey sheep" is narrower than the column
            if name and _is_kind_of(reading, senses[word.fold], name):
                reading.take(at, at + 1, "table")
                reading.guess("thing", at, name)
                continue
            if name and _means_value(reading, senses[word.fold], name):
                continue  # "surgeons" are those of Surgery, no specialties
            if name and not _tells_another_event(reading, word, name):
                note_column(reading, at, at + 1, name)
                is_text = reading.table.columns[name].type == "text"
                thing = "role" if reading.words[0].fold == "who" else "thing"
                reading.guess(thing if is_text else "measure", at, name)
                reading.entities |= {name} if reading.table.columns[name].is_id else set()


def _compare_verb(reading: Reading, senses: Senses, at: int) -> Mapping[str, float]:
    """Return the cosines of a word, with the preposition behind it that ends the question."""
    ends = at == len(reading.words) - 2 and reading.words[-1].fold in reading.operators.fillers
    both = senses.get(join_last(reading.words), {}) if ends else {}
    times = [one for one in reading.table.columns.values() if one.has_years]
    return (
        {**both, **{" ".join(one.words): 0.0 for one in times}}
        if both
        else senses[reading.words[at].fold]
    )


def _stands_for_role(reading: Reading, at: int) -> bool:
    """Whether a word stands behind "who": "who painted", "who is the author"."""
    between = {word.fold for word in reading.words[1:at]}
    return reading.words[0].fold == "who" and between <= BEFORE_ROLE


def _choose_role(reading: Reading, near: Mapping[str, float]) -> str:
    """Return the column that a word behind "who" means: of names, or what is measured of them.

    Values that begin in lower case name nobody, however close their column is: a material.
    """
    columns = reading.table.columns
    nobody = {n for n, one in columns.items() if one.type == "text" and not tells_names(one)}
    near = {**near, **{" ".join(columns[name].words): 0.0 for name in nobody}}
    name = _choose(reading, near, _ALL, _LEAST_OF_ROLE)
    if name and columns[name].type != "text":
        return _choose(reading, near, _ALL, _LEAST)
    return name


def _is_kind_of(reading: Reading, near: Mapping[str, float], name: str) -> bool:
    """Whether a word is what all values of a column are: "animals", where rows are cat and dog."""
    column = reading.table.columns[name]
    closest = max((near.get(value, 0.0) for value in column.rows_by_value), default=0.0)
    return column.tells_kinds and not column.is_nearly_key and closest >= _LEAST_OF_SORT


def _may_name(reading: Reading, at: int, name: str) -> bool:
    """Whether a word stands where a column of texts may be asked for: "who wrote", "which job".

    Elsewhere it says which rows are meant, by a value that no cell has: "who teaches the flute".
    """
    if reading.table.columns[name].type != "text" or reading.words[0].fold == "what":
        return True
    known = ("asks", "distinct", "superlatives", "value", "limits")
    said = [
        word.fold
        for place, word in enumerate(reading.words[:at])
        if reading.taken[place] not in known
    ]
    return BEFORE_ROLE.issuperset(said)


def _means_value(reading: Reading, near: Mapping[str, float], column: str) -> bool:
    """Whether a word is clearly closer to a value that rows share than to a column."""
    best, lead, _, _ = _nearest_value(reading.table, near)
    own = near.get(" ".join(reading.table.columns[column].words), 0.0)
    return best >= max(_LEAST_OF_KIND, own + _LEAD) and lead >= _LEAD


def _tells_another_event(reading: Reading, word: Word, name: str) -> bool:
    """Whether a word and a column are of different events, though close: "sold", "purchased"."""
    events = reading.operators.phrases["events"]
    own = {events[(one,)] for one in reading.table.columns[name].words if (one,) in events}
    return bool(own) and events.get((word.fold,), "") not in {"", *own}


def _is_known(reading: Reading, word: Word) -> bool:
    """Whether a word names the table or another one, is a value, or says how much."""
    if any(is_same_word(word.fold, own) for own in (*reading.table.words, *reading.foreign)):
        return True
    if reading.operators.degree_of(word.fold, "est") or reading.operators.degree_of(word.fold):
        return True
    return any(word.fold in one.rows_by_value for one in reading.table.columns.values())


def find_superlatives(reading: Reading, senses: Senses, after: int) -> list[Mention]:
    """Find "most" and "cheapest", columns that words mean, and what is measured if none names it.

    `after` is the end of the words that ask: a noun just behind them may end in "est" too.
    """
    found = reading.find("superlatives")
    _find_meant_columns(reading, senses)
    for at, word in enumerate(reading.words):
        degree = reading.operators.degree_of(word.fold, "est")
        if at > after and degree and reading.is_free(at, at + 1):
            if _add_measure(reading, senses, at):
                reading.take(at, at + 1, "superlatives")
                found.append((at, at + 1, degree))
    if not _has_measure(reading) or _asks_age(reading, found):
        for start, end, meaning in found:
            if end - start > 1 and meaning in ("first", "last"):
                _add_time(reading, start)
            elif end - start == 1 and not _add_adjective(reading, senses, end):
                if not _add_measure(reading, senses, start):
                    _add_deed(reading, senses, start)
    return found


def _add_deed(reading: Reading, senses: Senses, superlative: int) -> None:
    """Take the verb before "the most" for what it is the amount of: "charges" for a rate."""
    at = superlative - 1
    while at > 0 and reading.words[at].fold == "the":
        at -= 1
    word = reading.words[at]
    if at <= 0 or not reading.is_free(at, at + 1) or word.fold not in senses:
        return
    if name := _choose(reading, senses[word.fold], ("number",), _LEAST_OF_DEGREE):
        note_column(reading, at, at + 1, name)
        reading.guess("measure", at, name)


def _add_time(reading: Reading, at: int) -> None:
    """Note the times that "most recent" asks for: of what a verb says, else the only ones."""
    name = find_time(reading, "last") or find_time(reading, "newest")
    if name:
        reading.columns.append((at, at + 1, name))


def _asks_age(reading: Reading, found: Sequence[Mention]) -> bool:
    """Whether "oldest" is asked and no column of times or ages is named."""
    named = {name for _, _, name in reading.columns}
    old = any(meaning in ("old", "young") for _, _, meaning in found)
    return old and _find_ages(reading) not in named


def find_measured(reading: Reading, senses: Senses, ask: Mention) -> None:
    """Find what "how long" or "how high above sea level" measures."""
    if reading.words[ask[0]].fold != "how" or ask[1] - ask[0] != 1:
        return
    for phrase in find_measured_phrase(reading.words):
        name = _choose(reading, senses.get(phrase, {}), ("number",), _LEAST)
        end = ask[1] + len(phrase.split())
        if name and {"column", "value"}.isdisjoint(reading.taken[ask[1] : end]):
            note_column(reading, ask[1], end, name)
            reading.guess("implied", ask[1])
            return
    _add_adjective(reading, senses, ask[1])


def find_implied(reading: Reading, senses: Senses, asks: str, is_sum: bool) -> None:
    """Note the column that a question asks for without a word for it.

    "What did the horses bring in altogether" asks for money, "where does she work" for a place.
    """
    if _has_measure(reading) or (asks == "place" and reading.columns):
        return
    columns = reading.table.columns
    if asks == "value" and is_sum:
        name = _choose(reading, senses.get(PRICE, {}), ("number",), _LEAST_OF_PRICE)
    elif asks == "place":
        texts = [name for name, one in columns.items() if one.type == "text"]
        places = reading.operators.places
        texts = [name for name in texts if not places.isdisjoint(columns[name].words)]
        name = "" if texts else _find_places(reading.table, senses.get(PLACE, {}))
    else:
        return
    if name:
        reading.columns.append((len(reading.words), len(reading.words), name))
        reading.guess("implied")


def _find_places(table: Table, near: Mapping[str, float]) -> str:
    """Return the column of kinds that is closest to places, by its name and its values."""
    close = {
        one.name: max(near.get(name, 0.0) for name in (" ".join(one.words), *one.rows_by_value))
        for one in list_kind_columns(table)
    }
    first, second = (sorted(close, key=lambda name: -close[name]) + ["", ""])[:2]
    if not first or close[first] < _LEAST_OF_PLACE:
        return ""
    return first if not second or close[first] - close[second] >= _LEAD / 2 else ""


def _add_adjective(reading: Reading, senses: Senses, at: int) -> bool:
    """Take "expensive" of "most expensive" for what it measures."""
    if at >= len(reading.words) or not reading.is_free(at, at + 1):
        return False
    if not reading.operators.measured_by(reading.words[at].fold):
        return False
    if not _add_measure(reading, senses, at):
        return False
    reading.take(at, at + 1, "superlatives")
    return True


def find_comparatives(reading: Reading, senses: Senses) -> list[Mention]:
    """Find "cheaper than 70", whose column is the one that the adjective measures."""
    found = []
    for at, word in enumerate(reading.words[:-2]):
        degree = reading.operators.degree_of(word.fold)
        if not reading.words[at + 2].fold[:1].isdigit():
            continue
        if degree and reading.words[at + 1].fold == "than" and reading.is_free(at, at + 1):
            if name := _add_measure(reading, senses, at):
                reading.take(at, at + 2, "comparisons")
                extreme = to_extreme(degree, reading.table.columns[name])
                found.append((at, at + 2, _SIGNS[extreme]))
    return found


def find_choice(reading: Reading, senses: Senses) -> list[Mention]:
    """Find "more" or "cheaper" of a question that names what is compared: "…, A or B"."""
    named = Counter(one.column for one in reading.filters if one.how == "=" and not one.negated)
    if not named or max(named.values()) < 2:
        return []
    for at, word in enumerate(reading.words):
        degree = reading.operators.degree_of(word.fold)
        if not degree or not reading.is_free(at, at + 1):
            continue
        if _has_measure(reading) or _add_measure(reading, senses, at):
            reading.take(at, at + 1, "superlatives")
            return [(at, at + 1, degree)]
    return []


def _has_measure(reading: Reading) -> bool:
    """Whether a column that can be measured is mentioned."""
    columns = reading.table.columns
    named = [columns[name] for _, _, name in reading.columns]
    return any(one.is_quantity or one.type == "date" for one in named)


def _add_measure(reading: Reading, senses: Senses, at: int) -> str:
    """Note and return the column that a word of degree measures; "" if none is close."""
    name = find_measure(reading, senses, at)
    if name:
        reading.columns.append((at, at + 1, name))
    return name


def find_measure(
    reading: Reading, senses: Senses, at: int, unit: str = "", limit: float | None = None
) -> str:
    """Return the column that a word of degree measures: by a unit, its ages, or its meaning.

    Of several in a unit, the limit is compared with one whose values reach it.
    """
    word, columns = reading.words[at].fold, reading.table.columns
    kinds = {load_vocabulary().units[unit][0]} if unit else reading.operators.measured_by(word)
    fitting = [name for name, one in columns.items() if one.is_quantity and one.measures in kinds]
    if len(fitting) > 1 and limit is not None:
        fitting = [name for name in fitting if columns[name].reaches(limit)]
    if not fitting and "money" in kinds:
        concepts = reading.operators.concepts_of
        priced = [n for n, one in columns.items() if any("price" in concepts(w) for w in one.words)]
        fitting = [name for name in priced if columns[name].is_quantity]
    if len(fitting) == 1:
        return fitting[0]
    if fitting and (name := _choose_among(reading, senses.get(word, {}), fitting)):
        return name
    if _degree(reading, word) in ("old", "young"):
        return _find_ages(reading)
    if _degree(reading, word) in ("first", "last"):
        return find_time(reading, word)
    types = ("number",) if kinds else _MEASURED  # no date is deep
    return _choose(reading, senses.get(word, {}), types, _LEAST_OF_DEGREE)


def _degree(reading: Reading, word: str) -> str:
    phrases = reading.operators.phrases
    return phrases["superlatives"].get((word,), "") or phrases["degrees"].get((word,), "")


def _find_ages(reading: Reading) -> str:
    """Return the column that says how old rows are: by its name, else the only one of times."""
    columns = reading.table.columns
    known = [n for n, one in columns.items() if not reading.operators.ages.isdisjoint(one.words)]
    known = [name for name in known if columns[name].type in _MEASURED]
    times = [name for name, one in columns.items() if one.type == "date" or one.has_years]
    # The years of books say nothing about "the oldest author".
    others = [name for name in reading.entities if not columns[name].is_key]
    said = {name for _, _, name in reading.columns if columns[name].type == "text"}
    others += [name for name in said if name != reading.table.label and not columns[name].is_key]
    found = known or (times if not others else [])
    if len(found) != 1:
        return ""
    if not known and not reading.operators.times.issuperset(columns[found[0]].words):
        reading.guess("implied")
    return found[0]


def _choose(
    reading: Reading, cosines: Mapping[str, float], types: Sequence[str], least: float
) -> str:
    """Return the column of these types that is close enough and clearly the closest, or ""."""
    columns = reading.table.columns
    near = {name: cosines.get(" ".join(one.words), 0.0) for name, one in columns.items()}
    having = [name for name, one in columns.items() if one.type in types]
    near = {n: near[n] for n in having if not columns[n].is_id or near[n] == SAME_CONCEPT}
    return _find_closest(near, least)


def _choose_among(reading: Reading, cosines: Mapping[str, float], names: Sequence[str]) -> str:
    """Return the one of some columns in fitting units that is clearly the closest, or ""."""
    words = {name: " ".join(reading.table.columns[name].words) for name in names}
    return _find_closest({name: cosines.get(words[name], 0.0) for name in names}, _LEAST_OF_UNIT)


def _find_closest(near: Mapping[str, float], least: float) -> str:
    """Return what is close enough and clearly closer than all else, or ""."""
    first, second = (sorted(near, key=lambda name: -near[name]) + ["", ""])[:2]
    if not first or near[first] < least:
        return ""
    return first if not second or near[first] - near[second] >= _LEAD else ""
