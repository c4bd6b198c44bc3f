"""Whether an answer is said of a thing much like the one a question names: another of its kind.

"When was the Oslo plant opened?" is not answered by "The Bergen plant was opened in 1964", nor a
question about the TX-300 by "The TX-200 … Its guarantee lasts three years". What a sentence is
about is its subject, or that of the sentence before where a pronoun stands for it. It is another
thing where both share words and each has one of its own.
"""

import re
from collections.abc import Iterator, Sequence

from clew.agents.answering.lacking import drop_asking_words
from clew.agents.answering.unsaid import mean_same
from clew.agents.citing.clauses import find_clause, split_clauses
from clew.agents.core.types import Answer
from clew.context import Context
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words
from clew.text.word_forms import compare_words, is_function_word
from clew.types import Passage

_TOKEN = re.compile(r"[^\W_]+")
_STANDS_FOR = re.compile(
    r"\W*(?:he|she|it|they|this|these|his|her|its|their)\b[^\n]{0,40}", re.IGNORECASE
)
_FORM = 0.9  # from which two words are forms of one
_SAME_THING = 0.55  # cosine of two words for one thing: "theatre" and "playhouse"


async def is_of_lookalike(ctx: Context, answer: Answer) -> bool:
    """Whether every sentence that has the short answer says it of another thing of the kind."""
    short = answer.candidate
    if not short or len(answer.citations) != 1:
        return False
    cited = answer.citations[0]
    home = next((one for one in answer.evidence.chunks if one.id == cited.chunk), None)
    if home is None:
        return False
    found = [
        await _is_about_other(ctx, home, cited.start - home.start + start, sentence, short)
        for start, sentence in _find_told(cited.quote, short)
    ]
    return bool(found) and all(found)


def _find_told(quote: str, short: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a quote that have a short answer, with where they begin."""
    sentences = ((start, quote[start:end]) for start, end in sentence_spans(quote))
    return ((start, sentence) for start, sentence in sentences if short in sentence)


async def _is_about_other(
    ctx: Context, home: Passage, start: int, sentence: str, short: str
) -> bool:
    """Whether a sentence of a passage is about another thing than the question names."""
    asked = _list_words(drop_asking_words(ctx.question))
    clause = find_clause(sentence, sentence.find(short))
    subjects = [clause.subject]
    if not clause.subject or _STANDS_FOR.fullmatch(clause.subject):
        subjects.append(_find_subject_before(home.text[:start]))
    about = _list_words(" ".join(subjects))
    own = [word for word in about if not _is_said(word, asked)]
    shared = [word for word in about if _is_said(word, asked)]
    others = [one.subject for one in split_clauses(sentence) if one.subject != clause.subject]
    here = f"{sentence[clause.start : clause.end]} {' '.join(subjects)}"
    elsewhere = [
        word for word in _list_words(" ".join(others)) if not _is_said(word, _TOKEN.findall(here))
    ]
    said = _list_words(f"{home.title} {home.heading} {sentence} {here}")
    said = [word for word in said if word not in elsewhere]
    missing = [word for word in asked if not _is_said(word, said)]
    if not (own and shared and missing):
        return False
    if any(map(_identifies, missing)) and any(map(_identifies, own)):
        return True
    # Of things without a name the passage has to know the one that is asked for.
    known = [word for word in missing if _is_said(word, _list_words(home.text))]
    return bool(known) and not await mean_same(ctx, known, own, _SAME_THING)


def _list_words(text: str) -> list[str]:
    """Return the words that say something, as they are written."""
    words = dict.fromkeys(_TOKEN.findall(text))
    return [word for word in words if not is_function_word(word)]


def _identifies(word: str) -> bool:
    """Whether a word tells one of a kind from another: a part of a name, or a number."""
    return word[:1].isupper() or any(char.isdigit() for char in word)


def _is_said(word: str, among: Sequence[str]) -> bool:
    plain = " ".join(split_words(word))
    return any(compare_words(" ".join(split_words(one)), plain) >= _FORM for one in among)


def _find_subject_before(text: str) -> str:
    """Return the subject of the last sentence of a text."""
    spans = sentence_spans(text)
    return find_clause(text[slice(*spans[-1])], 0).subject if spans else ""
