"""What is said before a question goes to its place in it: "In git, what does push do?".

An opening clause or a name with a colon says where something holds, as the end of a question does:
"What does push do in git?". Of a sentence about the asker ("I'm on Fedora 40. How do I …?") what it
names is kept, if the documents know it. English only.
"""

import re

from clew.agents.rules.question_analysis import is_in_corpus
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.index.view import View
from clew.retrieve.breadth import DOCUMENTS
from clew.retrieve.courtesy import leave_out_courtesy
from clew.text.word_forms import question_language

_PREPOSITIONS = "in|on|with|for|at|by|under|within|inside|using|during|from"
_CLAUSE = re.compile(
    rf"\W*(?P<word>{_PREPOSITIONS}|according to|as per)\s+(?P<said>[^,?;:]+),\s+(?P<rest>\S.*)",
    re.I,
)
_LABEL = re.compile(r"\W*(?P<said>[^\s,?;:]+(?: [^\s,?;:]+){0,3}):\s+(?P<rest>\S.*)")
_BESIDE = re.compile(rf"(?:(?:{_PREPOSITIONS}|to|into|of)\s+)?", re.IGNORECASE)
_ASKER = re.compile(
    r"\W*(?:I|we)(?:['’](?:m|ve|re)|\s+(?:am|are|have|use|run|own|work|got))\b"
    r"(?P<said>[^.!?;]*)[.!;]\s+(?P<rest>[^.!;]+\?)\s*",
    re.IGNORECASE,
)
_NAMES = re.compile(
    rf"(?P<word>\b(?:{_PREPOSITIONS})\s+)?(?:(?:the|a|an|my|our)\s+)?"
    r"(?P<names>[^\W\d_]*(?:[A-Z]|\d)[\w.+#-]*(?:\s+[^\W\d_]*(?:[A-Z]|\d)[\w.+#-]*)*)"
)
_REFERRING = re.compile(
    r"(?<!when )(?<!if )(?<!while )(?<!once )\b(?:it|its|he|she|his|her|him|they|their|"
    r"them|this|that|there)\b",
    re.IGNORECASE,
)
_MOST_WORDS = 6  # of what is put elsewhere


async def say_plainly(ctx: Context) -> str:
    """Return the question without what only addresses the reader, its context in its place."""
    return place_context(ctx.view, await leave_out_courtesy(ctx, ctx.question))


def place_context(view: View, question: str) -> str:
    """Return the question with what is said before it at its end; others as they are."""
    if question_language(question) != "en":
        return question
    if (asker := _ASKER.fullmatch(question)) is not None:
        return _place_names(view, question, asker["said"], asker["rest"].strip())
    if (clause := _CLAUSE.fullmatch(question)) is not None:
        return _place(question, clause["word"].lower(), clause["said"], clause["rest"])
    if (label := _LABEL.fullmatch(question)) is not None:
        return _place(question, "in", label["said"], label["rest"])
    return question


def _place(question: str, word: str, said: str, rest: str) -> str:
    """Put a phrase behind what is asked, if that asks and does not refer to it."""
    table = table_for(question)
    at = _BESIDE.match(rest)
    begin = at.end() if at else 0
    asks = table.question_words.match(rest, begin) or table.auxiliaries.match(rest)
    clause = table.question_words.search(said) or table.auxiliaries.search(said)
    if asks is None or clause or len(said.split()) > _MOST_WORDS or _REFERRING.search(rest):
        return question
    body = rest.rstrip(" ?")
    if DOCUMENTS.fullmatch(said.strip().lower()):  # all answers are from them
        return f"{body[:1].upper()}{body[1:]}?"
    if "?" in body or "," in body:
        return question
    return f"{body[:1].upper()}{body[1:]} {word} {said.strip()}?"


def _place_names(view: View, question: str, said: str, rest: str) -> str:
    """Put what a sentence about the asker names behind what is asked, if the documents know it."""
    found = [one for one in _NAMES.finditer(said) if is_in_corpus(view, one["names"])]
    if len(found) != 1 or _REFERRING.search(rest) or found[0]["names"] in rest:
        return question
    word = (found[0]["word"] or "with ").strip().lower()
    return f"{rest.rstrip(' ?')} {word} {found[0]['names']}?"
