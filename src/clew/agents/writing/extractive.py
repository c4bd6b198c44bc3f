"""An answer without a model: the sentences that bear on the question, quoted and cited.

The candidate is the name, date or number that the best passages support most; it is a pointer for
the reader, clearly labelled, not a composed answer.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.agents.answer import Answer, Mode, Verdict
from clew.agents.planning.aim import Aim, aim_of, asks_kind
from clew.agents.planning.patterns import Spotted
from clew.agents.writing.by_path import answer_by_path, has_answers
from clew.agents.writing.portrait import asks_nothing, portrait
from clew.agents.writing.support import Place, citation
from clew.agents.writing.whereabouts import asks_where, no_place
from clew.agents.writing.wordings import CANDIDATE, unwritten
from clew.context import Context
from clew.names import name_key
from clew.sentences import sentence_spans
from clew.text import words
from clew.types import LITERALS, Citation, Entity, Evidence, Found, Support

QUOTED = "this is quoted evidence, not a composed answer"

_WHEN = re.compile(
    r"\b(when|what (?:year|date|day|month|century)|which (?:year|date)|date of)\b", re.I
)
_HOW_MANY = re.compile(
    r"\bhow (?:many|much|long|old|tall|far|large|big|high)\b|\bnumber of\b", re.I
)
# Questions that no name answers.
YES_OR_NO = re.compile(r"(?:is|was|are|were|do|does|did|has|have|had|can|could|will)\b", re.I)
_QUOTED_PASSAGES = 5
_QUOTES = 3
_SHORTEST = 25  # characters; shorter sentences are headings and stubs
# Below this cosine a sentence has nothing to do with the question (MiniLM, unrelated pairs).
_UNRELATED = 0.25
_SHARPNESS = 6.0
_WALKED = 0.15  # a sentence that the walk went through bears that much more on the question
_FAR = 60  # characters at which a name counts half


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A fact of one of the best passages, with how much it bears on the question."""

    at: int
    chunk: int
    cosine: float
    weight: float


async def extractive_answer(ctx: Context, evidence: Evidence, found: Found, mode: Mode) -> Answer:
    """Quote the best sentences of the best passages, and name the best-supported candidate."""
    if has_answers(found):
        return await answer_by_path(ctx, evidence, found)
    aim = aim_of(ctx.view, ctx.question)
    if mode == "reject" and (missing := aim.missing(evidence.chunks)):
        return _refused(ctx, evidence, missing)
    if len(aim.names) == 1 and asks_nothing(found.rest):
        if told := portrait(aim.names[0], evidence.chunks):
            return _answer(ctx, evidence, _quoted(told), told)
    seen = aim.read(evidence.chunks)
    sentences = await _sentences(ctx, found)
    closest = max((s.cosine for s in sentences), default=0.0)
    unrelated = mode == "reject" and closest < _UNRELATED
    if not sentences or (unrelated and seen is None):
        return _refused(ctx, evidence, "no passage that bears on the question was found")
    quoted = _best_of_each(sentences)[:_QUOTES]
    citations = await _cited(ctx, evidence, quoted)
    if seen is not None:
        candidate, citations = seen.text, _seen_first(seen, citations)
    else:
        candidate = await _guessed(ctx, found, aim, quoted, citations, evidence)
    if mode == "reject" and not candidate and (aim.direct or aim.compared):
        return _refused(ctx, evidence, f"no passage says: {ctx.question}")
    text = _quoted(citations)
    if candidate:
        marks = "".join(
            f"[{n}]"
            for n, c in enumerate(citations, 1)
            if candidate.casefold() in c.quote.casefold()
        )
        text = f"{CANDIDATE} {candidate} {marks}\n{text}"
    return _answer(ctx, evidence, text, citations, candidate)


def _quoted(citations: Sequence[Citation]) -> str:
    return "\n".join(f"“{c.quote}” [{n}]" for n, c in enumerate(citations, start=1))


def _seen_first(seen: Spotted, citations: tuple[Citation, ...]) -> tuple[Citation, ...]:
    """The sentence that says it, then the others."""
    spans = sentence_spans(seen.passage.text)
    start = max((s for s, _ in spans if s <= seen.start), default=seen.start)
    end = min((e for _, e in spans if e >= seen.end), default=seen.end)
    said = citation(seen.passage, Place(start, end, 1.0))
    others = (
        c for c in citations if c.chunk != said.chunk or c.end <= said.start or c.start >= said.end
    )
    return (said, *others)[:_QUOTES]


async def _guessed(
    ctx: Context,
    found: Found,
    aim: Aim,
    quoted: Sequence[_Sentence],
    citations: Sequence[Citation],
    evidence: Evidence,
) -> str:
    """The best-supported candidate, where a name near the question may well be its answer.

    Of a comparison only the compared could be, and which of them no likeness tells.
    """
    if aim.compared or YES_OR_NO.match(ctx.question) or asks_kind(ctx.question) == "":
        return ""
    if not aim.understood:
        return ""
    home = {passage.id: passage for passage in evidence.chunks}
    places = [(cited, home.get(cited.chunk)) for cited in citations]
    telling = [
        sentence for sentence, place in zip(quoted, places, strict=True) if aim.bears(*place)
    ]
    candidate = await _candidate(ctx, found, telling)
    return candidate if candidate and aim.told(candidate, places) else ""


def _refused(ctx: Context, evidence: Evidence, missing: str) -> Answer:
    return _answer(ctx, evidence, f"Refused: {missing}.", (), refused=True)


def _answer(
    ctx: Context,
    evidence: Evidence,
    text: str,
    citations: tuple[Citation, ...],
    candidate: str = "",
    *,
    refused: bool = False,
) -> Answer:
    verdict: Verdict = "refused" if refused else "answered"
    note = unwritten(ctx, QUOTED)
    return Answer(ctx.question, "", text, verdict, citations, evidence, (), 0.0, candidate, note)


async def _sentences(ctx: Context, found: Found) -> list[_Sentence]:
    """The facts of the best passages, weighed by passage rank and by likeness to the question."""
    view = ctx.view
    links = view.links("chunk_fact")
    pairs = [
        (int(fact), hit.at, rank)
        for rank, hit in enumerate(found.chunks[:_QUOTED_PASSAGES], start=1)
        for fact in links.row(hit.at)
    ]
    pairs = await _with_words(ctx, pairs)
    if not pairs:
        return []
    positions = np.array([fact for fact, _, _ in pairs])
    if ctx.embed is None:
        cosines = np.full(len(pairs), _UNRELATED, np.float32)
    else:
        cosines = view.similar("fact", await _asked(ctx, found), positions)
        cosines[cosines == -1] = _UNRELATED  # facts of a graph need not be embedded
    walked = {fact for path in found.paths for fact in path.facts}
    return [
        _Sentence(
            fact,
            chunk,
            float(cosine) + (_WALKED if fact in walked else 0.0),
            float(np.exp(_SHARPNESS * cosine)) / rank * (2.0 if fact in walked else 1.0),
        )
        for (fact, chunk, rank), cosine in zip(pairs, cosines, strict=True)
    ]


async def _with_words(
    ctx: Context, pairs: list[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    """Leave out headings and stubs, unless there is nothing else to quote."""
    keys = ctx.view.keys("fact")
    facts = await ctx.snapshot.facts([int(keys[fact]) for fact, _, _ in pairs])
    full = [p for p in pairs if len(facts[int(keys[p[0]])].text) >= _SHORTEST]
    return full or pairs


async def _asked(ctx: Context, found: Found) -> NDArray[np.float32]:
    """The question's direction, turned towards what it asks of the things it names."""
    whole = await ctx.vector()
    if asks_nothing(found.rest):
        return whole
    return np.asarray((whole + 2 * await ctx.vector(found.rest)) / 3, np.float32)


def _best_of_each(sentences: Sequence[_Sentence]) -> list[_Sentence]:
    """One sentence per passage, in the passages' order."""
    best: dict[int, _Sentence] = {}
    for sentence in sentences:
        held = best.get(sentence.chunk)
        if held is None or sentence.cosine > held.cosine:
            best[sentence.chunk] = sentence
    return list(best.values())


async def _cited(
    ctx: Context, evidence: Evidence, sentences: Sequence[_Sentence]
) -> tuple[Citation, ...]:
    """Each sentence where its passage says it; the quote is cut from the document itself."""
    fact_keys, chunk_keys = ctx.view.keys("fact"), ctx.view.keys("chunk")
    said = await ctx.snapshot.supports("fact", [int(fact_keys[s.at]) for s in sentences])
    chunks = await ctx.snapshot.chunks([int(chunk_keys[s.chunk]) for s in sentences])
    docs = {passage.id: passage.doc for passage in evidence.chunks}
    found = []
    for sentence in sentences:
        chunk = chunks[int(chunk_keys[sentence.chunk])]
        places: list[Support] = said[int(fact_keys[sentence.at])]
        place = next(p for p in places if p.chunk == chunk.id)
        quote = chunk.text[place.start - chunk.start : place.end - chunk.start]
        doc = docs.get(chunk.id, chunk.document)
        found.append(Citation(doc, chunk.id, place.start, place.end, quote))
    return tuple(found)


async def _candidate(ctx: Context, found: Found, sentences: Sequence[_Sentence]) -> str:
    """The entity of the asked kind that the best sentences support most."""
    members = ctx.view.links("fact_entity")
    keys, fact_keys = ctx.view.keys("entity"), ctx.view.keys("fact")
    facts = await ctx.snapshot.facts([int(fact_keys[s.at]) for s in sentences])
    inside = {int(entity) for s in sentences for entity in members.row(s.at)}
    entities = await ctx.snapshot.entities([int(keys[at]) for at in inside])
    asked_words = [word[:5] for word in words(ctx.question) if len(word) > 3]
    support: dict[int, float] = defaultdict(float)
    for sentence in sentences:
        text = facts[int(fact_keys[sentence.at])].text.casefold()
        for entity in members.row(sentence.at).tolist():
            near = _nearness(entities[int(keys[entity])].name.casefold(), text, asked_words)
            support[entity] = max(support[entity], sentence.weight * near)
    said = "\n".join(fact.text for fact in facts.values()).casefold()
    asked = f" {name_key(ctx.question)} "
    ranked = sorted(support, key=lambda at: (-support[at], at))
    linked = {hit.at for hit in found.entities}
    fits = [
        entity
        for at in ranked
        if (entity := entities.get(int(keys[at]))) is not None
        and at not in linked
        and entity.name.casefold() in said  # a name the quotes do not say cannot be cited
        and f" {name_key(entity.name)} " not in asked
    ]
    wanted = _asked_type(ctx.question)
    of_type = [entity for entity in fits if _is_of(entity, wanted)]
    if not of_type or (asks_where(ctx.question) and no_place(of_type[0], facts.values())):
        return ""  # what comes second is hardly ever the place either
    return of_type[0].name


def _nearness(name: str, text: str, asked: Sequence[str]) -> float:
    """How near a name stands to a word of the question; names the sentence only implies: half."""
    at = text.find(name)
    if at < 0:
        return 0.5
    gaps = [at - (spot + len(word)) for word in asked if (spot := text.rfind(word, 0, at)) >= 0]
    gaps += [
        spot - at - len(name) for word in asked if (spot := text.find(word, at + len(name))) >= 0
    ]
    return 1 / (1 + max(0, min(gaps, default=_FAR)) / _FAR)


def _asked_type(question: str) -> str:
    if kind := asks_kind(question):
        return kind
    if _WHEN.search(question):
        return "date"
    return "number" if _HOW_MANY.search(question) else "name"


def _is_of(entity: Entity, wanted: str) -> bool:
    if wanted == "name":
        return entity.type not in LITERALS
    return entity.type == wanted
