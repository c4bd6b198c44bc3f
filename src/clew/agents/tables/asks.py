"""How a question begins, and what it wants by that: a number, rows, a value, yes or no."""

from clew.agents.rules.table_words import is_same_word, load_operators, split_question
from clew.agents.tables.reading import Mention, Reading
from clew.agents.tables.spaced import find_language
from clew.agents.tables.unspaced import asks_unspaced

_MAX_BEFORE_ASK = 1  # words before it: "in which year"
_OPENERS = {"checks": "check", "limits": "rows", "superlatives": "rows", "aggregates": "value"}
_OPENERS |= {"shares": "value", "pairs": "value"}


def may_ask_tables(question: str) -> bool:
    """Whether a question begins like one that rows could answer; others need not load tables."""
    if asks_unspaced(question) or find_language(question):
        return True
    operators, words = load_operators(), split_question(question)
    asks = next(operators.find("asks", words), None)
    if asks is not None and asks[0] <= _MAX_BEFORE_ASK:
        return True
    if next(operators.find("orders", words), None) is not None:
        return True
    return any(next(operators.find(kind, words[:2]), (1,))[0] == 0 for kind in _OPENERS)


def asks_for_number(question: str) -> bool:
    """Whether a question counts, adds up or compares rows: one of them alone does not answer."""
    operators, words = load_operators(), split_question(question)
    kinds = ("aggregates", "superlatives", "shares", "limits")
    if any(next(operators.find(kind, words), None) for kind in kinds):
        return True
    return any(meaning == "count" for _, _, meaning in operators.find("asks", words))


def find_ask(reading: Reading) -> Mention | None:
    """Return how the question begins; "what is the number of" asks like "how many"."""
    asks = reading.find("asks")
    if not asks or asks[0][0] > _MAX_BEFORE_ASK:
        for start, end, _ in asks:
            reading.take(start, end, "")
        return _find_opener(reading)
    counts = [one for one in asks[1:] if one[2] == "count" and not _follows_measure(reading, one)]
    named = [one for one in counts if _is_of_name(reading, one)]
    counts = [one for one in counts if one not in named]
    for start, end, meaning in asks[1:]:
        if meaning != "count" or (start, end, meaning) in named:
            reading.take(start, end, "")  # "name" may be a column
    return next(iter(counts), asks[0])


def _find_opener(reading: Reading) -> Mention | None:
    """Return what a question without a word that asks begins with: "is", "top 3", "total"."""
    operators, words = reading.operators, reading.words
    for kind, wants in _OPENERS.items():
        for start, end, _ in operators.find(kind, words[:2]):
            if start == 0:
                if wants == "check":
                    reading.take(start, end, "asks")
                return 0, end if wants == "check" else 0, wants
    return (0, 0, "rows") if any(operators.find("orders", words)) else None


def _follows_measure(reading: Reading, ask: Mention) -> bool:
    """Whether "number of" stands after "the largest": then it names what is compared."""
    if not ask[0] or ask[1] - ask[0] < 2:
        return False
    before = reading.words[ask[0] - 1].fold
    return (before,) in reading.operators.phrases["superlatives"]


def _is_of_name(reading: Reading, ask: Mention) -> bool:
    """Whether "number of" ends the name of a column: "the phone number of"."""
    if not ask[0] or reading.words[ask[0]].fold != "number":
        return False
    before = reading.words[ask[0] - 1].fold
    columns = [one for one in reading.table.columns.values() if not one.is_quantity]
    return any(is_same_word(before, own) for one in columns for own in one.words)
