"""Extractive answer without a model: the span that is read, and the nearest sentences, cited.

Where a recipe ranks entities as answers, these are named; "Tell me about X" quotes what is about X,
steps or a list are quoted whole, and where breadth is wanted, what covers the topic is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from clew.agents.answering.account import choose_account, measure_account
from clew.agents.answering.exact_terms import find_exact_terms
from clew.agents.answering.path_answer import answer_from_paths
from clew.agents.answering.quote_block import (
    cite_items,
    find_announcement,
    find_blocks,
    has_items,
    is_table,
    quote_block,
)
from clew.agents.answering.steps import choose_steps
from clew.agents.answering.units import stem_words, weigh_told, weigh_words
from clew.agents.answering.whole_list import cite_whole
from clew.agents.answering.write import make_answer, make_refusal, quote_chain
from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.core.messages import CANDIDATE_LABEL, explain_not_written
from clew.agents.core.scratchpad import Note, Notebook
from clew.agents.core.types import Answer
from clew.agents.reading.answer import RankedCandidate, describe_best, rank_readings
from clew.agents.reading.choose import measure_coverage
from clew.agents.reading.confirm import confirm
from clew.agents.reading.lists import (
    find_others,
    is_heading,
    join_items,
    list_items,
    may_be_several,
    wants_several,
)
from clew.agents.reading.same_question import Under, find_under_question
from clew.agents.rules.chinese import find_chinese_answer
from clew.agents.rules.operators import is_polar
from clew.agents.rules.question_analysis import find_subject_names, find_wanted_block
from clew.agents.rules.sections_about import find_sections
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.retrieve.breadth import judge_breadth, wants_breadth
from clew.retrieve.rank import ANSWER_MARK
from clew.text.language import is_chinese
from clew.text.sentences import sentence_spans
from clew.text.unicode import UNSPACED_CHAR
from clew.types import Citation, Evidence, Found, Passage, Support

QUOTED_NOTE = "this is quoted evidence, not a composed answer"
MAY_BE_MORE = "these were found in separate sentences, and there may be more"
_MAX_PASSAGES = 5
_YEAR = re.compile(r"\d{4}")
_SURE = 0.8  # least probability that breadth is wanted where no rule says so
_MAX_QUOTES = 3
_LEAST_OF_BEST = 0.5  # share of words of a quote that is chosen by them alone
_MIN_TOLD = 0.6  # of the weight of the question's words, that a block has
_MIN_SENTENCE_CHARS = 25  # characters; shorter sentences are headings and stubs
_KNOWN_SCRIPT = 0.5  # share of the question's letters in words that the embedder knows
_UNKNOWN_COSINE = 0.25  # of a sentence that has no vector
_PATH_BONUS = 0.15  # added to the cosine of a fact on a retrieved path
_WORDS_BONUS = 0.3  # added for a sentence with every word of the question
_MAX_SUMMARY_SENTENCES = 4  # sentences quoted
# Beside the name an open request has only such words.
_OPEN_REQUEST = re.compile(
    r"\W*(?:(?:please|kindly|can|could|you|i|want|tell|give|show|explain|describe|introduce|say|"
    r"write|summari[sz]e|define|what|who|is|are|was|were|do|does|know|me|us|about|of|on|to|the|an?|"
    r"more|everything|something|all|there)\b\W*)*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _ScoredFact:
    """A fact of one of the best passages, with its relevance to the question."""

    at: int
    chunk: int
    cosine: float


async def extract_answer(ctx: Context, evidence: Evidence, found: Found) -> Answer:
    """Name the span that is read, and quote the best sentences of the best passages."""
    if any(hit.by == ANSWER_MARK for hit in found.entities):
        return await answer_from_paths(ctx, evidence, found)
    if (whole := await quote_whole(ctx, evidence, found)) is not None:
        return whole
    if await wants_account(ctx) and (account := await quote_account(ctx, evidence, found)):
        return account
    note = explain_not_written(ctx, QUOTED_NOTE)
    read, support = await _read_candidate(ctx, evidence)
    citations = await quote_nearest(ctx, evidence, found)
    if read is not None and read.citation is not None:
        others = [c for c in citations if not overlaps(c, read.citation)]
        citations = (read.citation, *others)[:_MAX_QUOTES]
    if not citations:
        return replace(make_refusal(ctx, evidence, "no relevant passage was found"), note=note)
    text, candidate = format_quotes(citations), read.answer if read else ""
    if candidate:
        text = f"{CANDIDATE_LABEL} {candidate} [1]\n{text}"
    answer = make_answer(ctx, evidence, text, citations, candidate, note)
    return replace(answer, support=support)


async def quote_whole(ctx: Context, evidence: Evidence, found: Found) -> Answer | None:
    """Quote a list, steps, or what is said of one thing, where that is what the question wants."""
    note = explain_not_written(ctx, QUOTED_NOTE)
    if (steps := await choose_steps(ctx, found, evidence.chunks)) is not None:
        whole = await cite_whole(ctx, evidence, found, steps.cited)
        answer = make_answer(ctx, whole.evidence, whole.format(), whole.parts, note=note)
        return replace(answer, kind="steps", signals=steps.signals, confidence=steps.chance)
    block = quote_block(ctx.question, evidence.chunks)
    if block is not None and _tells_rare_words(ctx, block, evidence.chunks):
        terms = find_exact_terms(ctx.question) if wants_several(ctx.question) else ()
        items = cite_items(block, terms, evidence.chunks)
        if items != (block,):
            return make_answer(ctx, evidence, format_quotes(items), items, note=note)
        whole = await cite_whole(ctx, evidence, found, block)
        return make_answer(ctx, whole.evidence, whole.format(), whole.parts, note=note)
    names = find_subject_names(ctx.view, ctx.question)
    wanted = find_wanted_block(ctx.question) == "definition" or not found.rest
    if len(names) == 1 and (wanted or is_open_request(found.rest)):
        if is_open_request(found.rest) and (said := _quote_summary(names[0], evidence.chunks)):
            return make_answer(ctx, evidence, format_quotes(said), said, note=note)
    return None


async def wants_account(ctx: Context) -> bool:
    """Whether a question wants breadth, as retrieval finds, but more surely.

    Not what concerns one code, nor what asks for a number, a date, a yes or a no.
    """
    if is_polar(ctx.question) and not wants_breadth(ctx.question):
        return False
    codes = [term for term in find_exact_terms(ctx.question) if not _YEAR.fullmatch(term)]
    described = find_wanted_block(ctx.question) == "definition"
    if codes and (described or not wants_breadth(ctx.question)):
        return False
    if table_for(ctx.question).find_answer_kind(ctx.question) in ("number", "date"):
        return False
    return await judge_breadth(ctx, _SURE)


async def quote_account(ctx: Context, evidence: Evidence, found: Found) -> Answer | None:
    """Quote what covers the topic of a question that wants breadth; None if nothing does."""
    cited = await choose_account(ctx, found, evidence.chunks)
    if not cited:
        return None
    signals, confidence = await measure_account(ctx, cited, evidence.chunks)
    note = explain_not_written(ctx, QUOTED_NOTE)
    answer = make_answer(ctx, evidence, format_quotes(cited), cited, note=note)
    return replace(answer, kind="account", signals=signals, confidence=confidence)


def quote_under(ctx: Context, evidence: Evidence) -> Answer | None:
    """Quote what stands under the line or the heading that says just what is asked.

    Not where a yes, a no or one value answers: those are read in it.
    """
    wanted, polar = find_wanted_block(ctx.question), is_polar(ctx.question)
    whole = wanted in ("steps", "list")
    under = find_under_question(ctx.question, evidence.chunks, announced=whole)
    if under is None or (polar and under.find_reply(table_for(ctx.question))):
        return None
    if not (whole or polar or has_items(under.text)):
        return None
    cited = under.cite(_end_of_steps(under) if wanted == "steps" else None)
    note = explain_not_written(ctx, QUOTED_NOTE)
    return make_answer(ctx, evidence, format_quotes((cited,)), (cited,), note=note)


def _end_of_steps(under: Under) -> int | None:
    """Return where the list under a heading ends; None where none stands there, or it asks."""
    if under.block.asks or not under.block.is_heading:
        return None
    lists = [one for one in find_blocks(under.passage) if not is_table(one)]
    inside = [one.end for one in lists if under.block.body <= one.start < under.block.end]
    return max(inside, default=None)


def _tells_rare_words(ctx: Context, block: Citation, passages: Sequence[Passage]) -> bool:
    """Whether what announces a block has the question's rarer words.

    Steps to install something have all words but one of a question how to remove it.
    """
    home = next((passage for passage in passages if passage.id == block.chunk), None)
    if home is None:
        return True
    announced = find_announcement(home, block.start - home.start)
    told, known = weigh_told(ctx.view, ctx.question, announced, passages)
    return told >= _MIN_TOLD * known


async def _read_candidate(ctx: Context, evidence: Evidence) -> tuple[Note | None, float]:
    """Return the best answer read in the passages, and its probability."""
    if is_chinese(ctx.question):
        place = find_chinese_answer(ctx.question, evidence.chunks)
        return (note_span(ctx.question, *place), 1.0) if place else (None, 0.0)
    if is_polar(ctx.question):
        said = await confirm(ctx, evidence.chunks)
        return said, said.probability if said else 0.0
    ranked = await rank_readings(ctx, evidence.chunks)
    if not ranked:
        return None, 0.0
    return ranked[0].notes(ctx.question)[-1], ranked[0].probability


def name_best(
    ctx: Context,
    book: Notebook,
    ranked: list[RankedCandidate],
    like: Sequence[RankedCandidate] = (),
    *,
    count: bool = False,
) -> Answer:
    """Name the best candidate and quote the sentence of each reading that led to it."""
    if wants_several(ctx.question):  # a heading announces the list
        ranked = sorted(ranked, key=lambda one: is_heading(one.candidate.readings[-1]))
    best = ranked[0]
    notes, items = best.notes(ctx.question), [best.candidate.text]
    if may_be_several(ctx.question):
        items = list_items(best.candidate.readings[-1])
    if wants_several(ctx.question):
        others = [] if count else find_others(ctx.question, ranked, items)
        for other in {one.candidate.text: one for one in (*like, *others)}.values():
            if other.candidate.text in items:
                continue
            items.append(other.candidate.text)
            notes += other.notes(ctx.question)[-1:]
    for note in notes:
        book.add(note)
    short = join_items(items) if len(items) > 1 else best.candidate.text
    short = f"{len(set(items))}: {short}" if count else short
    answer = quote_chain(ctx, book.evidence(), notes, short)
    if len(notes) > len(best.notes(ctx.question)):  # of a list that no sentence gives whole
        told = "; ".join(filter(None, (answer.note, MAY_BE_MORE)))
        answer = replace(answer, note=told, complete=False)
    hints = describe_best(ranked)
    return replace(answer, support=best.probability, hints=hints, kind="span")


def note_span(question: str, passage: Passage, span: tuple[int, int]) -> Note:
    """Make a note of a span that cites the sentence around it."""
    spans = sentence_spans(passage.text)
    start, end = next(((s, e) for s, e in spans if s <= span[0] < e), span)
    cited = make_citation(passage, SupportSpan(start, max(end, span[1]), 1.0))
    return Note(question, passage.text[slice(*span)], cited.quote, cited)


def overlaps(one: Citation, other: Citation) -> bool:
    """Whether two citations share a part of one passage."""
    return one.chunk == other.chunk and one.start < other.end and other.start < one.end


def format_quotes(citations: Sequence[Citation]) -> str:
    """Format quotes, a line each, with their numbers."""
    return "\n".join(f"“{c.quote}” [{n}]" for n, c in enumerate(citations, start=1))


async def quote_nearest(ctx: Context, evidence: Evidence, found: Found) -> tuple[Citation, ...]:
    """Cite the sentence nearest to the question in each of the best passages."""
    sentences = _best_per_passage(await _score_facts(ctx, found))
    cited = await _cite_facts(ctx, evidence, sentences[:_MAX_QUOTES])
    if is_chinese(ctx.question) or ctx.meaning() < _KNOWN_SCRIPT:  # vectors say little
        words = _measure_words(ctx, [one.quote for one in cited]).tolist()
        least = _LEAST_OF_BEST * max(words, default=0.0)
        cited = tuple(one for one, said in zip(cited, words, strict=True) if said >= least)
    return cited


async def _score_facts(ctx: Context, found: Found) -> list[_ScoredFact]:
    """Score the facts of the best passages by their similarity to the question."""
    view = ctx.view
    links = view.links("chunk_fact")
    pairs = [
        (int(fact), hit.at) for hit in found.chunks[:_MAX_PASSAGES] for fact in links.row(hit.at)
    ]
    pairs, texts = await _drop_short_facts(ctx, pairs)
    if not pairs:
        return []
    positions = np.array([fact for fact, _ in pairs])
    if ctx.meaning() < _KNOWN_SCRIPT:
        titles = await _title_facts(ctx, [chunk for _, chunk in pairs])
        cosines = _measure_words(
            ctx, [f"{t} {text}" for t, text in zip(titles, texts, strict=True)]
        )
        if (said := cosines > 0).any():  # a sentence without any of the words says nothing here
            pairs, texts = list(compress(pairs, said)), list(compress(texts, said))
            cosines = cosines[said]
    else:
        cosines = view.cosines("fact", await _query_vector(ctx, found), positions)
        cosines[cosines == -1] = _UNKNOWN_COSINE  # facts of a graph need not be embedded
    walked = {fact for path in found.paths for fact in path.facts}
    return [
        _ScoredFact(
            fact,
            chunk,
            float(cosine)
            + (_PATH_BONUS if fact in walked else 0.0)
            + _WORDS_BONUS * measure_coverage(ctx.question, text),
        )
        for (fact, chunk), cosine, text in zip(pairs, cosines, texts, strict=True)
    ]


async def _title_facts(ctx: Context, rows: Sequence[int]) -> list[str]:
    """Return the titles of passages: what a page is about, each of its sentences says."""
    keys = ctx.view.keys("chunk")
    chunks = await ctx.snapshot.chunks([int(keys[row]) for row in dict.fromkeys(rows)])
    return [chunks[int(keys[row])].title for row in rows]


def _measure_words(ctx: Context, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the share of the question's words in each text, where vectors say nothing."""
    words = weigh_words(ctx.view, ctx.question)
    said = map(stem_words, texts)
    return np.array(
        [sum(weight for word, weight in words.items() if word in own) for own in said], np.float32
    )


async def _drop_short_facts(
    ctx: Context, pairs: list[tuple[int, int]]
) -> tuple[list[tuple[int, int]], list[str]]:
    """Drop headings and stubs, unless there is nothing else to quote; return the texts as well."""
    keys = ctx.view.keys("fact")
    facts = await ctx.snapshot.facts([int(keys[fact]) for fact, _ in pairs])
    texts = {pair: facts[int(keys[pair[0]])].text for pair in pairs}
    full = [pair for pair in pairs if _measure_length(texts[pair]) >= _MIN_SENTENCE_CHARS] or pairs
    return full, [texts[pair] for pair in full]


def _measure_length(text: str) -> int:
    """Return the length of a text in letters; a character that is a word counts as three."""
    return len(text) + 2 * len(UNSPACED_CHAR.findall(text))


async def _query_vector(ctx: Context, found: Found) -> NDArray[np.float32]:
    """Return the question's vector, shifted towards the part beside its names."""
    whole = await ctx.vector()
    if is_open_request(found.rest):
        return whole
    return np.asarray((whole + 2 * await ctx.vector(found.rest)) / 3, np.float32)


def _best_per_passage(sentences: Sequence[_ScoredFact]) -> list[_ScoredFact]:
    best: dict[int, _ScoredFact] = {}
    for sentence in sentences:
        current = best.get(sentence.chunk)
        if current is None or sentence.cosine > current.cosine:
            best[sentence.chunk] = sentence
    return list(best.values())


async def _cite_facts(
    ctx: Context, evidence: Evidence, sentences: Sequence[_ScoredFact]
) -> tuple[Citation, ...]:
    """Cite each sentence in its passage; the quote is cut from the document itself."""
    fact_keys, chunk_keys = ctx.view.keys("fact"), ctx.view.keys("chunk")
    supports = await ctx.snapshot.supports("fact", [int(fact_keys[s.at]) for s in sentences])
    chunks = await ctx.snapshot.chunks([int(chunk_keys[s.chunk]) for s in sentences])
    docs = {passage.id: passage.doc for passage in evidence.chunks}
    found = []
    for sentence in sentences:
        chunk = chunks[int(chunk_keys[sentence.chunk])]
        places: list[Support] = supports[int(fact_keys[sentence.at])]
        place = next(p for p in places if p.chunk == chunk.id)
        quote = chunk.text[place.start - chunk.start : place.end - chunk.start]
        doc = docs.get(chunk.id, chunk.document)
        found.append(Citation(doc, chunk.id, place.start, place.end, quote))
    return tuple(found)


# -- summary of one entity


def is_open_request(rest: str) -> bool:
    """Whether a question, without its names, asks for nothing in particular."""
    return _OPEN_REQUEST.fullmatch(rest) is not None


def _quote_summary(name: str, passages: Sequence[Passage]) -> tuple[Citation, ...]:
    """Quote the first sentences of the sections about `name`."""
    found: list[Citation] = []
    for passage in passages:
        for start, end in find_sections(name, passage):
            found += [
                make_citation(passage, SupportSpan(start + a, start + b, 1.0))
                for a, b in sentence_spans(passage.text[start:end])
            ]
    return tuple(found[:_MAX_SUMMARY_SENTENCES])
