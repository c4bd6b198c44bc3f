"""Tell what a number in a sentence measures: "412 metres long and 18 metres wide" has one width.

A question for one measure is not answered by a number that its sentence says to be another, nor by
one of another dimension; a width or a depth must be called so. What numbers measure stands in the
table of the language (`rules/*.toml`).
"""

import re
from collections.abc import Sequence

from clew.agents.citing.clauses import find_clause, is_of
from clew.agents.citing.support import has_title, mentions_name
from clew.agents.core.types import Answer
from clew.agents.reading.spans import asked_words
from clew.agents.rules.table import MeasuredQuantity, RuleTable, table_for
from clew.text.quantities import Quantity, find_amounts
from clew.text.sentences import sentence_spans
from clew.text.unicode import UNSPACED_CHAR
from clew.text.word_forms import is_function_word, mentions_form, question_language
from clew.types import Passage

Span = tuple[int, int]
_ADJACENT = re.compile(r"[\s-]*(?:(?:in|of|an|at)\s+)?")
# A number in figures or in words, in any of the languages with a table.
_AMOUNT = re.compile(
    r"\d|[〇一二三四五六七八九十百千万两]+\s*(?:米|公里|千米|厘米|毫米|吨|公斤|千克)|[^\W\d_]+\s+(?:feet|"
    r"foot|met(?:re|er)s?|miles?|kilomet(?:re|er)s?|tons?|Metern?|Kilometern?)\b"
)
_PART = re.compile(r"\W*(?:its|his|her|their)\s+(?P<part>\w.*)", re.IGNORECASE)
_ASKED_BEHIND = 4  # words behind a question word in which a noun says what is asked for
_NEAR = 4  # characters before a number in which a script without spaces says what it measures


def find_asked_quantity(question: str) -> MeasuredQuantity | None:
    """Return what a question asks to be measured, by "how wide" or "what is the width"."""
    table = table_for(question)
    for degree in table.degree.finditer(question):
        for one in table.quantities:
            if one.how.match(question, degree.end()):
                return one
    asking = table.question_words.search(question)
    if asking is None and not UNSPACED_CHAR.search(question):
        return None
    start = asking.end() if asking is not None else 0
    words = [found.end() for found in re.finditer(r"\S+", question[start:])][:_ASKED_BEHIND]
    end = start + words[-1] if words else start
    if UNSPACED_CHAR.search(question):
        start, end = 0, len(question)
    found = ((one.nouns.search(question, start, end), one) for one in table.quantities)
    named = [(match.start(), one) for match, one in found if match and len(match[0]) > 1]
    return min(named, key=lambda pair: pair[0])[1] if named else None


def measures_other(question: str, sentence: str, at: int) -> bool:
    """Whether the number at a place of a sentence measures something else than is asked for."""
    asked = find_asked_quantity(question)
    amounts = find_amounts(sentence)
    number = next((n for n, (_, end, _) in enumerate(amounts) if end > at >= 0), None)
    if asked is None or number is None:
        return False
    if _is_of_part(question, asked, sentence, at):
        return True
    said = find_said_quantity(table_for(question), sentence, amounts, number)
    if said == asked.name:
        return False
    if said:
        return True
    dimension = amounts[number][2].dimension
    if dimension and dimension not in asked.units:
        return not asked.open
    return asked.named


def _is_of_part(question: str, asked: MeasuredQuantity, sentence: str, at: int) -> bool:
    """Whether a sentence measures a part that the question does not name: "Its towers are …"."""
    found = _PART.match(find_clause(sentence, at).subject)
    if found is None or asked.nouns.search(found["part"]):
        return False
    return not any(mentions_form(word, question) for word in asked_words(found["part"]))


def measures_only_other(question: str, texts: Sequence[str]) -> bool:
    """Whether texts have numbers, all of which measure something else than is asked for."""
    numbers = [(text, start) for text in texts for start, _, _ in find_amounts(text)]
    return bool(numbers) and all(measures_other(question, text, at) for text, at in numbers)


def answers_other_measure(question: str, answer: Answer) -> bool:
    """Whether the number that an answer names, or every one it quotes, measures something else."""
    if answer.computed:
        return False
    quotes, short = [one.quote for one in answer.citations], answer.candidate
    holding = [one for one in quotes if short and short in one]
    if any(map(str.isdigit, short)) and holding:
        digit = next(at for at, char in enumerate(short) if char.isdigit())
        return all(measures_other(question, one, one.find(short) + digit) for one in holding)
    untold = not short and not any(map(_AMOUNT.search, quotes))
    asked = find_asked_quantity(question) is not None
    return (asked and untold) or measures_only_other(question, quotes)


def find_measured(
    question: str, names: Sequence[str], passages: Sequence[Passage]
) -> tuple[Passage, Span] | None:
    """Return the amount of what a question asks to be measured, said of one of its names.

    It stands on the page of the name, or in a sentence that mentions it, and is no measure of a
    part that the question does not name ("Its towers are …").
    """
    asked = find_asked_quantity(question)
    if asked is None:
        return None
    names = [*names, *(name.partition(" ")[2] for name in names if _begins_small(name))]
    for passage in passages:
        for start, end in sentence_spans(passage.text):
            sentence = passage.text[start:end]
            span = _find_amount(asked, table_for(question), sentence)
            if span is None or not _tells_rest(question, asked, names, sentence):
                continue
            if any(_is_said_of(name, passage, start, sentence, span) for name in names):
                return passage, (start + span[0], start + span[1])
    return None


def _find_amount(asked: MeasuredQuantity, table: RuleTable, sentence: str) -> Span | None:
    """Return the first amount of a sentence that measures what is asked for."""
    amounts = find_amounts(sentence)
    for number, (first, last, amount) in enumerate(amounts):
        said = find_said_quantity(table, sentence, amounts, number)
        bare = not said and not asked.named and amount.dimension in asked.units
        if bare or said == asked.name:
            return first, last
    return None


def _tells_rest(
    question: str, asked: MeasuredQuantity, names: Sequence[str], sentence: str
) -> bool:
    """Whether a sentence has what a question says beside its names and the measure."""
    plain = asked.nouns.sub(" ", asked.how.sub(" ", question))
    for name in names:
        plain = plain.replace(name, " ")
    return all(mentions_form(word, sentence) for word in asked_words(plain))


def _is_said_of(name: str, passage: Passage, start: int, sentence: str, span: Span) -> bool:
    """Whether a sentence says an amount of a name; clauses are known of English alone."""
    if question_language(sentence) == "en":
        return is_of(name, passage, start, sentence, find_clause(sentence, span[0]))
    return has_title(passage, name) or mentions_name(name, sentence)


def _begins_small(name: str) -> bool:
    """Whether a name has an article: "die Saarbrücke"."""
    first, _, rest = name.partition(" ")
    return bool(rest) and is_function_word(first)


def find_said_quantity(
    table: RuleTable, text: str, amounts: Sequence[tuple[int, int, Quantity]], number: int
) -> str:
    """Return what a text says that one of its amounts measures; "" if it does not say."""
    _, end, amount = amounts[number]
    behind, after = _ADJACENT.match(text, end), text[end : end + 1]
    place = behind.end() if behind and (behind[0] or UNSPACED_CHAR.match(after)) else end
    for one in table.quantities:
        if one.compared.match(text, place):
            return "difference"
        fits = not amount.dimension or amount.dimension in one.units
        if fits and (one.how.match(text, place) or one.nouns.match(text, place)):
            return one.name
    return _find_before(table, text, amounts, number)


def _find_before(
    table: RuleTable, text: str, amounts: Sequence[tuple[int, int, Quantity]], number: int
) -> str:
    """Return what the last noun between the amount before and this one says it to be."""
    start, _, amount = amounts[number]
    begin = amounts[number - 1][1] if number else 0
    if begin and (behind := _ADJACENT.match(text, begin)):
        own = (one.how.match(text, behind.end()) for one in table.quantities)
        begin = next((match.end() for match in own if match), begin)
    if UNSPACED_CHAR.search(text[:start]):
        begin = max(begin, start - _NEAR)
    found = [
        (match.end(), one.name)
        for one in table.quantities
        if not amount.dimension or amount.dimension in one.units
        for match in one.nouns.finditer(text, begin, start)
    ]
    return max(found)[1] if found else ""
