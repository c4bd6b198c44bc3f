"""Find what a question computes from several things: their total, or how much more one has.

"How many schools do A and B have together?" asks "How many schools does A have?" of each, and "How
much higher is A than B?" asks "How high is A?". The question of each thing is the whole question
without the other things and without the words that compute.
"""

import re
from collections.abc import Sequence

from clew.agents.core.plan import AGE, JoinKind
from clew.agents.rules.operators import Comparison, Spans, ask_event, find_base, is_polar
from clew.agents.rules.table import RuleTable, table_for
from clew.text.word_forms import question_language

_JOINED = re.compile(r"\s*(?:,|,?\s*(?:\band\b|&|\bas\s+well\s+as\b))\s*(?:the\s+)?", re.I)
_PLURAL_VERBS = ((r"\bdo(?=\s+(?:the\s+)?\{x\})", "does"), (r"\bare(?=\s+(?:the\s+)?\{x\})", "is"))
_NAMED = re.compile(r"\W*what\s+(?:is|was|are|were)\s+the\s", re.IGNORECASE)
_PERIODS = frozenset("year day".split())
_QUANTIFIERS = frozenset("more less fewer".split())
_X = "{x}"


def find_arithmetic(question: str, names: Spans) -> Comparison | None:
    """Return the total or the difference that a question asks for, None if it asks for neither."""
    table = table_for(question)
    if len(names) == 1 and table.lifespan.search(question):
        return _ask_lifespan(question[slice(*names[0])].strip(), table)
    if is_polar(question) or len(names) < 2:
        return None
    return _find_difference(question, names, table) or _find_total(question, names, table)


def _ask_lifespan(name: str, table: RuleTable) -> Comparison:
    """Ask for both ends of a life, of which the age at death is computed."""
    asked = (table.event_questions[event].replace("{x}", name) for event in ("born", "dead"))
    return Comparison("years before", (name, name), tuple((one,) for one in asked), rest=AGE)


def _find_total(question: str, names: Spans, table: RuleTable) -> Comparison | None:
    """Return the total of things that stand in one list, where a word says that one is wanted."""
    masked = _mask(question, names)
    word = table.combined.search(masked)
    things = _find_listed(question, names)
    number = table.find_answer_kind(question) == "number" or _NAMED.match(masked)
    if word is None or len(things) < 2 or not number:
        return None
    options = tuple(question[slice(*one)].strip() for one in things)
    whole = question[: things[0][0]] + _X + question[things[-1][1] :]
    template = _tidy(table.combined.sub(" ", whole))
    for plural, single in _PLURAL_VERBS:
        template = re.sub(plural, single, template)
    return _ask_each("sum", options, template)


def _find_listed(question: str, names: Spans) -> list[tuple[int, int]]:
    """Return the last names that stand in one list: "A, B and C"."""
    found: list[tuple[int, int]] = []
    for span in sorted(names):
        joined = found and _JOINED.fullmatch(question[found[-1][1] : span[0]])
        if joined:
            found.append(span)
        elif len(found) < 2:
            found = [span]
    return found


def _find_difference(question: str, names: Spans, table: RuleTable) -> Comparison | None:
    """Return by how much the first of two things exceeds the other, with the thing behind "than"
    as the other.
    """
    masked = _mask(question, names)
    a, b = sorted(names)[-2:]
    found = table.difference.search(masked)
    if found is None:
        return None
    if (word := found["word"]) is None:
        return _ask_apart(question, a, b, found)
    word = word.lower()
    how = next((r.how for r in table.operators if r.words.fullmatch(word)), "larger")
    if how in ("earlier", "later"):
        if (found["unit"] or "year").strip().rstrip("s") not in _PERIODS:
            return None
        return _ask_dates(question, (a, b), found, how, table)
    than = [span for span in (a, b) if table.than.search(question[: span[0]])]
    if len(than) != 1:
        return None
    other, one = than[0], b if than[0] == a else a
    opens = table.than.search(question[: other[0]])
    cut = (opens.start() if opens else other[0], other[1])
    degree = _ask_degree(found, word, table, less=how == "smaller")
    if word in _QUANTIFIERS and found["unit"]:  # "How many people more does A employ than B?"
        degree = f"{degree}{found['unit']}"
    pieces = sorted(((*one, _X), (*cut, " "), (*found.span(), f"how {degree} ")))
    template = question
    for start, end, text in reversed(pieces):
        template = template[:start] + text + template[end:]
    crossing = any(left[1] > right[0] for left, right in zip(pieces, pieces[1:], strict=False))
    if crossing or question_language(question) != "en":  # "By how much is A longer than B?"
        template = table.measured.replace("{how}", degree)
    options = (question[slice(*one)].strip(), question[slice(*other)].strip())
    kind: JoinKind = "shortfall" if how == "smaller" else "difference"
    return _ask_each(kind, options, _tidy(template), found["unit"] or "")


def _ask_degree(found: re.Match[str], word: str, table: RuleTable, *, less: bool) -> str:
    """Return what stands behind "how" in the question for a value: "high", "many"."""
    if word in _QUANTIFIERS:
        return found["much"] or "much"
    base = find_base(word)
    for one in table.quantities:
        if one.compared.fullmatch(word) and (less or not one.how.fullmatch(base)):
            return one.base
    return base


def _ask_apart(
    question: str, a: tuple[int, int], b: tuple[int, int], found: re.Match[str]
) -> Comparison | None:
    """Ask for what "the difference in N between A and B" is of each."""
    between = question[found.end() : a[0]]
    if _JOINED.fullmatch(re.sub(r"\b(?:that|those|of|in)\b", "", question[a[1] : b[0]])) is None:
        return None
    options = (question[slice(*a)].strip(), question[slice(*b)].strip())
    what = f"the {found['what']} of {between}" if found["what"] else between
    return _ask_each("apart", options, _tidy(f"What is {what}{_X}?")) if what.strip() else None


def _ask_dates(
    question: str,
    things: tuple[tuple[int, int], tuple[int, int]],
    found: re.Match[str],
    how: str,
    table: RuleTable,
) -> Comparison | None:
    """Ask for the day or year of each; the one behind "than" or "before" is the other."""
    a, b = things
    other = next((s for s in (a, b) if table.than.search(question[: s[0]])), None)
    if other is None:
        other = a if found.end() <= a[0] and not question[found.end() : a[0]].strip(" the") else b
    one = b if other == a else a
    rest = f"{question[: a[0]]} {question[a[1] : b[0]]} {question[b[1] :]}"
    options = (question[slice(*one)].strip(), question[slice(*other)].strip())
    kind: JoinKind = "years before" if how == "earlier" else "years after"
    return _ask_each(kind, options, ask_event(rest, table), found["unit"] or "")


def _ask_each(
    how: JoinKind, options: Sequence[str], template: str, unit: str = ""
) -> Comparison | None:
    if template.count(_X) != 1:
        return None
    template = template[:1].upper() + template[1:]
    questions = tuple((template.replace(_X, one),) for one in options)
    return Comparison(how, tuple(options), questions, rest=unit.strip())


def _mask(question: str, names: Spans) -> str:
    """Return a question with its names blotted out."""
    for start, end in names:
        question = question[:start] + "_" * (end - start) + question[end:]
    return question


def _tidy(text: str) -> str:
    plain = re.sub(r"\s+([?,.])", r"\1", " ".join(text.split()))
    return re.sub(r",+\?", "?", plain)
