"""Answers over a whole corpus: reports yield scored points, the best points become one answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, Field

from clew.agents.agent import together
from clew.agents.answer import Answer, Mode
from clew.agents.notebook import Looked, Looker, Notebook
from clew.agents.writing.bearing import claim_of, names_and_numbers
from clew.agents.writing.denial import agree
from clew.agents.writing.extractive import QUOTED, extractive_answer
from clew.agents.writing.finish import bounded
from clew.agents.writing.support import invented, share_of
from clew.agents.writing.wordings import UNSUPPORTED, in_words_of, unwritten
from clew.agents.writing.written import answered, refusal, written_answer
from clew.context import Context
from clew.errors import ParseError
from clew.extract.language import prompt_language
from clew.llm.chat import Chat, Request
from clew.llm.prompt import Prompt
from clew.names import name_key
from clew.retrieve.step import Step
from clew.text import words
from clew.types import Citation, Evidence, Report

_LONGEST = 500  # tokens of one reply
_BORNE_OUT = 0.25  # of a sentence's words: a summing-up says little of each thing it sums up
_CITED = 3  # places cited for one sentence
_QUOTES = 5
_UNRELATED = 0.25  # cosine, as for single passages


class Noted(BaseModel):
    """A point of one reader."""

    text: str
    score: float = 0.0
    reports: list[int] = Field(default_factory=list)


class Notes(BaseModel):
    """What a reader of some reports answers."""

    points: list[Noted] = Field(default_factory=list)


class Joined(BaseModel):
    """A sentence of the answer and the points it is from."""

    text: str
    points: list[int] = Field(default_factory=list)


class Reduced(BaseModel):
    """What the last reader answers."""

    enough: bool = True
    sentences: list[Joined] = Field(default_factory=list)
    missing: str = ""


MAP = Prompt("map_reports", Notes, {"reports", "question"}, documents={"reports"})
REDUCE = Prompt("reduce_points", Reduced, {"points", "question"}, documents={"points"})


@dataclass(frozen=True, slots=True)
class Scored:
    """A point, how much it helps (0 to 100), and the reports behind it."""

    text: str
    score: float
    reports: tuple[Report, ...]


@dataclass(frozen=True)
class MapReduce:
    """Reads reports side by side, `at_once` a call, and puts the best points together."""

    at_once: int = 5
    points: int = 20
    top_k: int = 5

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Look, map, reduce; quote the reports' sentences when there is no model."""
        book = Notebook()
        return await bounded(ctx, book, mode, self._work(ctx, book, retrieve, mode))

    async def _work(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        looked = await Looker(retrieve, book, self.top_k)(ctx, ctx.question)
        if not looked.evidence.communities:
            return await self._without_reports(ctx, looked, mode)
        chat = ctx.chat("answer")
        if chat is None:
            return await self._quoted(ctx, looked.evidence, mode)
        points = await self._mapped(ctx, looked.evidence.communities)
        if not points:
            return refusal(ctx, looked.evidence, "no report bears on the question")
        return await self._reduced(ctx, looked.evidence, points, mode)

    async def _without_reports(self, ctx: Context, looked: Looked, mode: Mode) -> Answer:
        if ctx.chat("answer") is None:
            return await extractive_answer(ctx, looked.evidence, looked.found, mode)
        return await written_answer(ctx, looked.evidence, mode)

    # -- with a model

    async def _mapped(self, ctx: Context, reports: Sequence[Report]) -> list[Scored]:
        batches = [reports[at : at + self.at_once] for at in range(0, len(reports), self.at_once)]
        async with ctx.step("map", f"{len(reports)} reports") as step:
            many = await together([_noted(step.ctx, batch) for batch in batches])
            points = sorted((p for some in many for p in some), key=lambda p: -p.score)
            step.left = f"{len(points)} points"
        return points[: self.points]

    async def _reduced(
        self, ctx: Context, evidence: Evidence, points: Sequence[Scored], mode: Mode
    ) -> Answer:
        async with ctx.step("reduce", f"{len(points)} points") as step:
            said = await _put_together(step.ctx, points)
            step.left = "nothing usable" if said is None else f"{len(said.sentences)} sentences"
        if said is None:
            # The points are an answer in themselves when nobody joins them.
            said = Reduced(
                sentences=[Joined(text=p.text, points=[n]) for n, p in _numbered(points)]
            )
        if mode == "reject" and not said.enough:
            return refusal(ctx, evidence, said.missing or "the reports do not say it")
        lines, citations = _cited(ctx, said.sentences, points, mode)
        if not lines:
            missing = said.missing or "no sentence of the answer is borne out by the documents"
            return refusal(ctx, evidence, missing)
        note = "" if citations else "nothing of this answer could be found in the documents"
        return answered(ctx, evidence, " ".join(lines), citations, note=note)

    # -- without

    async def _quoted(self, ctx: Context, evidence: Evidence, mode: Mode) -> Answer:
        """The reports' own quotes that are nearest to the question, by community."""
        pairs = list(
            {c: (report, c) for report in evidence.communities for c in report.citations}.values()
        )
        vectors = await ctx.vectors([ctx.question, *(c.quote for _, c in pairs)])
        near = np.array([float(vector @ vectors[0]) for vector in vectors[1:]])
        if not len(near) or (mode == "reject" and near.max() < _UNRELATED):
            return refusal(ctx, evidence, "no report bears on the question")
        best = [pairs[at] for at in np.argsort(-near, kind="stable")[:_QUOTES].tolist()]
        lines = [f"{r.name}: “{c.quote}” [{n}]" for n, (r, c) in enumerate(best, start=1)]
        note = unwritten(ctx, QUOTED)
        return answered(ctx, evidence, "\n".join(lines), [c for _, c in best], note=note)


def _numbered(points: Sequence[Scored]) -> list[tuple[int, Scored]]:
    return list(enumerate(points, start=1))


def _chat(ctx: Context) -> Chat:
    chat = ctx.chat("answer")
    assert chat is not None
    return chat


async def _noted(ctx: Context, reports: Sequence[Report]) -> list[Scored]:
    """What one reader notes; a reader that makes no sense notes nothing."""
    shown = "\n".join(f"[{n}] {r.name}: {r.summary}" for n, r in enumerate(reports, start=1))
    try:
        said = await MAP.ask(
            _chat(ctx),
            language=prompt_language(ctx.question),
            like=Request(max_tokens=_LONGEST),
            reports=shown,
            question=ctx.question,
        )
    except ParseError:
        return []
    found = []
    for point in said.points:
        behind = tuple(
            reports[n - 1] for n in dict.fromkeys(point.reports) if 0 < n <= len(reports)
        )
        if behind and point.text.strip() and point.score > 0:
            found.append(Scored(point.text.strip(), min(point.score, 100.0), behind))
    return found


async def _put_together(ctx: Context, points: Sequence[Scored]) -> Reduced | None:
    try:
        return await REDUCE.ask(
            _chat(ctx),
            language=prompt_language(ctx.question),
            like=Request(max_tokens=_LONGEST),
            points="\n".join(f"{n}. {point.text}" for n, point in _numbered(points)),
            question=ctx.question,
        )
    except ParseError:
        return None


def _cited(
    ctx: Context, sentences: Sequence[Joined], points: Sequence[Scored], mode: Mode
) -> tuple[list[str], list[Citation]]:
    """Each sentence with the places that say most of it; marked, or dropped, where none does."""
    lines: list[str] = []
    citations: list[Citation] = []
    for sentence in sentences:
        text = " ".join(sentence.text.split())
        if not text:
            continue
        behind = [points[n - 1] for n in sentence.points if 0 < n <= len(points)]
        found = _places(text, [report for point in behind for report in point.reports])
        citations += [one for one in found if one not in citations]
        marks = "".join(f"[{citations.index(one) + 1}]" for one in found)
        if marks:
            lines.append(f"{text} {marks}")
        elif mode == "open":
            lines.append(f"{text} {in_words_of(ctx.question, UNSUPPORTED)}")
    return lines, citations


def _places(text: str, reports: Sequence[Report]) -> list[Citation]:
    """The places that say most of a sentence; none where they lack a name or number of it."""
    heard = [f"{report.name} {report.summary}" for report in reports]
    every = dict.fromkeys(citation for report in reports for citation in report.citations)
    if invented(text, [*heard, *(citation.quote for citation in every)]):
        return []
    shares = [(share_of(text, c.quote), c) for c in every if agree(text, c.quote)]
    good = sorted((one for one in shares if one[0] >= _BORNE_OUT), key=lambda one: -one[0])
    chosen = _covering(text, [citation for _, citation in good])
    said = [*(citation.quote for citation in chosen), *(report.name for report in reports)]
    return chosen if names_and_numbers(text, said) else []


def _covering(text: str, best_first: Sequence[Citation]) -> list[Citation]:
    """A few places, those first that name what the ones before them do not."""
    open_names = claim_of(text).names | claim_of(text).numbers
    chosen: list[Citation] = []
    left = list(best_first)
    while left and len(chosen) < _CITED:
        new = [len(open_names & {*name_key(c.quote).split(), *words(c.quote)}) for c in left]
        one = left.pop(max(range(len(left)), key=lambda at: new[at]))  # the first of equals
        open_names -= {*name_key(one.quote).split(), *words(one.quote)}
        chosen.append(one)
    return chosen
