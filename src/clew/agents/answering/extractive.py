"""Extractive answer without a model: the most relevant sentences, quoted and cited.

Where a recipe ranks entities as answers, these are named; "Tell me about X" quotes what is about X.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clew.agents.answering.write import make_answer, make_refusal
from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.core.messages import CANDIDATE_LABEL, explain_not_written
from clew.agents.core.types import Answer, Mode
from clew.agents.rules.english_answers import PatternMatch
from clew.agents.rules.question_analysis import (
    QuestionAnalysis,
    analyse_question,
    find_cjk_answer_type,
)
from clew.agents.rules.sections_about import find_sections
from clew.context import Context
from clew.retrieve.rank import ANSWER_MARK
from clew.text.names import name_key
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words
from clew.types import (
    HEAD,
    LITERAL_TYPES,
    Citation,
    Entity,
    Evidence,
    Fact,
    Found,
    Participant,
    Passage,
    Path,
    Support,
)

QUOTED_NOTE = "this is quoted evidence, not a composed answer"
_ASKS_DATE = re.compile(
    r"\b(when|what (?:year|date|day|month|century)|which (?:year|date)|date of)\b", re.I
)
_ASKS_NUMBER = re.compile(
    r"\bhow (?:many|much|long|old|tall|far|large|big|high)\b|\bnumber of\b", re.I
)
# Questions that are not answered by a name.
_YES_NO_QUESTION = re.compile(
    r"(?:is|was|are|were|do|does|did|has|have|had|can|could|will)\b", re.I
)
_MAX_PASSAGES = 5
_MAX_QUOTES = 3
_MIN_SENTENCE_CHARS = 25  # characters; shorter sentences are headings and stubs
# Below this cosine a sentence has nothing to do with the question (MiniLM, unrelated pairs).
_MIN_COSINE = 0.25
_SHARPNESS = 6.0
_PATH_BONUS = 0.15  # added to the cosine of a fact on a retrieved path
_HALF_WEIGHT_CHARS = 60  # characters at which a name counts half
_PATH_NOTE = "these are the ends of the best paths in the graph"
# Share of the best score, as of the entities at the end of the same relation path.
_MIN_RELATIVE_SCORE = 0.5
_MAX_PATH_ANSWERS = 32
_MAX_CITED_PATHS = 8  # candidates whose paths are quoted
_MAX_SUMMARY_SENTENCES = 4  # sentences quoted
# Beside the name an open request has only such words.
_OPEN_REQUEST = re.compile(
    r"\W*(?:(?:please|kindly|can|could|you|i|want|tell|give|show|explain|describe|introduce|say|"
    r"write|summari[sz]e|what|who|is|are|was|were|do|does|know|me|us|about|of|on|to|the|an?|"
    r"more|everything|something|all|there)\b\W*)*",
    re.IGNORECASE,
)
_ASKS_WHERE = re.compile(r"\W*(?:(?:and|in|at|from)\s+)?where\b", re.I)
# A life event or dates in brackets: the person stands before them.
_LIFE_EVENT = re.compile(r"\b(?:born|died?)\b|\([^()]*\d{4}\s*[–—-]", re.I)
_PLACE_PREPOSITION = re.compile(r"\b(?:in|at|to|from|near|of)\s+(?:the\s+)?$", re.I)


@dataclass(frozen=True, slots=True)
class _ScoredFact:
    """A fact of one of the best passages, with its relevance to the question."""

    at: int
    chunk: int
    cosine: float
    weight: float


async def extract_answer(ctx: Context, evidence: Evidence, found: Found, mode: Mode) -> Answer:
    """Quote the best sentences of the best passages, and name the best-supported candidate."""
    if _has_ranked_answers(found):
        return await answer_from_paths(ctx, evidence, found)
    aim, note = analyse_question(ctx.view, ctx.question), explain_not_written(ctx, QUOTED_NOTE)
    if mode == "reject" and (missing := aim.explain_missing(evidence.chunks)):
        return _refuse(ctx, evidence, missing)
    if len(aim.names) == 1 and _is_open_request(found.rest):
        if summary := _quote_entity_summary(aim.names[0], evidence.chunks):
            return make_answer(ctx, evidence, _format_quotes(summary), summary, note=note)
    match = aim.match_answer(evidence.chunks)
    sentences = await _score_facts(ctx, found)
    closest = max((s.cosine for s in sentences), default=0.0)
    unrelated = mode == "reject" and closest < _MIN_COSINE
    if not sentences or (unrelated and match is None):
        return _refuse(ctx, evidence, "no relevant passage was found")
    quoted = _best_per_passage(sentences)[:_MAX_QUOTES]
    citations = await _cite_facts(ctx, evidence, quoted)
    if match is not None:
        candidate, citations = match.text, _cite_match_first(match, citations)
    else:
        candidate = await _choose_candidate(ctx, found, aim, quoted, citations, evidence)
    if mode == "reject" and not candidate and (aim.is_direct or aim.is_comparison):
        return _refuse(ctx, evidence, f"no passage answers: {ctx.question}")
    text = _format_quotes(citations)
    if candidate:
        marks = "".join(
            f"[{n}]"
            for n, c in enumerate(citations, 1)
            if candidate.casefold() in c.quote.casefold()
        )
        text = f"{CANDIDATE_LABEL} {candidate} {marks}\n{text}"
    return make_answer(ctx, evidence, text, citations, candidate, note)


def _format_quotes(citations: Sequence[Citation]) -> str:
    return "\n".join(f"“{c.quote}” [{n}]" for n, c in enumerate(citations, start=1))


def _cite_match_first(match: PatternMatch, citations: tuple[Citation, ...]) -> tuple[Citation, ...]:
    """Cite the sentence of a pattern match first, then the others."""
    spans = sentence_spans(match.passage.text)
    start = max((s for s, _ in spans if s <= match.start), default=match.start)
    end = min((e for _, e in spans if e >= match.end), default=match.end)
    main = make_citation(match.passage, SupportSpan(start, end, 1.0))
    others = (
        c for c in citations if c.chunk != main.chunk or c.end <= main.start or c.start >= main.end
    )
    return (main, *others)[:_MAX_QUOTES]


async def _choose_candidate(
    ctx: Context,
    found: Found,
    aim: QuestionAnalysis,
    quoted: Sequence[_ScoredFact],
    citations: Sequence[Citation],
    evidence: Evidence,
) -> str:
    """Return the best-supported candidate, where a name near the question may be its answer.

    For a comparison only the options could be, and similarity cannot decide between them.
    """
    if (
        aim.is_comparison
        or not aim.is_understood
        or _YES_NO_QUESTION.match(ctx.question)
        or find_cjk_answer_type(ctx.question) == ""
    ):
        return ""
    passages = {passage.id: passage for passage in evidence.chunks}
    places = [(cited, passages.get(cited.chunk)) for cited in citations]
    relevant = [
        sentence
        for sentence, place in zip(quoted, places, strict=True)
        if aim.accepts_quote(*place)
    ]
    candidate = await _best_supported_entity(ctx, found, relevant)
    return candidate if candidate and aim.confirms_candidate(candidate, places) else ""


def _refuse(ctx: Context, evidence: Evidence, missing: str) -> Answer:
    note = explain_not_written(ctx, QUOTED_NOTE)
    return replace(make_refusal(ctx, evidence, missing), note=note)


async def _score_facts(ctx: Context, found: Found) -> list[_ScoredFact]:
    """Score the facts of the best passages by passage rank and similarity to the question."""
    view = ctx.view
    links = view.links("chunk_fact")
    pairs = [
        (int(fact), hit.at, rank)
        for rank, hit in enumerate(found.chunks[:_MAX_PASSAGES], start=1)
        for fact in links.row(hit.at)
    ]
    pairs = await _drop_short_facts(ctx, pairs)
    if not pairs:
        return []
    positions = np.array([fact for fact, _, _ in pairs])
    if ctx.embed is None:
        cosines = np.full(len(pairs), _MIN_COSINE, np.float32)
    else:
        cosines = view.cosines("fact", await _query_vector(ctx, found), positions)
        cosines[cosines == -1] = _MIN_COSINE  # facts of a graph need not be embedded
    walked = {fact for path in found.paths for fact in path.facts}
    return [
        _ScoredFact(
            fact,
            chunk,
            float(cosine) + (_PATH_BONUS if fact in walked else 0.0),
            float(np.exp(_SHARPNESS * cosine)) / rank * (2.0 if fact in walked else 1.0),
        )
        for (fact, chunk, rank), cosine in zip(pairs, cosines, strict=True)
    ]


async def _drop_short_facts(
    ctx: Context, pairs: list[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    """Drop headings and stubs, unless there is nothing else to quote."""
    keys = ctx.view.keys("fact")
    facts = await ctx.snapshot.facts([int(keys[fact]) for fact, _, _ in pairs])
    full = [p for p in pairs if len(facts[int(keys[p[0]])].text) >= _MIN_SENTENCE_CHARS]
    return full or pairs


async def _query_vector(ctx: Context, found: Found) -> NDArray[np.float32]:
    """Return the question's vector, shifted towards the part beside its names."""
    whole = await ctx.vector()
    if _is_open_request(found.rest):
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


async def _best_supported_entity(
    ctx: Context, found: Found, sentences: Sequence[_ScoredFact]
) -> str:
    """Return the entity of the asked type that the best sentences support most."""
    members = ctx.view.links("fact_entity")
    keys, fact_keys = ctx.view.keys("entity"), ctx.view.keys("fact")
    facts = await ctx.snapshot.facts([int(fact_keys[s.at]) for s in sentences])
    inside = {int(entity) for s in sentences for entity in members.row(s.at)}
    entities = await ctx.snapshot.entities([int(keys[at]) for at in inside])
    asked_words = [word[:5] for word in split_words(ctx.question) if len(word) > 3]
    support: dict[int, float] = defaultdict(float)
    for sentence in sentences:
        text = facts[int(fact_keys[sentence.at])].text.casefold()
        for entity in members.row(sentence.at).tolist():
            near = _nearness(entities[int(keys[entity])].name.casefold(), text, asked_words)
            support[entity] = max(support[entity], sentence.weight * near)
    quoted_text = "\n".join(fact.text for fact in facts.values()).casefold()
    asked = f" {name_key(ctx.question)} "
    ranked = sorted(support, key=lambda at: (-support[at], at))
    linked = {hit.at for hit in found.entities}
    fits = [
        entity
        for at in ranked
        if (entity := entities.get(int(keys[at]))) is not None
        and at not in linked
        and entity.name.casefold() in quoted_text  # a name that no quote contains cannot be cited
        and f" {name_key(entity.name)} " not in asked
    ]
    wanted = _answer_type(ctx.question)
    of_type = [entity for entity in fits if _has_type(entity, wanted)]
    if not of_type or (asks_where(ctx.question) and is_located_entity(of_type[0], facts.values())):
        return ""  # the second candidate is hardly ever the place either
    return of_type[0].name


def _nearness(name: str, text: str, asked: Sequence[str]) -> float:
    """Weight a name by its distance to a word of the question; 0.5 if the text lacks the name."""
    at = text.find(name)
    if at < 0:
        return 0.5
    gaps = [at - (spot + len(word)) for word in asked if (spot := text.rfind(word, 0, at)) >= 0]
    gaps += [
        spot - at - len(name) for word in asked if (spot := text.find(word, at + len(name))) >= 0
    ]
    return 1 / (1 + max(0, min(gaps, default=_HALF_WEIGHT_CHARS)) / _HALF_WEIGHT_CHARS)


def _answer_type(question: str) -> str:
    if kind := find_cjk_answer_type(question):
        return kind
    if _ASKS_DATE.search(question):
        return "date"
    return "number" if _ASKS_NUMBER.search(question) else "name"


def _has_type(entity: Entity, wanted: str) -> bool:
    if wanted == "name":
        return entity.type not in LITERAL_TYPES
    return entity.type == wanted


# -- summary of one entity


def _is_open_request(rest: str) -> bool:
    """Whether a question, without its names, asks for nothing in particular."""
    return _OPEN_REQUEST.fullmatch(rest) is not None


def _quote_entity_summary(name: str, passages: Sequence[Passage]) -> tuple[Citation, ...]:
    """Quote the first sentences of the sections about `name`."""
    found: list[Citation] = []
    for passage in passages:
        for start, end in find_sections(name, passage):
            found += [
                make_citation(passage, SupportSpan(start + a, start + b, 1.0))
                for a, b in sentence_spans(passage.text[start:end])
            ]
    return tuple(found[:_MAX_SUMMARY_SENTENCES])


# -- places


def asks_where(question: str) -> bool:
    """Whether a question asks for a place by its first word."""
    return _ASKS_WHERE.match(question) is not None


def is_located_entity(entity: Entity, facts: Iterable[Fact]) -> bool:
    """Whether facts describe an entity as being somewhere, not as a place where something is."""
    mentioning = [fact for fact in facts if entity.name.casefold() in fact.text.casefold()]
    head = Participant(entity.id, HEAD)
    if any(fact.relation and head in fact.participants for fact in mentioning):
        return True
    return bool(mentioning) and all(_is_life_subject(entity, fact.text) for fact in mentioning)


def _is_life_subject(entity: Entity, text: str) -> bool:
    """Whether the entity is the subject of a life event: N in "N was born in Kiel"."""
    life = _LIFE_EVENT.search(text)
    at = text.casefold().find(entity.name.casefold())
    return (
        life is not None and 0 <= at < life.start() and _PLACE_PREPOSITION.search(text[:at]) is None
    )


# -- ends of paths


def _has_ranked_answers(found: Found) -> bool:
    return any(hit.by == ANSWER_MARK for hit in found.entities)


async def answer_from_paths(ctx: Context, evidence: Evidence, found: Found) -> Answer:
    """Name the entities that the best paths reach, and quote the paths of the first ones."""
    ranked = [hit for hit in found.entities if hit.by == ANSWER_MARK]
    likely = [hit for hit in ranked if hit.score >= _MIN_RELATIVE_SCORE * ranked[0].score][
        :_MAX_PATH_ANSWERS
    ]
    keys = ctx.view.keys("entity")
    entities = await ctx.snapshot.entities([int(keys[hit.at]) for hit in likely])
    names = [entities[int(keys[hit.at])].name for hit in likely]
    paths = [_first_path_to(found.paths, hit.at) for hit in likely[:_MAX_CITED_PATHS]]
    citations, marks = await _cite_paths(ctx, [path for path in paths if path is not None])
    text = ", ".join(
        f"{name} {''.join(f'[{n}]' for n in marks.get(hit.at, ()))}".strip()
        for name, hit in zip(names, likely, strict=True)
    )
    note = explain_not_written(ctx, _PATH_NOTE)
    return make_answer(ctx, evidence, text, citations, names[0], note)


def _first_path_to(paths: Sequence[Path], end: int) -> Path | None:
    return next((path for path in paths if path.entities[-1] == end), None)


async def _cite_paths(
    ctx: Context, paths: Sequence[Path]
) -> tuple[tuple[Citation, ...], dict[int, list[int]]]:
    """Return the citations of the paths' facts, and which of them support each end."""
    keys = ctx.view.keys("fact")
    facts = list(dict.fromkeys(fact for path in paths for fact in path.facts))
    supports = await ctx.snapshot.supports("fact", [int(keys[fact]) for fact in facts])
    chunk_keys, where = ctx.view.keys("chunk"), ctx.view.links("fact_chunk")
    wanted = {int(chunk_keys[at]) for fact in facts for at in where.row(fact)[:1].tolist()}
    chunks = {chunk.id: chunk for chunk in (await ctx.snapshot.chunks(sorted(wanted))).values()}
    names = await ctx.snapshot.names([chunk.document for chunk in chunks.values()])
    citations: list[Citation] = []
    number: dict[int, int] = {}
    for fact in facts:
        places = supports.get(int(keys[fact]), ())
        place = next((one for one in places if one.chunk in chunks), None)
        if place is None:
            continue
        chunk = chunks[place.chunk]
        quote = chunk.text[place.start - chunk.start : place.end - chunk.start]
        doc = (names.get(chunk.document) or (chunk.document,))[0]
        citations.append(Citation(doc, chunk.id, place.start, place.end, quote))
        number[fact] = len(citations)
    marks = {path.entities[-1]: [number[f] for f in path.facts if f in number] for path in paths}
    return tuple(citations), marks
