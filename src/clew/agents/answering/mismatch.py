"""Whether an answer is about something else than the question: the one place for such vetoes.

What is near a question in words and meaning may be said of a sibling: the year of another office,
the value of another row, the steps of another task. Then no share of words makes it an answer.
"""

from collections.abc import Sequence

from clew.agents.answering.cells import find_asked_cell, lies_in_rows
from clew.agents.answering.lacking import name_home
from clew.agents.answering.lookalikes import is_of_lookalike
from clew.agents.answering.unsaid import (
    find_role,
    is_of_other_role,
    is_other_sort,
    is_restricted_otherwise,
    lacks_restriction,
    mean_same,
    skips_relation,
)
from clew.agents.citing.clauses import find_clause, has_other_name, is_of
from clew.agents.citing.entailment import is_negated
from clew.agents.citing.support import mentions_name
from clew.agents.core.messages import YES_NO
from clew.agents.core.types import Answer
from clew.agents.reading.choose import contradicts_kind
from clew.agents.reading.directed import has_exchanged_sides
from clew.agents.reading.spans import answer_key, asked_words
from clew.agents.reading.values import tells_other_end
from clew.agents.rules.question_analysis import find_subject_names, find_wanted_block
from clew.agents.rules.table import drop_asking_words, table_for
from clew.context import Context
from clew.retrieve.question import strip_courtesy, tidy_question
from clew.text.announced import ANNOUNCES
from clew.text.dates import parse_date
from clew.text.language import is_chinese
from clew.text.options import split_options
from clew.text.places import find_term, quotable_unit
from clew.text.quantities import parse_quantity
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words
from clew.text.word_forms import compare_words, is_read_language, question_language, text_language
from clew.types import Citation, Passage

MOST = 0.3
"""The confidence that an answer about something else has at most."""
LESS = 0.5
"""What is left of the confidence where a word that restricts the question is not said."""
_SHORT = 3  # words beside the names of a question that asks one thing of them
_FORM = 0.9  # from which two words are forms of one
_SAME_ACTION = 0.6  # cosine of two words for one action: "remove" and "uninstall"
_OPENING = 3  # words of a sentence that say what it tells to do
_BEFORE = 120  # characters before a quote that may name what it is about
_COMMON = 0.5  # share of the passages that mention what all of them are about


async def is_mismatched(ctx: Context, answer: Answer, *, literal: bool = False) -> bool:
    """Whether an answer that was read or quoted without a model is about something else.

    `literal`: one sentence, with what it refers to, says every word of the question.
    """
    if not is_read_language(ctx.question):
        return _is_in_other_language(ctx.question, answer)
    if answer.kind == "path" and _is_cited_in_words(ctx, answer):
        other = "wrong side" in answer.hints or _is_other_side(ctx.question, answer)
        return other or is_of_other_kind(ctx.question, answer.candidate)
    if not _is_told_in_words(ctx, answer):
        return False
    wanted = find_wanted_block(ctx.question)
    if not answer.candidate and wanted == "steps":
        return await _are_other_steps(ctx, answer)
    passages = answer.evidence.chunks
    if wanted != "list" and lies_in_rows(answer.citations[0], passages):
        return await find_asked_cell(ctx, passages) is None
    if is_restricted_otherwise(ctx, answer) or contradicts_kind(ctx.question, answer.candidate):
        return True
    if answer.candidate:
        if await skips_relation(ctx, answer) or _only_repeats(ctx.question, answer.candidate):
            return True
        if await is_other_sort(ctx, answer):
            return True
        return await is_of_other(ctx, answer, literal=literal) or _tells_little(ctx, answer)
    return _lacks_name(ctx, answer)


async def is_less_sure(ctx: Context, answer: Answer) -> bool:
    """Whether nothing that an answer without a model cites says what restricts the question."""
    if not is_read_language(ctx.question) or not _is_told_in_words(ctx, answer):
        return False
    if answer.candidate or find_wanted_block(ctx.question) not in ("steps", "list"):
        return await lacks_restriction(ctx, answer)
    return False


def _is_told_in_words(ctx: Context, answer: Answer) -> bool:
    """Whether cited sentences of a language that is read say an answer themselves."""
    return answer.kind not in ("path", "words") and _is_cited_in_words(ctx, answer)


def _is_cited_in_words(ctx: Context, answer: Answer) -> bool:
    """Whether an answer to a question in words is cited, and neither computed nor chosen."""
    spoken = answer.candidate.casefold() in YES_NO or bool(split_options(ctx.question)[1])
    return not (is_chinese(ctx.question) or not answer.citations or answer.computed or spoken)


def is_of_other_kind(question: str, short: str) -> bool:
    """Whether the end of a path is no date or number though one is asked for."""
    asked = tidy_question(question)
    if contradicts_kind(asked, short):
        return True
    kind = table_for(asked).find_answer_kind(asked)
    return kind in ("date", "number") and not (parse_quantity(short) or parse_date(short))


def _is_other_side(question: str, answer: Answer) -> bool:
    """Whether every cited sentence with a short answer has it at the other side of the relation."""
    table, short = table_for(question), answer.candidate
    cited = [text for one in answer.citations for _, text, _ in _sentences_with(short, one)]
    return bool(cited) and all(has_exchanged_sides(question, one, table, short) for one in cited)


def _is_in_other_language(question: str, answer: Answer) -> bool:
    """Whether the first quote is in another language and has only the names of a question.

    Words of two languages that look alike are no forms of each other: "née" is no "need".
    """
    said = text_language(answer.citations[0].quote) if answer.citations else ""
    return bool(said) and said != question_language(question)


def _only_repeats(question: str, short: str) -> bool:
    """Whether a short answer is a name that the question gives, and none that it offers."""
    asked = f" {answer_key(question)} "
    return f" {answer_key(short)} " in asked and " or " not in asked


def _names_of_short(ctx: Context) -> list[str]:
    """Return the names of a question that asks one thing of them; none of a longer one."""
    names = find_subject_names(ctx.view, ctx.question)
    roles = {find_role(name, ctx.question) for name in names}  # the CEO of N is no name beside N
    names = [name for name in names if name not in roles]
    named = {word for name in names for word in split_words(name)}
    words = [word for word in asked_words(ctx.question) if word not in named]
    return names if len(words) <= _SHORT else []


async def is_of_other(ctx: Context, answer: Answer, *, literal: bool = False) -> bool:
    """Whether the sentence with a short answer says it of another name, role, side or end."""
    if not answer.citations:
        return False
    if _is_other_side(ctx.question, answer):
        return True
    cited = answer.citations[-1].quote
    if tells_other_end(ctx.question, cited, cited.find(answer.candidate)):
        return True
    if is_of_sibling(ctx, answer, literal=literal) or await is_of_lookalike(ctx, answer):
        return True
    return await is_of_other_role(ctx, answer)


def is_of_sibling(ctx: Context, answer: Answer, *, literal: bool) -> bool:
    """Whether the only sentence that has a short answer says it of another name.

    Who did something to "it" is the subject himself.
    """
    names = _names_of_short(ctx)
    if not names or len(answer.citations) > 1:
        return False
    cited = answer.citations[0]
    home = next((one for one in answer.evidence.chunks if one.id == cited.chunk), None)
    if home is None:
        return False
    around = quotable_unit(
        home.text, cited.start - home.start, cited.end - home.start, doc=home.doc
    )
    if any(mentions_name(name, find_term(around.quote(home.text))) for name in names):
        return False
    found = [
        not (literal and answer.candidate in find_clause(sentence, at).subject)
        and _says_of_other(
            names, ctx.question, home, cited.start - home.start + start, sentence, at
        )
        for start, sentence, at in _sentences_with(answer.candidate, cited)
    ]
    return bool(found) and all(found)


def _tells_little(ctx: Context, answer: Answer) -> bool:
    """Whether the only quote has less than half of what a question without names asks about.

    What a hotel may cost is not what a dinner may cost.
    """
    if len(answer.citations) > 1 or find_subject_names(ctx.view, ctx.question):
        return False
    cited, passages = answer.citations[0], answer.evidence.chunks
    home = next((one for one in passages if one.id == cited.chunk), None)
    at = cited.start - home.start if home else 0
    before = home.text[max(0, at - _BEFORE) : at] if home else ""  # may name what "it" is
    said = split_words(f"{name_home(cited, passages)} {before} {cited.quote}")
    words = asked_words(drop_asking_words(ctx.question))
    told = [word for word in words if any(compare_words(word, one) >= _FORM for one in said)]
    return 2 * len(told) < len(words)


def _sentences_with(short: str, cited: Citation) -> list[tuple[int, str, int]]:
    """Return the sentences of a quote that have a short answer, where they begin, and where it."""
    spans = [(start, cited.quote[start:end]) for start, end in sentence_spans(cited.quote)]
    return [(start, text, text.find(short)) for start, text in spans if short in text]


def _says_of_other(
    names: Sequence[str], question: str, home: Passage, start: int, sentence: str, at: int
) -> bool:
    clause = find_clause(sentence, at)
    if any(mentions_name(name, sentence[clause.start : clause.end]) for name in names):
        return False
    if any(is_of(name, home, start, sentence, clause) for name in names):
        return False
    return has_other_name(clause.subject, question)


def _lacks_name(ctx: Context, answer: Answer) -> bool:
    """Whether no quote, nor what it stands under, has a name that a short question asks about.

    What all passages are about need not be named.
    """
    passages = answer.evidence.chunks
    texts = [f"{p.title} {p.heading} {p.text}" for p in passages]
    quotes = [f"{name_home(one, passages)} {one.quote}" for one in answer.citations]
    for name in _names_of_short(ctx):
        common = sum(mentions_name(name, text) for text in texts) > _COMMON * len(texts)
        if not common and not any(mentions_name(name, quote) for quote in quotes):
            return True
    return False


async def _are_other_steps(ctx: Context, answer: Answer) -> bool:
    """Whether quoted steps, and what announces them, lack the action or the object asked about.

    A heading may name the action in any form ("Installation"); a sentence must tell to do it: that
    blocks are encrypted does not say how. What a sentence denies it does not explain.
    """
    asked = strip_courtesy(ctx.question)
    for kind, words in table_for(asked).blocks:
        asked = words.sub(" ", asked) if kind == "steps" else asked
    wanted = asked_words(asked)
    for cited in answer.citations:
        home = name_home(cited, answer.evidence.chunks)
        for start, end in sentence_spans(cited.quote):
            sentence = cited.quote[start:end]
            if is_negated(sentence):
                continue
            if sentence.rstrip().endswith(ANNOUNCES):  # "On N:" says where what follows holds
                home = f"{home} {sentence}"
            missing = _find_untold(wanted, home, sentence)
            opening = " ".join(sentence.split()[:_OPENING])
            action = missing == wanted[:1]  # may be told by another word, the object may not
            if not missing or (
                action
                and await mean_same(ctx, missing, asked_words(f"{home} {opening}"), _SAME_ACTION)
            ):
                return False
    return True


def _find_untold(wanted: Sequence[str], home: str, sentence: str) -> list[str]:
    """Return the words, the action first, that neither a heading nor an instruction says."""
    above, said = split_words(home), split_words(sentence)
    missing = []
    for at, word in enumerate(wanted):
        told = [one for one in said if at or one == word or one.endswith("ing")]
        if not any(compare_words(word, one) >= _FORM for one in (*above, *told)):
            missing.append(word)
    return missing
