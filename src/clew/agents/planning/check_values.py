"""Check that the values of a plan may be put together: each is of its own thing, and all measure
what is asked.
"""

import re
from collections.abc import Mapping, Sequence

from clew.agents.citing.clauses import find_clause
from clew.agents.citing.support import mentions_name
from clew.agents.core.plan import ARITHMETIC, Join
from clew.agents.core.scratchpad import Note
from clew.agents.planning.arithmetic import labels_asked, read_amount
from clew.agents.reading.spans import asked_words
from clew.agents.rules.table import table_for
from clew.text.dates import is_date
from clew.text.quantities import Quantity, is_people
from clew.text.unicode import UNSPACED_CHAR, split_words
from clew.text.word_forms import is_function_word, mentions_form
from clew.types import Passage

WEAKEST = "weakest"
"""How likely the least likely value is from which code computed an answer."""
_LEAST_VALUE = 0.075  # probability below which a value makes what is computed from it unsure
_UNSURE = 0.45  # confidence of such an answer, at most
_SIZES = frozenset(("larger", "smaller", "sum", "difference", "shortfall", "apart"))
_NEXT_WORDS = 3  # words behind a number, within which stands what it counts
_NEAR = 20  # characters between a name and a value, without any mark
_NEXT_NAME = r"(?:\s+[A-Z][\w’'-]*)+"  # what makes a name a longer one: "Aldern Bridge"
_CELL = re.compile(r"\|\s*(?P<label>[^|:]+):[^|]*$")


def find_mismatch(
    question: str, join: Join, notes: Mapping[int, Note], passages: Sequence[Passage]
) -> str:
    """Return why the values of a join do not go together; "" where nothing speaks against it."""
    rows = [[notes[n] for n in numbers if n in notes] for numbers in join.question_numbers]
    if join.how in ("same", "both") or not all(rows):
        return ""
    for option, row in zip(join.options, rows, strict=False):
        whole = _find_whole_name(option, question)
        if whole != option and not any(_is_mentioned(whole, note, passages) for note in row):
            return f"no passage that was read mentions {whole}"
    values = [row[0] for row in rows]
    if join.how in ARITHMETIC and (twice := _find_twice(values)):
        return f"of {' and '.join(join.options)} one value was found: “{twice.answer}”"
    return _explain_unlike(join, values) if join.how in _SIZES else ""


def bound_by_values(hints: Mapping[str, float]) -> float:
    """Return the most confidence that what code computed can have, by its least likely value."""
    return 1.0 if hints.get(WEAKEST, 1.0) >= _LEAST_VALUE else _UNSURE


def is_of_rival(own: str, rivals: Sequence[str], sentence: str, at: int) -> bool:
    """Whether the value at a place of a sentence is said of another of the things compared.

    "The one at A has 5 and that at B 7": a name right before a value says whose it is.
    """
    if re.search(rf"{re.escape(own)}[\w\s]{{0,{_NEAR}}}$", sentence[:at], re.IGNORECASE):
        return False
    cell = _CELL.search(sentence[:at]) if sentence.startswith("|") else None
    subject = cell["label"] if cell else find_clause(sentence, at).subject
    return not mentions_name(own, subject) and any(mentions_name(one, subject) for one in rivals)


def _find_whole_name(option: str, question: str) -> str:
    """Return the name that an option begins in the question: "Aldern Bridge" for "Aldern"."""
    if UNSPACED_CHAR.search(question) or option.islower():
        return option
    found = re.search(re.escape(option) + _NEXT_NAME, question)
    return found[0] if found and not question[found.end() :].strip("?. ").islower() else option


def _is_mentioned(name: str, note: Note, passages: Sequence[Passage]) -> bool:
    """Whether a passage that a note cites, or was led through, has all words of a name."""
    cited = {one.citation.chunk for one in (note, *note.hops) if one.citation is not None}
    texts = [f"{p.title} {p.text}" for p in passages if p.id in cited]
    words = set(split_words(name))
    return any(mentions_name(name, text) or words <= set(split_words(text)) for text in texts)


def _find_twice(values: Sequence[Note]) -> Note | None:
    """Return a value that was read for two things at one place of one sentence."""
    seen = set[tuple[str, int, str]]()
    for note in values:
        if note.citation is None or note.quote.count(note.answer) > 1:
            continue
        place = (note.citation.chunk, note.citation.start, note.answer)
        if place in seen:
            return note
        seen.add(place)
    return None


def _explain_unlike(join: Join, values: Sequence[Note]) -> str:
    """Say which value is not what its question asks for, or that they measure different things."""
    amounts = [read_amount(note) for note in values]
    alike = len({found[0].noun if found else "" for found in amounts}) == 1
    for option, note, found in zip(join.options, values, amounts, strict=False):
        if found is None or UNSPACED_CHAR.search(note.question):
            continue
        words = asked_words(note.question.replace(option, " "))
        if not _measures_asked(note, words, found[0], alike=alike):
            return f"“{note.answer}” is not what is asked: {note.question}"
    known = [found[0] for found in amounts if found is not None]
    nouns = {one.noun for one in known if one.noun and _is_counted(values, one)}
    if len({one.dimension for one in known}) > 1 or len(nouns) > 1:
        return f"{' and '.join(f'“{note.answer}”' for note in values)} measure different things"
    return ""


def _is_counted(values: Sequence[Note], amount: Quantity) -> bool:
    """Whether the noun of an amount is what one of the questions asks for."""
    return any(mentions_form(amount.noun, note.question) for note in values)


def _measures_asked(note: Note, words: Sequence[str], amount: Quantity, *, alike: bool) -> bool:
    """Whether an amount is of the kind that its question asks for, as far as words tell.

    Where all values count things of one name ("6 crowns"), the verb of the question may tell.
    """
    kind = table_for(note.question).find_asked_measure(note.question)
    if amount.dimension:
        return kind in ("", "count") or amount.dimension.startswith(kind)
    if labels_asked(note):
        return True
    if any(map(is_people, words)) and any(map(is_people, split_words(note.quote))):
        return True
    at = max(note.quote.find(note.answer), 0)
    behind = split_words(note.quote[at + len(note.answer) :])[:_NEXT_WORDS]
    near = " ".join((note.answer, *behind))
    if any(mentions_form(word, near) for word in words):
        return True
    if is_date(note.answer) or (not alike and _counts_things(note.answer, behind)):
        return False
    clause = find_clause(note.quote, at)
    said = note.quote if note.quote.startswith("|") else note.quote[clause.start : clause.end]
    return any(mentions_form(word, said) for word in words)


def _counts_things(answer: str, behind: Sequence[str]) -> bool:
    """Whether a number has a noun in the plural: it counts those things, whatever is asked."""
    words = [word for word in split_words(answer) if not any(map(str.isdigit, word))]
    noun = words[-1] if words else next(iter(behind), "")
    return noun.endswith("s") and not is_function_word(noun)
