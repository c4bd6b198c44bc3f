"""What of a question the cited sentence says, and what it says of something else.

The reader judges well whether a sentence tells what is asked, and badly of what it tells it: "Who
serviced the freezer?" is read as the one who serviced the centrifuge. A word of the question that
stands elsewhere in what was found, and not here, gives that away; a word that stands nowhere may be
another wording.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.agents.answering.lacking import (
    find_missing,
    find_unsaid,
    name_home,
)
from clew.agents.answering.units import STEM, stem_words, weigh_words
from clew.agents.citing.clauses import refer_back
from clew.agents.citing.entailment import to_stem
from clew.agents.core.types import Answer
from clew.agents.reading.choose import find_asked_noun
from clew.agents.reading.restrictions import is_short
from clew.agents.reading.spans import Reading, answer_key, asked_words, read_passages, same_answer
from clew.agents.rules.table import cut_asking_words, drop_asking_words, table_for
from clew.context import Context
from clew.text.quantities import parse_quantity
from clew.text.unicode import split_words
from clew.types import Citation, Passage

_LIFE = re.compile(r"\([^()]*\d{3,4}\s*[-–—][^()]*\d{3,4}\)")  # "(1870–1942)"
_HOW = re.compile(r"\bhow\s+[a-z]+", re.IGNORECASE)  # "how cold": the answer says how


@dataclass(frozen=True, slots=True)
class Untold:
    """What of a question neither the cited sentences nor what they refer to say."""

    strayed: float
    """Share of its words that only other sentences of what was found say."""
    wholly: bool
    """Whether nothing of what is asked of the names is said."""
    literal: bool = False
    """Whether every word is said."""


def find_home(citation: Citation, passages: Sequence[Passage]) -> Passage | None:
    """Return the passage that holds what is cited."""
    own = (one for one in passages if one.id == citation.chunk and one.start <= citation.start)
    return next((one for one in own if citation.end <= one.start + len(one.text)), None)


def find_reference(cited: Citation, home: Passage) -> int:
    """Return where a quote begins in its passage, with the sentences before that it refers to."""
    return refer_back(home.text, cited.start - home.start, cited.quote)


async def find_untold(ctx: Context, question: str, names: Sequence[str], answer: Answer) -> Untold:
    """Return what of a question is not said where an answer is cited."""
    passages = answer.evidence.chunks
    words = list_words(question, answer.candidate)
    near = []
    for cited in answer.citations:
        home = find_home(cited, passages)
        first = find_reference(cited, home) if home else 0
        near += [name_home(cited, passages), cited.quote]
        near += [home.text[first : cited.start - home.start]] if home else []
    text = " ".join(near)
    short = is_short(question, ())  # in a long one words are said in other forms anyway
    missing = await find_missing(ctx, question, words, text) if short else find_unsaid(words, text)
    rest = " ".join(f"{one.title} {one.heading} {one.text}" for one in passages)
    strayed = len(missing) - len(find_unsaid(missing, rest))
    named = stem_words(" ".join(names))
    quotes = " ".join(one.quote for one in answer.citations)
    wholly = {*words} - named <= missing.keys() and is_untold(question, names, quotes)
    if short and any(map(str.isdigit, find_unsaid(words, quotes))):
        return Untold(1.0, wholly)  # said of no year, or of another one
    return Untold(strayed / max(1, len(words)), wholly, literal=bool(words) and not missing)


def list_words(question: str, short: str) -> dict[str, float]:
    """Return the beginnings of the words that say what is asked about, not what kind is asked for.

    A month is told by "March", and what something costs by a sum of money.
    """
    table, found = table_for(question), parse_quantity(short)
    measure = table.find_asked_measure(question)
    if found is not None and measure and found.dimension.startswith(measure):
        question = next(words for kind, words in table.measures if kind == measure).sub(
            " ", question
        )
    noun = find_asked_noun(question)
    plain = _HOW.sub(" ", cut_asking_words(drop_asking_words(question)))
    kept = [word for word in asked_words(plain) if word != noun]
    return dict.fromkeys((word[:STEM] for word in kept), 1.0)


def is_untold(question: str, names: Sequence[str], quotes: str) -> bool:
    """Whether quotes speak of nothing, in any form, that a question asks of its names.

    "Where did N die?" is not answered where N studied. Dates in brackets tell of a life.
    """
    known = {word for name in names for word in split_words(name)}
    asked = {to_stem(word) for word in asked_words(question) if word not in known}
    told = {to_stem(word) for word in split_words(quotes)}
    if _LIFE.search(quotes):
        told |= {to_stem("born"), to_stem("died")}
    return bool(asked) and not asked & told


def measure_told(ctx: Context, question: str, answer: Answer) -> float:
    """Return the share of a question's words, by their rarity, that its quotes and headings say."""
    homes = (name_home(one, answer.evidence.chunks) for one in answer.citations)
    text = " ".join((*homes, *(one.quote for one in answer.citations)))
    return 1 - sum(find_unsaid(weigh_words(ctx.view, drop_asking_words(question)), text).values())


async def read_sentence(
    ctx: Context, question: str, answer: Answer, cited: Sequence[Passage], chosen: Sequence[str]
) -> Reading | None:
    """Read the last sentence that is cited by itself; what is only near is no longer found there.

    Of an answer that lists several things all sentences are read, and the least sure one counts.
    None where one does not name any of the answers, or code computed them.
    """
    if answer.computed:
        return None
    found = []
    for one in answer.citations if len(chosen) > 1 else answer.citations[-1:]:
        home = find_home(one, cited)
        answers = (answer.candidate, *chosen)
        found.append(await _read_alone(ctx, question, one, home, answers) if home else None)
    known = [one for one in found if one is not None]
    return min(known, key=lambda one: one.score) if known and len(known) == len(found) else None


async def _read_alone(
    ctx: Context, question: str, cited: Citation, home: Passage, chosen: Sequence[str]
) -> Reading | None:
    first = find_reference(cited, home)
    text = home.text[first : cited.end - home.start]
    alone = replace(home, text=text, start=home.start + first, end=cited.end)
    read = await read_passages(ctx, question, (alone,))
    return next((one for one in read if any(_is_part(one.text, c) for c in chosen)), None)


def _is_part(text: str, short: str) -> bool:
    """Whether a span is an answer or the core of it, where most of a sentence is named."""
    return same_answer(text, short) or f" {answer_key(text)} " in f" {answer_key(short)} "
