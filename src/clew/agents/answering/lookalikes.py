"""Whether an answer is said of a thing much like the one a question names: another of its kind.

"When was the Oslo plant opened?" is not answered by "The Bergen plant was opened in 1964", nor a
question about the TX-300 by "The TX-200 … Its guarantee lasts three years". What a sentence is
about is its subject, or that of the sentence before where a pronoun stands for it. It is another
thing where it has another word beside one that both share, on the same side of it.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from clew.agents.answering.unsaid import mean_same
from clew.agents.citing.clauses import find_clause, split_clauses
from clew.agents.core.types import Answer
from clew.context import Context
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words
from clew.text.word_forms import compare_words, is_function_word
from clew.types import Passage

_TOKEN = re.compile(r"[^\W\d_]+|\d+")
_STANDS_FOR = re.compile(
    r"\W*(?:he|she|it|they|this|these|his|her|its|their)\b[^\n]{0,40}", re.IGNORECASE
)
_BETWEEN = (" ", "-", "")  # two words of one name or noun
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
    clause = find_clause(sentence, sentence.find(short))
    subjects = [clause.subject]
    if not clause.subject or _STANDS_FOR.fullmatch(clause.subject):
        subjects.append(_find_subject_before(home.text[:start]))
    about = " ".join(subjects)
    others = [one.subject for one in split_clauses(sentence) if one.subject != clause.subject]
    here = f"{sentence[clause.start : clause.end]} {' '.join(subjects)}"
    words, near = list_words(" ".join(others)), _TOKEN.findall(here)
    elsewhere = [word for word in words if not is_word_said(word, near)]
    said = list_words(f"{home.title} {home.heading} {sentence} {here}")
    said = [word for word in said if word not in elsewhere]
    told = [word for word in list_words(f"{sentence} {here}") if word not in elsewhere]
    asked = list_words(ctx.question)
    for missing, shared, other in _find_swapped(ctx.question, about):
        # A subject with a number of its own is not the one that the page is titled by.
        counted = missing.isdigit() and other.isdigit()
        if is_word_said(missing, told if counted else said) or is_word_said(other, asked):
            continue
        if identifies(missing) and identifies(other):
            return True
        # Of things without a name the passage has to know the one that is asked for.
        known = shared.islower() and is_word_said(missing, list_words(home.text))
        if known and not await mean_same(ctx, [missing], [other], _SAME_THING):
            return True
    return False


def _find_swapped(question: str, subject: str) -> Iterator[tuple[str, str, str]]:
    """Yield a word of the question, the one beside it, and what the subject has in its place.

    "Oslo plant" and "Bergen plant", "town theatre" and "town library", "TX-300" and "TX-200".
    """
    for turned in (False, True):  # the word that differs stands first, or second
        for word, beside in list_pairs(question, turned=turned):
            for other, near in list_pairs(subject, turned=turned):
                if is_word_said(near, [beside]) and not is_word_said(other, [word]):
                    yield word, beside, other


def list_pairs(text: str, *, turned: bool) -> list[tuple[str, str]]:
    """Return the pairs of words that stand side by side and both say something."""
    pairs = [
        (one[0], other[0])
        for one, other in pairwise(_TOKEN.finditer(text))
        if text[one.end() : other.start()] in _BETWEEN
        and not (is_function_word(one[0]) or is_function_word(other[0]))
    ]
    return [(other, one) for one, other in pairs] if turned else pairs


def list_words(text: str) -> list[str]:
    """Return the words that say something, as they are written."""
    words = dict.fromkeys(_TOKEN.findall(text))
    return [word for word in words if not is_function_word(word)]


def identifies(word: str) -> bool:
    """Whether a word tells one of a kind from another: a part of a name, or a number."""
    return word[:1].isupper() or any(char.isdigit() for char in word)


def is_word_said(word: str, among: Sequence[str]) -> bool:
    """Whether a word, or a form of it, is among others."""
    plain = " ".join(split_words(word))
    return any(compare_words(" ".join(split_words(one)), plain) >= _FORM for one in among)


def _find_subject_before(text: str) -> str:
    """Return the subject of the last sentence of a text."""
    spans = sentence_spans(text)
    return find_clause(text[slice(*spans[-1])], 0).subject if spans else ""
