"""Several questions in one: split them, and put their answers together, each under its question."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from clew.agents.answering.write import make_refusal
from clew.agents.core.confidence import DEFAULT_THRESHOLD
from clew.agents.core.messages import shorten_question
from clew.agents.core.types import Answer
from clew.agents.rules.table import RuleTable, table_for
from clew.context import Context
from clew.retrieve.question import content_words, tidy_question
from clew.text.irregular_verbs import BASE_OF_FORM
from clew.text.options import split_options
from clew.text.word_forms import question_language
from clew.types import Evidence

_MAX_PARTS = 3  # questions in one that are answered
_QUESTION_END = re.compile(r"(?<=[?？])\s+")
_AND = re.compile(r",?\s+and\s+", re.IGNORECASE)
_MIN_PART_WORDS = 2  # words of content that make a part a question of its own
# Those that stand for a subject; "where" and "when" without an auxiliary open a clause.
_NAMED_WORDS = re.compile(r"who|what|which|whose|how", re.IGNORECASE)
_SUBJECT = re.compile(r"who|what|which", re.IGNORECASE)
# "first climbed Mount Kell": the verb ends before a name or an article.
_VERB_AND_OBJECT = re.compile(
    r"(?P<verb>[a-z]+(?:\s+(?!the\b|an?\b|his\b|her\b|its\b|their\b)[a-z]+)*?)\s+"
    r"(?P<object>(?:(?:the|an?|his|her|its|their)\s|[^a-z\s]).*)"
)
_NOT_FOUND = "the passages do not contain the answer"
_PRONOUN = re.compile(r"\b(?:he|she|it|they|his|her|its|their|him|them)\b", re.IGNORECASE)


def split_questions(question: str) -> list[str]:
    """Return the questions in a text without courtesy, if several stand for themselves."""
    asked, options = split_options(question)
    if options:
        return [question]
    question = tidy_question(asked)
    parts = [part.strip() for part in _QUESTION_END.split(question) if part.strip()]
    if len(parts) == 1 and len(halves := split_halves(question)) > 1:
        return halves
    if len(parts) == 1:
        parts = _split_at_and(question)
    if len(parts) < 2 or not all(part.endswith(("?", "？")) for part in parts[:-1]):
        return [question]
    if len(parts := list(dict.fromkeys(parts))) == 1:
        return parts
    full = [parts[0]] if _asks_something(parts[0]) else []
    # "… and where was she born?" asks about what the part before asks about, or answers.
    full += [part for part in parts[1:] if _asks_something(part) or _PRONOUN.search(part)]
    return full[:_MAX_PARTS] if len(full) > 1 else [question]


def split_halves(question: str) -> list[str]:
    """Return a question for each of two question words that ask of one thing.

    "Where and when was N born?", "Who founded N, and when?" and "When was N built and by whom?".
    """
    table = table_for(question)
    measured = "|".join(one.how.pattern for one in table.quantities)
    words = rf"{table.degree.pattern}(?:{measured})|{table.question_words.pattern}"
    asking = rf"(?:(?:by|for|from|in|to|with)\s+)?(?:{words})"
    joined = rf",?\s+(?:and|und)\s+(?P<two>{asking})"
    both = re.match(rf"\W*(?P<one>{asking}){joined}\s+(?P<rest>\S.*)", question, re.I)
    end = re.match(rf"\W*(?P<one>{asking})\s+(?P<rest>\S.*?){joined}\W*$", question, re.I)
    found = both or end
    if found is None or table.question_words.search(found["rest"]):
        return [question]
    return [_ask(found[half], found["rest"], table) for half in ("one", "two")]


def _ask(word: str, rest: str, table: RuleTable) -> str:
    """Return a question with one question word: "When was N founded?" of "when", "founded N"."""
    rest = rest.strip().rstrip("?").rstrip()
    subject = _SUBJECT.fullmatch(word) is not None
    if subject or table.auxiliaries.match(rest):
        return f"{word[:1].upper()}{word[1:]} {rest}?"
    found = _VERB_AND_OBJECT.match(rest)
    if found is None or question_language(rest) != "en":
        return f"{word[:1].upper()}{word[1:]} {rest}?"
    return f"{word[:1].upper()}{word[1:]} was {found['object']} {_to_participle(found['verb'])}?"


def _to_participle(verb: str) -> str:
    """Return the participle of a verb in the past, which may stand behind an adverb."""
    *before, last = verb.split()
    forms = [form for form, base in BASE_OF_FORM.items() if base == BASE_OF_FORM.get(last)]
    return " ".join((*before, forms[-1] if forms else last))


def _asks_something(part: str) -> bool:
    """Whether a part is a question of its own: "Who is the auditor?" is, "Why?" is none."""
    asks = table_for(part).question_words.search(part) is not None
    return len(content_words(part)) >= _MIN_PART_WORDS - asks


def _split_at_and(asked: str) -> list[str]:
    """Split "Who built N, and when was M born?" where the second half asks for itself."""
    table = table_for(asked)
    for match in _AND.finditer(asked):
        word = table.question_words.match(asked, match.end())
        if word is None:
            continue
        before, after = asked[: match.start()], asked[word.end() :].lstrip()
        if table.auxiliaries.match(after) or _asks_alike(before, word[0], after, table):
            return [f"{before}?", asked[match.end() :]]
    return [asked]


def _asks_alike(before: str, word: str, after: str, table: RuleTable) -> bool:
    """Whether both halves open with a question word of their own, as in "Who … and who leads …?".

    Behind another one in the first half it may go on with a clause: "the man who … and who …".
    """
    opening = table.question_words.search(before)
    single = len(table.question_words.findall(before)) == 1
    opens = opening is not None and len(before[: opening.start()].split()) <= 1
    return (
        opens
        and single
        and _NAMED_WORDS.fullmatch(word) is not None
        and bool(content_words(before))
        and (len(content_words(after)) >= _MIN_PART_WORDS or _PRONOUN.search(after) is not None)
    )


def refuse_unsure_halves(ctx: Context, parts: Sequence[Answer]) -> list[Answer]:
    """Refuse the halves of a question that are below the threshold beside one that is above it.

    What one thing is asked about twice is told once, and of the rest that it was not found.
    """
    if not any(one.confidence >= DEFAULT_THRESHOLD for one in parts):
        return list(parts)
    return [
        one
        if one.verdict == "refused" or one.confidence >= DEFAULT_THRESHOLD
        else make_refusal(ctx.with_question(one.question), one.evidence, _NOT_FOUND)
        for one in parts
    ]


def renumber(text: str, numbers: Mapping[int, int]) -> str:
    """Give the citation marks of a text their numbers in the whole answer."""
    return re.sub(r"\[(\d+)\]", lambda mark: f"[{numbers.get(int(mark[1]), mark[1])}]", text)


def join_parts(question: str, evidence: Evidence, parts: Sequence[Answer]) -> Answer:
    """Put the judged answers to several questions together; as sure as the least sure of them.

    Incomplete where some are refused: `missing` names them, and the confidence is of the others.
    """
    citations = list(dict.fromkeys(c for part in parts for c in part.citations))
    lines = []
    for part in parts:
        numbers = {n: citations.index(c) + 1 for n, c in enumerate(part.citations, start=1)}
        lines.append(f"{shorten_question(part.question)}\n{renumber(part.answer, numbers)}")
    answered = [part for part in parts if part.verdict == "answered"]
    return replace(
        (answered or parts)[0],
        question=question,
        answer="\n\n".join(lines),
        citations=tuple(citations),
        evidence=evidence,
        candidate="; ".join(part.candidate for part in answered if part.candidate),
        missing="; ".join(
            f"{shorten_question(part.question)} {part.missing}" for part in parts if part.missing
        ),
        confidence=min((part.confidence for part in answered), default=0.0),
        complete=len(answered) in (0, len(parts)) and all(part.complete for part in parts),
        parts=tuple(parts),
    )
