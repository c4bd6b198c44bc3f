"""Whether what is cited says each word that restricts a question, and each relation it goes by.

Where a word is simply not said ("for managers"), an answer may still be right, but is less sure; a
relation that nothing states ("N's daughter") is no step to an answer at all.
"""

import re
from collections.abc import Sequence

import numpy as np

from clew.agents.answering.lacking import name_home
from clew.agents.citing.clauses import find_verbs
from clew.agents.citing.support import mentions_name
from clew.agents.core.types import Answer
from clew.agents.reading.choose import find_asked_noun
from clew.agents.reading.restrictions import (
    Told,
    counts_other,
    find_rivalled,
    find_skipped,
    find_unsaid,
    is_contradicted,
    is_short,
    says_form,
)
from clew.agents.reading.spans import asked_words
from clew.agents.rules.question_analysis import find_subject_names
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.graph.csr import Ints
from clew.index.view import View
from clew.retrieve.mentions import SURE_CLAIM
from clew.retrieve.pack import fetch_chunks
from clew.text.countries import find_countries
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words

_SAME = 0.7  # cosine of two words of one meaning
_MAX_PAGES, _MAX_NEXT = 3, 8  # passages about one thing, and about what they mention
_SAME_RELATION = 0.5  # of a noun for a relation and its verb: "teacher" and "taught"


def gather_cited(answer: Answer) -> Told:
    """Gather what an answer cites: the sentence that has it, the other quotes, and their titles."""
    passages = answer.evidence.chunks
    first, *others = sorted(answer.citations, key=lambda one: answer.candidate not in one.quote)
    spans = [first.quote[start:end] for start, end in sentence_spans(first.quote)]
    own = next((one for one in spans if answer.candidate in one), first.quote)
    homes = [name_home(one, passages) for one in answer.citations]
    around = " ".join((*homes, *(one.quote for one in others), *(s for s in spans if s != own)))
    return Told(own, own.find(answer.candidate), around)


def is_restricted_otherwise(ctx: Context, answer: Answer) -> bool:
    """Whether the sentence with an answer says it of another time, ordinal or sort of thing."""
    names = find_subject_names(ctx.view, ctx.question)
    return is_contradicted(ctx.question, names, gather_cited(answer))


async def skips_relation(ctx: Context, answer: Answer) -> bool:
    """Whether nothing cited states the relation by which a question reaches what it asks about."""
    names = find_subject_names(ctx.view, ctx.question)
    told = " ".join((gather_cited(answer).whole, *_find_naming(names, answer)))
    unsaid = find_skipped(ctx.question, names, told)
    return bool(unsaid) and not await mean_same(ctx, unsaid, find_verbs(told), _SAME_RELATION)


def _find_naming(names: Sequence[str], answer: Answer) -> list[str]:
    """Return the sentences of the cited passages that have a name of the question."""
    cited = {one.chunk for one in answer.citations}
    texts = [one.text for one in answer.evidence.chunks if one.id in cited]
    sentences = (text[start:end] for text in texts for start, end in sentence_spans(text))
    return [one for one in sentences if any(mentions_name(name, one) for name in names)]


async def is_of_other_role(ctx: Context, answer: Answer) -> bool:
    """Whether the sentence with an answer says what another role of a name is: no CEO but a CFO."""
    told = gather_cited(answer)
    for name in find_subject_names(ctx.view, ctx.question):
        asked, said = find_role(name, ctx.question), find_role(name, told.sentence)
        if not asked or not said or says_form(asked.lower(), told.whole):
            continue
        if asked.isupper() and said.isupper():
            return True  # two acronyms are never synonyms
        if not await mean_same(ctx, [asked.lower()], [said.lower()], _SAME_RELATION):
            return True
    return False


def find_role(name: str, text: str) -> str:
    """Return the noun before "of" and a name, or behind the name's possessive; "" of neither."""
    if name.lower() not in text.lower():
        return ""
    own = re.escape(name)
    found = re.search(
        rf"\b(\w[\w-]*) (?:of|at|for) (?:the )?{own}\b|\b{own}['’]s (\w[\w-]*)", text, re.IGNORECASE
    )
    return (found[1] or found[2]) if found else ""


async def lacks_restriction(ctx: Context, answer: Answer) -> bool:
    """Whether nothing cited says a word that restricts what is asked about."""
    names = find_subject_names(ctx.view, ctx.question)
    told = gather_cited(answer)
    if not is_short(ctx.question, names):
        return False
    if find_unsaid(ctx.question, names, told) or counts_other(ctx.question, told):
        return True
    last = table_for(ctx.question).restricted.search(ctx.question)
    nouns = asked_words(last["noun"]) if last else []
    unsaid = [one for one in nouns if not says_form(one, told.whole)]
    unsaid += find_rivalled(ctx.question, told)
    return bool(unsaid) and not await mean_same(ctx, unsaid, asked_words(told.whole))


async def is_other_sort(ctx: Context, answer: Answer) -> bool:
    """Whether a place that is named is not what "which county" asks for.

    A sentence may call it so ("the county of N"), or define it as something else; of countries all
    that are well known are listed.
    """
    table, noun = table_for(ctx.question), find_asked_noun(ctx.question)
    if not noun or table.find_answer_kind(ctx.question) != "place":
        return False
    name, texts = re.escape(answer.candidate), [one.text for one in answer.evidence.chunks]
    known = " ".join((gather_cited(answer).whole, *texts))
    called = rf"\b{noun}\W+(?:of\W+)?(?:the\W+)?{name}\b|\b{name},?\W+(?:the\W+)?{noun}\b"
    if noun in split_words(answer.candidate) or re.search(called, known, re.IGNORECASE):
        return False
    country = table.countries.fullmatch(noun) is not None
    if country and find_countries(split_words(answer.candidate))[0]:
        return False
    sorts = [found["sort"] for found in re.finditer(rf"\b{name}{table.defined}", known)]
    if not sorts:
        return country
    said = asked_words(" ".join(sorts))
    return not (noun in said or await mean_same(ctx, [noun], said))


async def stops_short(ctx: Context, answer: Answer) -> bool:
    """Whether a chain ends before what is asked: the page about its answer goes on with it.

    It says a word of the question that nothing cited says ("rises"), and not of what sort the
    answer is.
    """
    if answer.kind != "span" or len(answer.citations) < 2:
        return False
    told, names = gather_cited(answer).whole, find_subject_names(ctx.view, ctx.question)
    named = {word for name in names for word in split_words(name)}
    asked = [word for word in asked_words(ctx.question) if word not in named]
    unsaid = [word for word in asked if not says_form(word, told)]
    page, further = await _read_page(ctx, answer.candidate) if unsaid else ("", "")
    defined = rf"(?i)\b{re.escape(answer.candidate)}{table_for(ctx.question).defined}"
    sorts = " ".join(found["sort"] for found in re.finditer(defined, page))
    later = [one for one in unsaid if says_form(one, further) and not says_form(one, sorts)]
    return bool(later) and not await mean_same(ctx, later, asked_words(told))


async def _read_page(ctx: Context, name: str) -> tuple[str, str]:
    """Return the text of the passages about a name, and of those about what they mention."""
    view = ctx.view
    own = _find_pages(view, view.find_by_name_or_alias(name).astype(np.int64))
    mentioned = view.links("chunk_entity").edges_of(np.array(own, np.int64))[1]
    others = _find_pages(view, view.links("chunk_entity").columns[mentioned].astype(np.int64))
    fetched = await fetch_chunks(ctx, sorted({*own, *others[:_MAX_NEXT]}))
    texts = {at: one.text for at, one in fetched.items()}
    return " ".join(texts[at] for at in own), " ".join(texts.values())


def _find_pages(view: View, entities: Ints) -> list[int]:
    """Return the passages that are about one of these for certain, if they are few."""
    owners, found = view.links("owners"), dict[int, None]()
    for entity in np.unique(entities).tolist():
        start, end = int(owners.starts[entity]), int(owners.starts[entity + 1])
        sure = owners.columns[start:end][owners.weights[start:end] >= SURE_CLAIM]
        found |= dict.fromkeys(sure.tolist() if len(sure) <= _MAX_PAGES else ())
    return list(found)


async def mean_same(
    ctx: Context, words: Sequence[str], said: Sequence[str], least: float = _SAME
) -> bool:
    """Whether each of some words has another one of its meaning among those that are said."""
    others = list(dict.fromkeys(said))
    if ctx.embed is None or not others:
        return False
    rows = np.array(await ctx.vectors([*words, *others]), np.float32)
    rows /= np.maximum(1e-9, np.linalg.norm(rows, axis=1, keepdims=True))
    cosines = rows[: len(words)] @ rows[len(words) :].T
    return bool((cosines.max(axis=1) >= least).all())
