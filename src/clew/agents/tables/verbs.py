"""Which word of a question may be a verb that only joins what is known, and which times it means.

A verb is guessed once per question, and only beside a column that it could be of: "published" of a
year, "hired" of a start, "works" of "remote". What else a verb could say, no column knows.
"""

from clew.agents.rules.table_words import is_same_word
from clew.agents.tables.load import Column
from clew.agents.tables.reading import BEFORE_ROLE, Mention, Reading, is_measure, is_past

_BE = ("is", "are", "was", "were", "been", "be", "got", "not", "never")
_DO = ("do", "does", "did")
_JOINING = frozenset("of the a an in on at by for from with to and or".split())
_EXCHANGED = frozenset("for from on".split())  # before what was paid for
_BEFORE_TIME = ("in", "on", "during")
_OF_TIMES = (["comparisons"], ["superlatives"], ["value"])


def may_be_verb(reading: Reading, at: int, head: int, measured: bool) -> bool:
    """Whether a word may be the verb that joins what is known: "spends", or of a linked table.

    Only one such word is guessed, and only where the columns are named that it could join.
    """
    word, before = reading.words[at], reading.words[at - 1].fold if at else ""
    if "verb" in reading.taken or not word.fold.isalpha() or before in _JOINING:
        return False
    times = _find_times_behind(reading, at)
    if times:
        return any(is_time_of(reading, one, word.fold) for one in times)
    if _joins_flag(reading, at) or _joins_sum(reading, at, head):
        return True
    table = reading.table
    said = [name for start, _, name in reading.columns if start < len(reading.words)]
    if measured and any(table.columns[name].is_quantity for name in said):
        return bool(at) and reading.taken[at - 1] in ("column", "table", "asks")
    brought = {name for one in table.partners for name in one.columns}
    linked = any(one.column in brought for one in reading.filters)
    linked = linked or (bool(table.partners) and reading.words[0].fold == "who")
    has_do = any(one.fold in _DO for one in reading.words[:at])
    if has_do and any(table.columns[name].is_additive for _, _, name in reading.columns):
        return bool(reading.filters)  # "how much revenue did we make from …"
    behind_name = bool(at) and reading.taken[at - 1] == "value"
    return linked and bool(reading.filters) and (has_do or not behind_name)


def stands_as_verb(reading: Reading, at: int, head: int, asks: str) -> bool:
    """Whether a word that nothing knows stands where only a verb can, beside what is known.

    Behind the noun that is asked for ("which vet treated"), behind a verb that helps ("was seen
    most often") or at the end of what "do" opens ("where does she work"). What else a participle
    says of rows that are only counted ("visits were postponed") would be a condition.
    """
    word = reading.words[at]
    if not word.text.islower() or not word.fold.isalpha():
        return False
    if "verb" in reading.taken:
        return _is_particle(reading, at)
    if _find_times_behind(reading, at):
        return False  # what happened then, the column of the time must say
    before = reading.words[at - 1].fold if at else ""
    past = is_past(reading, at)
    if past and before in reading.operators.auxiliaries:
        return asks != "count" or "distinct" in reading.taken
    if past and (_is_by_value(reading, at) or (at and reading.taken[at - 1] == "negations")):
        return _is_by_value(reading, at) or reading.unlinked
    if any(one.fold in _DO for one in reading.words[:at]) and before not in _JOINING:
        if asks == "place" and word.fold not in reading.operators.placing:
            return False  # "where does she shop": no column says that
        rest = reading.words[at + 1 :]
        return word.stem == word.fold and all(
            reading.taken[at + 1 + place] or one.fold in reading.operators.fillers
            for place, one in enumerate(rest)
        )
    if at != head + 1 or head < 0 or reading.taken[head] not in ("table", "column"):
        return False
    noun, behind = reading.words[head], [one.fold for one in reading.words[at + 1 : at + 2]]
    agrees = (noun.stem != noun.fold) != (word.stem != word.fold)  # "couriers ride", "vet looks"
    is_plain = agrees and behind[:1] != ["of"]
    joins = not _JOINING.isdisjoint(behind) or at + 1 in reading.dropped
    if noun.stem == noun.fold and behind == ["the"]:  # "earns the most" is of no column
        return past
    return past or (is_plain and joins)


def _is_by_value(reading: Reading, at: int) -> bool:
    """Whether "by" and a value of a text stand behind a word."""
    behind = [word.fold for word in reading.words[at + 1 : at + 2]]
    return behind == ["by"] and reading.taken[at + 2 : at + 3] == ["value"]


def is_predicate(reading: Reading, at: int) -> bool:
    """Whether a participle ends a question and says of the rows what no column does: "stolen"."""
    before = reading.words[at - 1].fold if at else ""
    is_last = at + 1 == len(reading.words)
    return is_last and is_past(reading, at) and before in _BE


def is_unexplained(reading: Reading, at: int) -> bool:
    """Whether a verb tells of an event that is known, and of which this table has nothing: "sell".

    What joins two tables is told by their link, whatever the verb is.
    """
    operators, table = reading.operators, reading.table
    events, word = operators.phrases["events"], reading.words[at].fold
    event, concepts = events.get((word,), ""), operators.concepts_of(word)
    if table.partners or not (event and concepts):
        return False
    named = [
        one for column in table.columns.values() if column.type != "text" for one in column.words
    ]
    named += table.own_words
    return not any(
        events.get((one,)) == event or operators.concepts_of(one) & concepts for one in named
    )


def tells_maker(reading: Reading, by: int, mention: Mention) -> bool:
    """Whether "by" says whose the rows are: "are by …", "by artists", "by organic farms"."""
    words, end = reading.words, mention[1]
    if words[by].fold != "by" or mention[0] != by + 1:
        return False
    is_said = bool(by) and words[by - 1].fold in BEFORE_ROLE
    behind = words[end : end + 1]
    if reading.table.columns[mention[2]].truths is not None and behind:
        is_said = is_said or behind[0].stem != behind[0].fold
    return is_said or (words[end - 1].stem != words[end - 1].fold and end < len(words))


def adds_up_deeds(reading: Reading, asked: int) -> bool:
    """Whether "how much" asks for the sum of what was done: "did I pay for", "honey did we get".

    Of what is so at any time ("how much does a lamp cost"), rows have each their own.
    """
    words = [word.fold for word in reading.words[asked:]]
    if "did" not in words:
        return "all" in words
    behind = words[words.index("did") + 1 :]
    is_amount = any(start == asked for start, _, _ in reading.columns)
    return is_amount or "all" in words or not _EXCHANGED.isdisjoint(behind)


def _is_particle(reading: Reading, at: int) -> bool:
    """Whether a word belongs to the verb before it: "took place", "went out"."""
    is_last = at + 1 == len(reading.words) or reading.words[at + 1].fold in _JOINING
    if reading.taken[at - 1] != "verb" or not is_past(reading, at - 1) or not is_last:
        return False
    verb, times = reading.words[at - 1].fold, _find_times_behind(reading, at)
    return all(is_time_of(reading, one, verb) for one in times)


def _joins_flag(reading: Reading, at: int) -> bool:
    """Whether a word stands before what says yes or no of a row: "work remotely"."""
    return reading.taken[at + 1 : at + 2] == ["flag"]


def _joins_sum(reading: Reading, at: int, head: int) -> bool:
    """Whether a word says what was done with a measure that is added up: "hours were spent"."""
    if not at > head >= 0 or not is_measure(reading, head) or not reading.filters:
        return False
    word, before = reading.words[at], reading.words[at - 1].fold
    has_do = any(one.fold in _DO for one in reading.words[:at])
    is_last = at == len(reading.words) - 1 and word.stem == word.fold
    return before in reading.operators.auxiliaries or (has_do and is_last)


def _find_times_behind(reading: Reading, at: int) -> list[Column]:
    """Return the columns of the time behind a word that says what happened: "published before"."""
    behind = at + 1
    if behind < len(reading.words) and reading.words[behind].fold in _BEFORE_TIME:
        behind += 1
    if reading.taken[behind : behind + 1] not in _OF_TIMES:
        return []
    named = [one.column for one in reading.filters if one.at == behind]
    named += [name for start, _, name in reading.columns if start == behind]
    columns = [reading.table.columns[name] for name in named]
    return [one for one in columns if one.type == "date" or one.has_years]


def is_time_of(reading: Reading, column: Column, verb: str) -> bool:
    """Whether a column holds the times of what a verb says; one called only "year" of anything."""
    operators = reading.operators
    if column.type != "date" and not column.has_years:
        return False
    said = set(column.words) - reading.table.words
    if said <= operators.times:
        return _is_about(reading)
    events = operators.phrases["events"]
    event = events.get((verb,), "")
    return bool(event) and any(events.get((word,)) == event for word in said)


def _is_about(reading: Reading) -> bool:
    """Whether a question names the table or what a column holds: "books", not "who"."""
    columns = reading.table.columns.values()
    names = {word for one in columns for word in one.words} - reading.operators.times
    names |= reading.table.words
    return any(is_same_word(word.fold, name) for word in reading.words for name in names)


def find_time(reading: Reading, degree: str) -> str:
    """Return the only column of times of what a word of the question says, or ""."""
    columns = reading.table.columns.values()
    if degree not in ("first", "last"):  # "newest" says itself what is meant
        times = [one.name for one in columns if one.type == "date" or "year" in one.words]
        return times[0] if len(times) == 1 else ""
    free = [w.fold for at, w in enumerate(reading.words) if reading.is_free(at, at + 1)]
    free = [word for word in free if word not in reading.operators.fillers] or [""]
    found = [one.name for one in columns if any(is_time_of(reading, one, word) for word in free)]
    return found[0] if len(found) == 1 else ""
