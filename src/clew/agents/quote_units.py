"""Answer from documents that are more than prose: units are quoted, and a name only if it is sure.

A span that is read in a manual or a table is often a word of the sentence that announces the
answer. It is named as the answer where its confidence is high; else the units that fit the question
best are quoted, and nothing is named.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from clew.agents.answering.asked_entry import cut_to_entries
from clew.agents.answering.asked_term import AskedTerm
from clew.agents.answering.cells import find_asked_cell
from clew.agents.answering.exact_terms import (
    ExactUnit,
    find_exact_terms,
    find_exact_unit,
)
from clew.agents.answering.extractive import (
    QUOTED_NOTE,
    format_quotes,
    is_open_request,
    overlaps,
)
from clew.agents.answering.lacking import find_unsaid
from clew.agents.answering.parts import renumber
from clew.agents.answering.quote_block import has_entries, has_items
from clew.agents.answering.statements import cut_to_statement
from clew.agents.answering.steps import wants_steps
from clew.agents.answering.units import (
    ScoredUnit,
    choose_units,
    gather_signs,
    rank_units,
)
from clew.agents.answering.whole_list import cite_whole
from clew.agents.answering.write import LIST_BREAK, make_answer
from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.core.confidence import JUDGED
from clew.agents.core.messages import CANDIDATE_LABEL, explain_not_written
from clew.agents.core.types import Answer
from clew.agents.judge import judge_answer
from clew.agents.reading.lists import is_enumeration, wants_several
from clew.agents.reading.spans import answer_key
from clew.agents.rules.question_analysis import find_wanted_block
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.retrieve.blend import names_lead_on
from clew.text.announced import ANNOUNCES
from clew.text.code_outline import is_code
from clew.text.definitions import defines_term
from clew.text.places import find_note, has_examples, quotable_unit
from clew.text.structure import find_blocks, has_structure
from clew.types import Citation, Evidence, Found, Passage

_QUOTES = 3
# A further unit is quoted if it fits nearly as well as the best, or has a word that others lack.
_AS_GOOD, _MORE = 0.7, 0.02  # share of the best score, and of the question's words by rarity
_PARTS = ("code", "item", "definition", "row", "header")  # kinds of blocks
# A row as it is read from a table: each value has the name of its column.
_ROW = re.compile(r"[^\n:;]{1,60}: [^\n;]*(?:; [^\n:;]{1,60}: [^\n;]*)+\.")
_NOTE_MARK = re.compile(r"(?<=[^\n])\[(\^?[^\s\[\]^]{1,20})\](?!\()")
_LOOKED_AT = 5  # passages of which most must have a structure
_NAMED = 0.5  # confidence from which an answer is named, and steps are quoted alone
_QUESTION_WORD = re.compile(r"\b(?:who|whom|whose|when|where|which|what|how|why)\b", re.IGNORECASE)
# What is asked for is one thing that has a name or a value, not how, why or what it means.
_ONE_THING = re.compile(
    r"(?:who|whom|whose|when|where|which|how (?:many|much|long|large|big|old|far|often))\b"
    r"|what (?:is|are|was|were) the\b(?!.*\b(?:difference|purpose|for)\b)"
    r"|what (?!is\b|are\b|was\b|were\b|do\b|does\b|did\b|if\b|can\b|happens?\b|should\b)\w+",
    re.IGNORECASE,
)


async def is_technical(ctx: Context, passages: Sequence[Passage]) -> bool:
    """Whether most passages are sections of long documents, or have lists, tables or code.

    Not where names lead on from page to page, as in an encyclopedia.
    """
    some = passages[:_LOOKED_AT]
    structured = sum(bool(one.heading) or is_code(one.doc) or has_parts(one.text) for one in some)
    return 2 * structured > len(some) and not await names_lead_on(ctx)


def has_parts(text: str) -> bool:
    """Whether a text has more than headings and sentences, or is the row of a table."""
    if _ROW.fullmatch(text.strip()):
        return True
    return has_structure(text) and any(b.kind in _PARTS for b in find_blocks(text))


async def quote_units(ctx: Context, answer: Answer, found: Found, *, keep: bool = False) -> Answer:
    """Return the answer with units as its quotes, judged; without its name if that is not sure.

    What the scorer judged is named with its own confidence, else it must be surer than the quotes.
    With `keep` its own quotes come first as they are.
    """
    passages = answer.evidence.chunks
    stepwise = await wants_steps(ctx)  # a span does not say how
    if answer.verdict == "refused" or not (stepwise or await is_technical(ctx, passages)):
        return answer
    judged = await judge_answer(ctx, answer)
    if judged.kind == "steps" and judged.confidence >= _NAMED:
        return _show_quotes(judged, judged.citations)  # nothing of another section belongs to them
    listed = wants_several(ctx.question) and LIST_BREAK.search(judged.candidate) is not None
    quotes = [one.quote for one in answer.citations]
    whole = listed and is_enumeration(ctx.question, judged.candidate, quotes)
    one = not listed and asks_one_thing(ctx.question)
    may_name = bool(judged.candidate) and (judged.computed or whole or one)
    signs = await gather_signs(ctx, found, passages)
    ranked = rank_units(signs, passages)

    def choose(kept: Sequence[Citation]) -> list[Citation]:
        if keep and _defines_asked(ctx.question, answer, kept):
            return list(kept)
        units = choose_units(ranked, 2 * _QUOTES)
        if not (keep or stepwise or wants_several(ctx.question)):
            units = [cut_to_statement(signs, one) for one in units]
        return _fill_up(kept, units, signs.words)

    kept = choose(_widen_citations(answer, passages))
    if judged.confidence < _NAMED:  # what fits the question best comes before what is unsure
        kept = _put_best_first(kept, ranked)
    named = _show_quotes(judged, kept, judged.candidate)
    if may_name and (judged.confidence >= _NAMED or JUDGED in judged.signals):
        return named
    chosen = choose(answer.citations if keep else ())
    if not chosen:
        return judged
    unnamed = replace(_show_quotes(judged, chosen), note=explain_not_written(ctx, QUOTED_NOTE))
    quoted = await judge_answer(ctx, unnamed)
    return named if may_name and judged.confidence > quoted.confidence else quoted


def _show_quotes(answer: Answer, chosen: Sequence[Citation], short: str = "") -> Answer:
    """Return an answer that shows these quotes, and names a short answer if there is one."""
    text = format_quotes(chosen)
    text = f"{CANDIDATE_LABEL} {short}\n{text}" if short else text
    return replace(answer, answer=text, citations=tuple(chosen), candidate=short)


def _defines_asked(question: str, answer: Answer, kept: Sequence[Citation]) -> bool:
    """Whether what is quoted is, as a whole, the definition of a code that a question asks for."""
    terms = find_exact_terms(question)
    if not terms or find_wanted_block(question) != "definition":
        return False
    wide = _widen_citations(replace(answer, citations=tuple(kept)), answer.evidence.chunks)
    return any(defines_term(term, cited.quote) for term in terms for cited in wide)


def cite_exact(ctx: Context, evidence: Evidence, unit: ExactUnit) -> Answer:
    """Answer with one unit, and with what it names."""
    text = f"“{unit.citation.quote}” [1]"
    if unit.short:
        text = f"{CANDIDATE_LABEL} {unit.short} [1]\n{text}"
    note = explain_not_written(ctx, QUOTED_NOTE)
    answer = make_answer(ctx, evidence, text, (unit.citation,), unit.short, note)
    return replace(answer, computed=bool(unit.short))  # its key and column chose it, no reader


async def keep_exact(ctx: Context, answer: Answer, asked: AskedTerm | None) -> Answer:
    """Return the answer from the cell that is asked for, or the definition with the question's
    values, where one has them; or the term that is asked for by its definition.

    What only repeats the question is quoted, not named.
    """
    if answer.verdict == "refused" or not answer.citations:
        return answer
    passages = answer.evidence.chunks
    unit = await find_asked_cell(ctx, passages)
    if unit is None and asked is not None and asked.leads:
        unit = asked.unit
    if unit is None:
        unit = find_exact_unit(ctx.question, answer.citations[-1], passages)
    if unit is not None:
        if unit.short and answer_key(unit.short) in answer_key(ctx.question):
            unit = replace(unit, short="")  # the row is asked about; another cell of it answers
        return replace(cite_exact(ctx, answer.evidence, unit), support=answer.support)
    if repeats_question(ctx.question, answer):
        quotes = format_quotes(answer.citations)
        note = explain_not_written(ctx, QUOTED_NOTE)
        return make_answer(ctx, answer.evidence, quotes, answer.citations, note=note)
    return answer


def repeats_question(question: str, answer: Answer) -> bool:
    """Whether an answer to "what is X" names X itself, or only a number beside it."""
    if not answer.candidate or find_wanted_block(question) != "definition":
        return False
    if answer_key(answer.candidate) in answer_key(question):
        return True
    bare = question
    for term in find_exact_terms(question):
        bare = bare.replace(term, " ")
    return answer.candidate.isdigit() and bare != question and is_open_request(bare.strip("? "))


def widen_quotes(answer: Answer) -> Answer:
    """Return the answer with each quote as wide as its definition, or with the sentence before
    that it refers to, in documents that have such parts; and with what it announces.
    """
    homes = {passage.id: passage for passage in answer.evidence.chunks}
    text, found = answer.answer, list[Citation]()
    for cited in answer.citations:
        home = homes.get(cited.chunk)
        if home is not None and (is_code(home.doc) or _may_widen(home.text, cited.quote)):
            at, end = cited.start - home.start, cited.end - home.start
            unit = quotable_unit(home.text, at, end, doc=home.doc)
            wide = ScoredUnit(home, unit, 0.0).cite()
            if wide.start <= cited.start and cited.end <= wide.end and wide != cited:
                text = text.replace(f"“{cited.quote}”", f"“{wide.quote}”", 1)
                cited = wide
        found.append(cited)
    return replace(answer, answer=text, citations=tuple(found))


def _may_widen(text: str, quote: str) -> bool:
    """Whether a quote may lack a part of its unit: no row of a table does."""
    if _ROW.fullmatch(text.strip()):
        return False
    return quote.rstrip().endswith(ANNOUNCES) or has_parts(text) or has_examples(text)


async def complete_lists(ctx: Context, found: Found, answer: Answer) -> Answer:
    """Return an answer of quotes with the lists among them whole, where these are wanted."""
    if answer.candidate or find_wanted_block(ctx.question) not in ("steps", "list"):
        return answer
    parts, evidence = list[Citation](), answer.evidence
    for cited in answer.citations:
        if has_items(cited.quote) or has_entries(cited.quote):
            whole = await cite_whole(ctx, evidence, found, cited)
            parts, evidence = [*parts, *whole.parts], whole.evidence
        else:
            parts.append(cited)
    parts = [one for one in dict.fromkeys(parts) if not _is_within(one, parts)]
    if tuple(parts) == answer.citations:
        return answer
    return _show_quotes(replace(answer, evidence=evidence), parts)


def _is_within(cited: Citation, others: Sequence[Citation]) -> bool:
    """Whether a citation is a part of another one."""
    return any(one != cited and one.chunk == cited.chunk and _lies_in(cited, one) for one in others)


def leave_out_others(question: str, answer: Answer) -> Answer:
    """Return the answer without entries of other terms, where a quote has the one asked for.

    `%w` is no neighbour to be told with `%W`.
    """
    answer = cut_to_entries(question, answer)
    terms = find_exact_terms(question)
    own = {c for c in answer.citations if any(defines_term(term, c.quote) for term in terms)}
    if not own or answer.candidate or find_wanted_block(question) != "definition":
        return answer
    kept = [c for c in answer.citations if c in own or not _is_definition(c.quote)]
    return answer if len(kept) == len(answer.citations) else _show_quotes(answer, kept)


def _is_definition(quote: str) -> bool:
    return any(block.kind == "definition" and not block.start for block in find_blocks(quote))


def add_notes(answer: Answer) -> Answer:
    """Return the answer with the footnotes that its quotes refer to, as further quotes."""
    if answer.parts or not answer.citations:
        return answer
    found = list(answer.citations)
    for cited in answer.citations:
        if f"“{cited.quote}”" in answer.answer:
            homes = (p for p in answer.evidence.chunks if p.doc == cited.doc)
            pairs = product(homes, dict.fromkeys(_NOTE_MARK.findall(cited.quote)))
            notes = [(home, span) for home, mark in pairs if (span := find_note(home.text, mark))]
            found += [make_citation(home, SupportSpan(*span, 1.0)) for home, span in notes]
    new = [
        note
        for note in dict.fromkeys(found[len(answer.citations) :])
        if not any(overlaps(note, one) for one in answer.citations)
    ]
    lines = (f"“{one.quote}” [{n}]" for n, one in enumerate(new, len(answer.citations) + 1))
    text = "\n".join((answer.answer, *lines))
    return replace(answer, answer=text, citations=(*answer.citations, *new))


def drop_repeats(answer: Answer) -> Answer:
    """Return the answer without quotes that repeat an earlier one, or hold it, or are in it.

    Citations of the same span have one number in any answer; an answer in parts stays as it is.
    """
    kept, numbers, text = list[Citation](), dict[int, int](), answer.answer
    for number, cited in enumerate(answer.citations, start=1):
        quoted = f"“{cited.quote}” [{number}]"
        # What a sentence only cites is not quoted yet.
        shown = [quoted in text and f"“{c.quote}”" in text for c in kept]
        same = (m for m, c in enumerate(kept, 1) if _repeats(cited, c, loosely=shown[m - 1]))
        if (first := next(same, 0)) and not answer.parts:
            text = re.sub(rf"\n?{re.escape(quoted)}(?=\n|\Z)", "", text, count=1)
            numbers[number] = first
        else:
            kept.append(cited)
            numbers[number] = len(kept)
    if len(kept) == len(answer.citations):
        return answer
    return replace(answer, answer=renumber(text, numbers), citations=tuple(kept))


def _repeats(one: Citation, other: Citation, *, loosely: bool) -> bool:
    """Whether two citations are of one span; loosely: one holds the other, or says the same."""
    if one.doc == other.doc and (one.start, one.end) == (other.start, other.end):
        return True
    if not loosely:
        return False
    nested = _lies_in(one, other) or _lies_in(other, one)
    return (one.doc == other.doc and nested) or one.quote == other.quote


def _lies_in(one: Citation, other: Citation) -> bool:
    """Whether the span of a citation is a part of the other's, or the same."""
    return other.start <= one.start and one.end <= other.end


def asks_one_thing(question: str) -> bool:
    """Whether one name or value can answer a question."""
    if find_wanted_block(question):
        return False
    first = _QUESTION_WORD.search(question)
    if first is None:
        return bool(table_for(question).find_answer_kind(question))
    return _ONE_THING.match(question, first.start()) is not None


def _widen_citations(answer: Answer, passages: Sequence[Passage]) -> list[Citation]:
    """Return the citations of an answer, each as wide as the unit around it."""
    homes = {passage.id: passage for passage in passages}
    found = []
    for cited in answer.citations:
        home = homes.get(cited.chunk)
        if home is not None:
            at, end = cited.start - home.start, cited.end - home.start
            unit = quotable_unit(home.text, at, end, doc=home.doc)
            cited = ScoredUnit(home, unit, 0.0).cite()
        found.append(cited)
    return list(dict.fromkeys(found))[:_QUOTES]


def _fill_up(
    kept: Sequence[Citation], units: Sequence[ScoredUnit], words: Mapping[str, float]
) -> list[Citation]:
    """Return the citations, and further units that add something until there are enough."""
    found = list(kept)
    for unit in units:
        one = unit.cite()
        if len(found) >= _QUOTES:
            break
        apart = (c.chunk != one.chunk or c.end <= one.start or one.end <= c.start for c in found)
        as_good = not found or unit.score >= _AS_GOOD * units[0].score
        if all(apart) and (as_good or _says_more(one, found, words)):
            found.append(one)
    return found


def _put_best_first(kept: Sequence[Citation], ranked: Sequence[ScoredUnit]) -> list[Citation]:
    """Return quotes with the one first that holds the best unit, if one does."""
    best = ranked[0].cite() if ranked else None
    held = [c for c in kept if best and overlaps(c, best)]
    return [*held[:1], *(c for c in kept if c not in held[:1])]


def _says_more(one: Citation, found: Sequence[Citation], words: Mapping[str, float]) -> bool:
    """Whether a quote has a word of the question that those before and their headings lack."""
    lacking = find_unsaid(words, " ".join(f"{c.heading} {c.quote}" for c in found))
    left = find_unsaid(lacking, f"{one.heading} {one.quote}")
    return sum(lacking.values()) - sum(left.values()) >= _MORE
