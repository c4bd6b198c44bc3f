"""Map-reduce agent over community reports: extract scored points, then combine the best ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, Field

from clew.agents.answering.extractive import QUOTED_NOTE
from clew.agents.answering.finish import conclude, run_with_fallback
from clew.agents.answering.write import make_answer, make_refusal
from clew.agents.citing.check import check_short_answer, cite_claims, mark_sentences
from clew.agents.citing.entailment import contains_names_and_numbers, has_same_polarity, parse_claim
from clew.agents.citing.support import has_invented_name, measure_overlap
from clew.agents.core.messages import explain_not_written
from clew.agents.core.scratchpad import Notebook, RecordingRetriever
from clew.agents.core.types import Answer, Mode, run_concurrently
from clew.context import Context
from clew.llm.chat import UNUSABLE_REPLY, Request
from clew.llm.fit_prompt import shorten_text
from clew.llm.openai_api import estimate_tokens
from clew.llm.parse import Out
from clew.llm.prompt import Prompt
from clew.retrieve.step import Step
from clew.text.language import prompt_language
from clew.text.names import name_key
from clew.text.unicode import split_words
from clew.types import Citation, Evidence, Report

_MAX_REPLY_TOKENS = 500  # tokens of one reply
_INSTRUCTION_TOKENS = 500  # of a prompt without its inputs
_MIN_ROOM = 64  # tokens of reports shown however small the window is
_MIN_OVERLAP = 0.25  # share of a sentence's words: a summary shares few with each source
_MAX_CITATIONS = 3  # citations of one sentence
_MAX_QUOTES = 5
_MIN_COSINE = 0.25  # cosine, as for single passages


class ReportPoint(BaseModel, title="Noted"):
    """A point of one reader."""

    text: str
    score: float = 0.0
    reports: list[int] = Field(default_factory=list)


class ReportPoints(BaseModel, title="Notes"):
    """What a reader of some reports answers."""

    points: list[ReportPoint] = Field(default_factory=list)


class ReducedSentence(BaseModel, title="Joined"):
    """A sentence of the answer and the points it is from."""

    text: str
    points: list[int] = Field(default_factory=list)


class ReducedAnswer(BaseModel, title="Reduced"):
    """What the last reader answers."""

    enough: bool = True
    sentences: list[ReducedSentence] = Field(default_factory=list)
    short: str = ""
    missing: str = ""


MAP_REPORTS = Prompt("map_reports", ReportPoints, {"reports", "question"}, documents={"reports"})
REDUCE_POINTS = Prompt("reduce_points", ReducedAnswer, {"points", "question"}, documents={"points"})


@dataclass(frozen=True, slots=True)
class ScoredPoint:
    """A point, its helpfulness score (0 to 100), and the reports it is from."""

    text: str
    score: float
    reports: tuple[Report, ...]


@dataclass(frozen=True)
class MapReduce:
    """Reads reports concurrently, `at_once` per call, and combines the best points."""

    at_once: int = 5
    points: int = 20
    top_k: int = 5
    map_tokens: int = 8000
    """Reports of one call; less where the model's window is smaller."""
    reduce_tokens: int = 8000
    """Points that are combined, best first."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Retrieve, map, reduce; without a model, quote the reports' sentences."""
        book = Notebook()
        return await run_with_fallback(ctx, book, mode, self._answer(ctx, book, retrieve, mode))

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        retrieval = await RecordingRetriever(retrieve, book, self.top_k)(ctx, ctx.question)
        if not retrieval.evidence.communities or ctx.modality == "text":
            return await conclude(ctx, book, mode)
        if ctx.chat("answer") is None:
            return await self._quote_reports(ctx, retrieval.evidence, mode)
        points = await self._map_reports(ctx, retrieval.evidence.communities)
        if not points:
            return make_refusal(ctx, retrieval.evidence, "no report is relevant to the question")
        return await self._reduce_points(ctx, retrieval.evidence, points, mode)

    # -- with a model

    async def _map_reports(self, ctx: Context, reports: Sequence[Report]) -> list[ScoredPoint]:
        room = await _find_room(ctx, self.map_tokens)
        batches = _make_batches(reports, self.at_once, room)
        async with ctx.step("map", f"{len(reports)} reports") as step:
            many = await run_concurrently(
                [_read_reports(step.ctx, batch, room) for batch in batches]
            )
            points = sorted((p for some in many for p in some), key=lambda p: -p.score)
            step.output = f"{len(points)} points"
        return points[: self.points]

    async def _reduce_points(
        self, ctx: Context, evidence: Evidence, points: Sequence[ScoredPoint], mode: Mode
    ) -> Answer:
        async with ctx.step("reduce", f"{len(points)} points") as step:
            lines = _rank_points(points, await _find_room(ctx, self.reduce_tokens))
            reply = await _ask_model(step.ctx, REDUCE_POINTS, points="\n".join(lines))
            said = "no usable reply" if reply is None else f"{len(reply.sentences)} sentences"
            left_out = len(points) - len(lines)
            step.output = f"{said}; {left_out} points left out" if left_out else said
        if reply is None:
            # Without a usable reply the points themselves are the answer.
            numbered = enumerate(points, start=1)
            reply = ReducedAnswer(
                sentences=[ReducedSentence(text=p.text, points=[n]) for n, p in numbered]
            )
        if mode == "reject" and not reply.enough:
            return make_refusal(
                ctx, evidence, reply.missing or "the reports do not contain the answer"
            )
        sentences, citations = await _cite_sentences(ctx, evidence, reply.sentences, points, mode)
        if not sentences:
            missing = reply.missing or "no sentence of the answer is supported by the documents"
            return make_refusal(ctx, evidence, missing)
        note = "" if citations else "no sentence of this answer was found in the documents"
        short = check_short_answer(ctx, reply.short, sentences, evidence.chunks, mode)
        return make_answer(ctx, evidence, " ".join(sentences), citations, short, note)

    # -- without

    async def _quote_reports(self, ctx: Context, evidence: Evidence, mode: Mode) -> Answer:
        """Quote the reports' citations that are nearest to the question, by community."""
        pairs = list(
            {c: (report, c) for report in evidence.communities for c in report.citations}.values()
        )
        vectors = await ctx.vectors([ctx.question, *(c.quote for _, c in pairs)])
        near = np.array([float(vector @ vectors[0]) for vector in vectors[1:]])
        if not len(near) or (mode == "reject" and near.max() < _MIN_COSINE):
            return make_refusal(ctx, evidence, "no report is relevant to the question")
        best = [pairs[at] for at in np.argsort(-near, kind="stable")[:_MAX_QUOTES].tolist()]
        lines = [f"{r.name}: “{c.quote}” [{n}]" for n, (r, c) in enumerate(best, start=1)]
        note = explain_not_written(ctx, QUOTED_NOTE)
        return make_answer(ctx, evidence, "\n".join(lines), [c for _, c in best], note=note)


async def _find_room(ctx: Context, tokens: int) -> int:
    """Return the tokens of reports or points that one prompt may hold."""
    taken = _INSTRUCTION_TOKENS + estimate_tokens(ctx.question)
    return max(_MIN_ROOM, min(tokens, await ctx.room("answer", _MAX_REPLY_TOKENS) - taken))


def _format_line(report: Report, room: int) -> str:
    """Format a report on one line of at most `room` tokens."""
    return shorten_text(" ".join(f"{report.name}: {report.summary}".split()), room - 4)


def _make_batches(reports: Sequence[Report], most: int, room: int) -> list[list[Report]]:
    """Group reports into batches of at most `most` that fit `room` tokens."""
    batches: list[list[Report]] = []
    left = 0
    for report in reports:
        size = estimate_tokens(_format_line(report, room)) + 4
        if not batches or len(batches[-1]) == most or size > left:
            batches.append([])
            left = room
        batches[-1].append(report)
        left -= size
    return batches


def _rank_points(points: Sequence[ScoredPoint], room: int) -> list[str]:
    """Number the points that fit, best first; the first is cut rather than left out."""
    lines: list[str] = []
    for number, point in enumerate(points, start=1):
        text = f"{number}. {' '.join(point.text.split())}"
        size = estimate_tokens(text) + 1
        if size > room and lines:
            break
        lines.append(shorten_text(text, room))
        room -= size
    return lines


async def _read_reports(ctx: Context, reports: Sequence[Report], room: int) -> list[ScoredPoint]:
    """Extract the points of a batch of reports; an unparsable reply yields none."""
    numbered = enumerate(reports, start=1)
    lines = "\n".join(f"[{n}] {_format_line(report, room)}" for n, report in numbered)
    reply = await _ask_model(ctx, MAP_REPORTS, reports=lines)
    found = []
    for point in reply.points if reply else ():
        sources = tuple(
            reports[n - 1] for n in dict.fromkeys(point.reports) if 0 < n <= len(reports)
        )
        if sources and point.text.strip() and point.score > 0:
            found.append(ScoredPoint(point.text.strip(), min(point.score, 100.0), sources))
    return found


async def _ask_model(ctx: Context, prompt: Prompt[Out], **inputs: str) -> Out | None:
    chat = ctx.chat("answer")
    assert chat is not None
    try:
        return await prompt.ask(
            chat,
            language=prompt_language(ctx.question),
            like=Request(max_tokens=_MAX_REPLY_TOKENS),
            question=ctx.question,
            **inputs,
        )
    except UNUSABLE_REPLY:
        return None


async def _cite_sentences(
    ctx: Context,
    evidence: Evidence,
    sentences: Sequence[ReducedSentence],
    points: Sequence[ScoredPoint],
    mode: Mode,
) -> tuple[list[str], list[Citation]]:
    """Cite the passages that say a sentence, or else the reports' quotes that support it together.

    A sentence without either is marked or dropped.
    """
    cited: list[tuple[str, list[Citation]]] = []
    for sentence in sentences:
        text = " ".join(sentence.text.split())
        if not text:
            continue
        cited_points = [points[n - 1] for n in sentence.points if 0 < n <= len(points)]
        reports = [report for point in cited_points for report in point.reports]
        # A summary need not say what one passage says.
        found = await cite_claims(ctx, text, (), evidence.chunks) or _find_citations(text, reports)
        cited.append((text, found))
    return mark_sentences(ctx, cited, mode)


def _find_citations(text: str, reports: Sequence[Report]) -> list[Citation]:
    """Find the quotes that support a sentence; none if they lack one of its names or numbers."""
    report_texts = [f"{report.name} {report.summary}" for report in reports]
    citations = dict.fromkeys(citation for report in reports for citation in report.citations)
    if has_invented_name(text, [*report_texts, *(citation.quote for citation in citations)]):
        return []
    shares = [
        (measure_overlap(text, c.quote), c) for c in citations if has_same_polarity(text, c.quote)
    ]
    good = sorted((one for one in shares if one[0] >= _MIN_OVERLAP), key=lambda one: -one[0])
    chosen = _select_covering(text, [citation for _, citation in good])
    covered_texts = [*(citation.quote for citation in chosen), *(report.name for report in reports)]
    return chosen if contains_names_and_numbers(text, covered_texts) else []


def _select_covering(text: str, best_first: Sequence[Citation]) -> list[Citation]:
    """Choose a few quotes greedily, by how many not yet covered names each one adds."""
    claim = parse_claim(text)
    uncovered = claim.names | claim.numbers
    chosen: list[Citation] = []
    rest = list(best_first)
    while rest and len(chosen) < _MAX_CITATIONS:
        new = [len(uncovered & _words(citation)) for citation in rest]
        if chosen and not any(new):
            break  # it would support nothing that the others do not
        best = rest.pop(max(range(len(rest)), key=lambda at: new[at]))  # the first of equals
        uncovered -= _words(best)
        chosen.append(best)
    return chosen


def _words(citation: Citation) -> set[str]:
    return {*name_key(citation.quote).split(), *split_words(citation.quote)}
