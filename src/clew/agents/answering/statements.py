"""Cut a paragraph that is quoted to the sentence in it that speaks about what is asked.

A paragraph of several things has the words of many questions, each in another sentence: that it
has the fuse of one device and the name of another says nothing about the fuse of the other.
"""

from collections.abc import Sequence
from dataclasses import replace

from clew.agents.answering.units import QuestionSigns, ScoredUnit
from clew.agents.citing.clauses import has_other_name
from clew.text.places import Unit, is_numbered_prose, quotable_unit
from clew.text.sentences import sentence_spans
from clew.text.structure import find_blocks
from clew.text.unicode import UNSPACED_CHAR

_MORE = 0.02  # by which the sentences before must add to the score of one that goes on with them


def cut_to_statement(signs: QuestionSigns, one: ScoredUnit) -> ScoredUnit:
    """Return a unit of prose cut to its sentence that fits the question best; others as they are.

    With the sentence before that it refers to, and from the last one that names something if it
    names nothing itself: it goes on about that.
    """
    text, unit = one.passage.text, one.unit
    if unit.lead is not None or unit.term or not _is_prose(text, unit):
        return one
    spans = [
        (a + unit.start, b + unit.start) for a, b in sentence_spans(text[unit.start : unit.end])
    ]
    best, best_score = unit, 0.0
    for at, (start, end) in enumerate(spans):
        held = quotable_unit(text, start, end)
        statement = replace(unit, start=max(unit.start, held.start), end=min(unit.end, held.end))
        score = signs.score(one.passage, statement)
        for longer in _list_longer(text, unit, statement, spans[: at + 1]):
            if (more := signs.score(one.passage, longer)) > score + _MORE:
                start = unit.start if longer.section != unit.section else longer.start
                statement, score = replace(statement, start=start), more
        if score > best_score:
            best, best_score = statement, score
    return replace(one, unit=best)


def _list_longer(
    text: str, unit: Unit, statement: Unit, spans: Sequence[tuple[int, int]]
) -> list[Unit]:
    """Return a statement from the last sentence on that names something, and from its title on.

    A numbered paragraph begins with its title, which stands over the sentences below.
    """
    found = [replace(statement, start=_find_named(text, spans))]
    if any(b.start == unit.start and is_numbered_prose(text, b) for b in find_blocks(text)):
        title = text[slice(*spans[0])]
        found.append(replace(statement, section=(*unit.section, title)))
    return found


def _is_prose(text: str, unit: Unit) -> bool:
    """Whether a unit is one paragraph of sentences: no list, table, definition or code."""
    held = [b for b in find_blocks(text) if b.start < unit.end and unit.start < b.end]
    plain = all(b.kind == "paragraph" or is_numbered_prose(text, b) for b in held)
    return plain and "\n" not in text[unit.start : unit.end].strip()


def _find_named(text: str, spans: Sequence[tuple[int, int]]) -> int:
    """Return where the last of some sentences begins that names something."""
    for start, end in reversed(spans):
        if has_other_name(text[start:end], "") or UNSPACED_CHAR.search(text, start, end):
            return start
    return spans[-1][0]
