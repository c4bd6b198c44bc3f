"""Reads a question as a query over one table: its words are columns, values, operators or fillers.

A table answers only if every word of the question is accounted for. Nothing is known about any
table in advance: columns are found by their names, filters by the values in the cells.
"""

from collections.abc import Sequence

from clew.agents.rules.table_words import (
    Word,
    fold_text,
    is_same_word,
    load_operators,
    split_question,
    strip_plural,
)
from clew.agents.tables.asks import find_ask
from clew.agents.tables.conditions import (
    add_comparisons,
    add_demonyms,
    add_derived_values,
    add_flags,
    add_kind,
    add_numbers,
    add_parts_of_values,
    add_text_filters,
    add_values,
    literal_type,
)
from clew.agents.tables.load import Table
from clew.agents.tables.meanings import Senses, shares_concept
from clew.agents.tables.plan import Sought, make_query
from clew.agents.tables.reading import (
    Mention,
    Query,
    Reading,
    find_columns,
    to_extreme,
)
from clew.agents.tables.senses import (
    find_choice,
    find_comparatives,
    find_implied,
    find_meant_values,
    find_measured,
    find_superlatives,
)
from clew.agents.tables.spaced import write_spaced_in_english
from clew.agents.tables.time_conditions import add_months, add_periods
from clew.agents.tables.unspaced import write_unspaced_in_english
from clew.agents.tables.verbs import (
    adds_up_deeds,
    is_predicate,
    is_unexplained,
    may_be_verb,
    stands_as_verb,
    tells_maker,
)
from clew.ingest.readers.tables import split_column

_HEADS = {"count": "counted"}
_NOUN_WEIGHT = 1.0
_MIN_TABLE = 4  # letters of a table's name that is no pronoun: "us"
_AMOUNTS = ("most", "fewest", "least")
_OF_NUMBER = {"max": "most", "min": "fewest", "least": "fewest"}


def parse_question(
    question: str,
    tables: Sequence[Table],
    senses: Senses | None = None,
    known: Sequence[Table] = (),
) -> list[Query]:
    """Return the readings of a question over the tables that can answer it, the best first.

    With `senses`, words that nothing else accounts for may stand for the columns they mean. What
    other tables that are `known` are called, none of these rows is.
    """
    english = write_spaced_in_english(write_unspaced_in_english(question, tables), tables)
    words = split_question(english)
    named = {table.name: table.words for table in (*known, *tables)}
    found = []
    for table in tables:
        others = frozenset().union(*(some for name, some in named.items() if name != table.name))
        reading = Reading(table, words, load_operators(), [""] * len(words), others - table.words)
        reading.elsewhere = _list_foreign_columns(table, known)
        reading.other_tables = _list_other_tables(table, known)
        query = _read(reading, senses or {})
        found += [query] if query is not None else []
    return sorted(found, key=lambda query: -query.score)


def _list_foreign_columns(table: Table, known: Sequence[Table]) -> frozenset[str]:
    """Return the words of columns that other tables have and this has not."""
    own = {word for one in table.columns.values() for word in one.words}
    others = [one for one in known if one.name != table.name]
    return frozenset(w for one in others for c in one.columns.values() for w in c.words) - own


def _list_other_tables(table: Table, known: Sequence[Table]) -> frozenset[str]:
    """Return what other tables than this and its partners are called, if by one word."""
    names = {strip_plural(fold_text(one.stem)) for one in known if one.name != table.name}
    own = {strip_plural(word) for word in table.words}
    return frozenset(name for name in names - own if len(name) >= _MIN_TABLE)


def _read(reading: Reading, senses: Senses) -> Query | None:
    ask = find_ask(reading)
    if ask is None:
        return None
    add_values(reading, 2)  # "Town 7" before the column "town"
    _take_table_name(reading)
    phrases = reading.find("aggregates", least=2)  # "in total" before the column "total"
    find_columns(reading)
    add_periods(reading)
    orders, group = reading.find("orders"), _find_group(reading)
    comparisons, texts = reading.find("comparisons"), reading.find("texts")
    aggregates, distinct = phrases + reading.find("aggregates"), reading.find("distinct")
    shares, pairs = _find_shares(reading), reading.find("pairs")
    reading.find("placements")  # they are accounted for
    negations = _find_negations(reading)
    limits = _find_limits(reading)
    find_measured(reading, senses, ask)
    comparisons = [one for one in comparisons if reading.taken[one[0]] == "comparisons"]
    best = find_superlatives(reading, senses, ask[1])
    rank, count = _find_rank(reading, best), _count_best(reading, best, ask[1])
    best, negations = _turn_absence(reading, best, negations)
    find_implied(reading, senses, ask[2], any(one[2] == "sum" for one in aggregates))
    add_comparisons(reading, comparisons + find_comparatives(reading, senses), senses)
    _add_conditions(reading, texts)
    best = best or find_choice(reading, senses) or [one[:3] for one in limits]
    if not add_flags(reading, negations, bool(best or aggregates)):
        return None
    head = _find_head(reading, ask)
    find_meant_values(reading, senses, head)
    if not senses and _may_mean_column(reading, head):
        return None
    if not _account_for_rest(reading, head, ask[2], bool(best or aggregates)):
        return None
    limit = len(reading.table) if orders else limits[0][3] if limits else count
    much = "much" in [word.fold for word in reading.words[ask[0] : ask[1]]]
    total = much and not best and adds_up_deeds(reading, ask[1])
    sought = Sought(
        "share" if shares else "distinct" if distinct else "much" if much else ask[2],
        aggregates[0][2] if aggregates else "sum" if total else "",
        _name_best(reading, orders or best, bool(pairs)),
        group,
        pairs[0][2] if pairs else "",
        rank,
        limit,
        _precedes_rows(reading, best),
        _is_bare(reading, best),
    )
    return make_query(reading, sought, head)


def _take_table_name(reading: Reading) -> None:
    """Take a table's whole name of several words: "vet visits" are no vets."""
    own = split_column(reading.table.stem)
    for start in range(len(reading.words) - len(own) + 1) if len(own) > 1 else ():
        some = reading.words[start : start + len(own)]
        if reading.is_free(start, start + len(own)) and all(
            is_same_word(word.fold, name) for word, name in zip(some, own, strict=True)
        ):
            reading.take(start, start + len(own), "table")
            reading.score += _NOUN_WEIGHT * len(own)


def _add_conditions(reading: Reading, texts: list[Mention]) -> None:
    """Read what texts, values, months and numbers say of the rows."""
    add_text_filters(reading, texts)
    add_values(reading)
    add_demonyms(reading)
    add_parts_of_values(reading)
    add_months(reading)
    add_numbers(reading)
    add_derived_values(reading)


def _turn_absence(
    reading: Reading, best: list[Mention], negations: list[Mention]
) -> tuple[list[Mention], list[Mention]]:
    """Read "longest without service" as the first of the times of service."""
    columns = reading.table.columns
    for one in best:
        without = next((no for no in negations if no[0] == one[1]), None)
        if without is None or one[2] not in ("max", "most"):
            continue
        named = [name for start, _, name in reading.columns if start >= without[1]]
        if named and columns[named[0]].type == "date":
            return [(*one[:2], "first")], [no for no in negations if no is not without]
    return best, negations


def _name_best(reading: Reading, best: Sequence[Mention], is_pair: bool) -> str:
    """Return what a superlative asks for, or ""; "the largest number of" asks for the most."""
    if len({meaning for _, _, meaning in best}) > 1:
        return "range" if is_pair else "?"  # "the highest and the lowest": no single answer
    for _, end, meaning in best[:1]:
        behind = [word.fold for word in reading.words[end : end + 2]]
        if behind and reading.operators.measured_by(behind[0]):
            return to_extreme(meaning, None)  # "the most expensive" adds nothing up
        return _OF_NUMBER.get(meaning, meaning) if behind == ["number", "of"] else meaning
    return ""


def _precedes_rows(reading: Reading, best: Sequence[Mention]) -> bool:
    """Whether a superlative stands before what the rows are called: "the most expensive plant".

    "The price of the cheapest plant" names what is measured, and asks for that.
    """
    for start, end, _ in best[:1]:
        while end < len(reading.words) and (
            reading.taken[end] in ("superlatives", "value", "flag")
            or reading.operators.measured_by(reading.words[end].fold)
        ):
            end += 1
        columns = reading.table.columns
        named = [at for at, _, name in reading.columns if columns[name].is_quantity]
        is_named = any(not start <= at < end for at in named)
        is_rows = reading.taken[end : end + 1] == ["table"] or _ends_in_kind(reading, end)
        return is_rows and not is_named
    return False


def _ends_in_kind(reading: Reading, end: int) -> bool:
    """Whether the words before are a kind that rows are of: "the most expensive nightshade"."""
    columns, words = reading.table.columns, reading.words
    kinds = [name for _, behind, name in reading.values if behind == end]
    is_shared = any(not columns[name].is_nearly_key for name in kinds)
    is_last = end == len(words) or words[end].fold in reading.operators.fillers
    return is_shared and is_last and not any(one.is_reading for one in columns.values())


def _is_bare(reading: Reading, best: Sequence[Mention]) -> bool:
    """Whether nothing behind "the most" says of what: "gave the most", "the most in total"."""
    for _, end, meaning in best[:1]:
        behind = reading.words[end : end + 1]
        is_last = not behind or behind[0].fold in reading.operators.fillers
        return meaning in _AMOUNTS and (is_last or reading.taken[end] == "aggregates")
    return False


def _find_group(reading: Reading) -> str:
    """Return the column after "per" or "for each", which is then no other part of the question."""
    operators, columns = reading.operators, reading.table.columns
    ranked = [
        *operators.find("superlatives", reading.words),
        *operators.find("limits", reading.words),
    ]
    for start, end, _ in reading.find("groupings"):
        mention = next((one for one in reading.columns if one[0] == end), None)
        if mention is not None and ranked and columns[mention[2]].type in ("number", "date"):
            continue  # "the largest by revenue": what is measured
        if mention is not None and not tells_maker(reading, start, mention):
            reading.columns.remove(mention)
            return mention[2]
        reading.take(start, end, "")
    return ""


def _find_shares(reading: Reading) -> list[Mention]:
    """Find "percentage of"; behind a number it is a unit: "less than 20 percent battery"."""
    found = reading.find("shares")
    units = [one for one in found if one[0] and literal_type(reading.words[one[0] - 1].fold)]
    return [one for one in found if one not in units]


def _find_negations(reading: Reading) -> list[Mention]:
    """Find "not"; "out of" denies only what a column is called: "out of stock", not "the oven"."""
    found = reading.find("negations")
    leaving = [one for one in found if reading.words[one[0]].fold == "out"]
    return [one for one in found if one not in leaving or reading.taken[one[1] :][:1] == ["column"]]


def _find_limits(reading: Reading) -> list[tuple[int, int, str, int]]:
    """Find "top 3": where it stands, what is best, how many."""
    found = []
    for start, end, meaning in reading.find("limits"):
        count = _read_count(reading, end)
        if count:
            reading.take(end, end + 1, "limits")
            found.append((start, end + 1, meaning, count))
        else:
            reading.take(start, end, "")
    return found


def _count_best(reading: Reading, best: Sequence[Mention], asked: int) -> int:
    """Return the number before a superlative or what is asked for, "which two"; 1 for none."""
    places = [best[0][0] - 1, asked] if best else []
    for at in places:
        count = _read_count(reading, at) if at >= 0 else 0
        if count and reading.is_free(at, at + 1):
            reading.take(at, at + 1, "limits")
            return count
    return 1


def _read_count(reading: Reading, at: int) -> int:
    if at >= len(reading.words):
        return 0
    word = reading.words[at].fold
    word = reading.operators.phrases["numbers"].get((word,), word)
    return int(word) if word.isdigit() else 0


def _find_rank(reading: Reading, best: Sequence[Mention]) -> int:
    """Return which of the best is asked for: 2 for "second largest"."""
    for start, end, meaning in reading.find("ordinals"):
        if any(one[0] == end for one in best):
            return int(meaning)
        reading.take(start, end, "")
    return 1


def _find_head(reading: Reading, ask: Mention) -> int:
    """Return the noun that the question asks for ("which car", "how many different states")."""
    at = ask[1]
    skipped = ("distinct", "aggregates", "superlatives", "shares", "limits", "ordinals", "flag")
    while at < len(reading.words) and (
        reading.taken[at] in skipped
        or (not reading.taken[at] and reading.words[at].fold in ("the", "of", "all"))
    ):
        at += 1
    at = _pass_adjectives(reading, at)
    return at if at < len(reading.words) and ask[2] in ("count", "rows") else -1


def _pass_adjectives(reading: Reading, at: int) -> int:
    """Return the noun behind values that say which of it: "high priority tickets"."""
    behind, live = at, {place for start, end, _ in reading.columns for place in range(start, end)}
    while behind < len(reading.words) and (
        reading.taken[behind] == "value"
        or (reading.taken[behind] == "column" and behind not in live)
    ):
        behind += 1
    if behind == at or behind >= len(reading.words) or reading.taken[at] != "value":
        return at
    word = reading.words[behind]
    is_own = any(is_same_word(word.fold, own) for own in reading.table.words)
    is_plural = word.stem != word.fold and word.fold not in reading.operators.fillers
    is_noun = reading.taken[behind] == "column" or not reading.taken[behind]
    return behind if is_noun and (is_own or is_plural) else at


def _account_for_rest(reading: Reading, head: int, asks: str, measured: bool) -> bool:
    """Whether every word is accounted for: names of the table, the head noun, fillers."""
    for at, word in enumerate(reading.words):
        if reading.taken[at] or _take_known(reading, at):
            continue
        if _is_unknown(reading, at):
            return False
        if _names_table(reading, word):
            reading.take(at, at + 1, "table")
            reading.guess("table", at)
        elif at == head and asks == "count" and add_kind(reading, at):
            reading.take(at, at + 1, "kind")
        elif (at == head and not literal_type(word.fold)) or _is_compound(reading, at):
            reading.take(at, at + 1, "noun")
            kind = _name_guess(reading, at) if at != head else f"{_HEADS.get(asks, 'asked')} noun"
            reading.guess(kind, at)
            if any(is_same_word(word.fold, one) for one in reading.elsewhere):
                reading.guess("noun", at)  # another table knows what that is
        elif stands_as_verb(reading, at, head, asks) or may_be_verb(reading, at, head, measured):
            bare = not reading.filters and not measured
            is_state = is_predicate(reading, at) or is_unexplained(reading, at)
            if word.fold in reading.elsewhere:
                return False  # a column of another table is called so
            reading.guess("state" if is_state else "bare verb" if bare else "verb", at)
            reading.take(at, at + 1, "verb")
        else:
            return False
    return _names_what_is_asked(reading, head, asks)


def _take_known(reading: Reading, at: int) -> bool:
    """Take a word of the table's name, one without meaning, or one that belongs to a verb."""
    word = reading.words[at]
    if _is_of_table(reading, word):
        reading.take(at, at + 1, "table")
        reading.score += _NOUN_WEIGHT
    elif word.fold in reading.operators.fillers and word.stem not in reading.other_tables:
        reading.take(at, at + 1, "filler")  # "records" are rows, unless a table is called so
    elif any(word.stem in reading.table.columns[one.column].words for one in reading.filters):
        reading.take(at, at + 1, "column")  # "a telescope made by": `telescope.maker`, by its value
    elif at in reading.dropped and reading.taken[at - 1] == "verb":
        reading.take(at, at + 1, "verb")  # "looks after"
    else:
        return False
    return True


def _name_guess(reading: Reading, at: int) -> str:
    """Return whether a word that nothing knows says which of a kind is meant: "grand piano"."""
    behind = reading.words[at + 1 : at + 2]
    is_kind = reading.taken[at + 1 : at + 2] == ["value"] and behind[0].text.islower()
    return "modifier" if is_kind else "noun"


def _is_of_table(reading: Reading, word: Word) -> bool:
    """Whether a word is of the table's name, and not just as another table's is written."""
    own = {strip_plural(one) for one in reading.table.words}
    others = {strip_plural(one) for one in reading.foreign}
    if word.stem in others - own:
        return False  # "observations" are not of an observatory's telescopes
    return any(is_same_word(word.fold, one) for one in own)


def _is_unknown(reading: Reading, at: int) -> bool:
    """Whether a word says what no reading of this table does: a name that no cell has, what another
    table holds, or "older", which is no part of the name behind it.
    """
    word = reading.words[at]
    if word.text[:1].isupper() or any(is_same_word(word.fold, one) for one in reading.foreign):
        return True
    return at in reading.dropped or (word.fold,) in reading.operators.phrases["degrees"]


def _may_mean_column(reading: Reading, head: int) -> bool:
    """Whether the noun asked for is free and means a column: "items" a quantity."""
    if head < 0 or not reading.is_free(head, head + 1):
        return False
    word, columns = reading.words[head].fold, reading.table.columns.values()
    if any(is_same_word(word, own) for own in reading.table.words):
        return False
    return any(shares_concept(word, own) for one in columns for own in one.words)


def _names_table(reading: Reading, word: Word) -> bool:
    """Whether a word names the same thing as the table: "sold" of orders."""
    return any(shares_concept(word.fold, own) for own in reading.table.own_words)


def _names_what_is_asked(reading: Reading, head: int, asks: str) -> bool:
    """Whether the words that are known say what is asked for."""
    if reading.unlinked or (asks == "count" and {"table", "kind"} & set(reading.taken)):
        return True
    if asks == "count" and head >= 0 and reading.taken[head] == "value":
        return _is_kind_of_rows(reading, head)
    return bool(reading.filters or reading.columns) and _is_grounded(reading, head, asks)


def _is_kind_of_rows(reading: Reading, head: int) -> bool:
    """Whether rows share a value that is counted: "laptops"; "how many symbols" counts no rows."""
    columns = reading.table.columns
    named = [one for one in reading.values if one[0] <= head < one[1]]
    word, names = reading.words[max(one[1] for one in named) - 1], [one[2] for one in named]
    shared = [name for name in names if not columns[name].is_nearly_key]
    return bool(shared) and word.text.islower() and word.stem != word.fold


def _is_grounded(reading: Reading, head: int, asks: str) -> bool:
    """Whether the noun asked for is the table's, a column, or vouched for by a column's name."""
    if head < 0 or reading.taken[head] != "noun" or {"column", "flag"} & set(reading.taken):
        return True
    # "Which currency has the code JPY?": a value that one row alone has.
    columns = reading.table.columns
    exact = [one for one in reading.filters if one.how == "=" and columns[one.column].is_key]
    return bool(exact) and asks == "rows" and "noun" in reading.taken[head + 1 :]


def _is_compound(reading: Reading, at: int) -> bool:
    """Whether a word is joined to a column or a value: "numeric code", "the code JPY"."""
    words, taken = reading.words, reading.taken
    if literal_type(words[at].fold):
        return False  # a number that no column has is not part of a name
    behind = [*taken[at + 1 : at + 3], "", ""]
    if behind[0] == "value":
        return True
    if at + 1 < len(words) and words[at + 1].fold == "of" and behind[1] == "column":
        return True  # "the price of gas"
    if not at or taken[at - 1] != "column":
        return False
    if any(one.name and one.word == words[at - 1].fold for one in reading.guesses):
        return False  # "annual budget": what only "annual" is close to is no budget
    # "which source generated …" is a verb, "which numeric code does …" a name.
    is_asked = any(start <= _first_noun(reading) < end == at for start, end, _ in reading.columns)
    following = words[at + 1].fold if at + 1 < len(words) else ""
    return not is_asked or following in reading.operators.auxiliaries


def _first_noun(reading: Reading) -> int:
    """Return the first word that is a column: what a question begins with."""
    return reading.taken.index("column") if reading.taken[:3].count("column") else -1
