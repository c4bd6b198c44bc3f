"""The default agent: follow the graph and read spans; with a model, it plans and code checks.

Without a model the question's names lead to passages, the reader reads them alone, together and
along chains, and code compares where the table of operators says so. With a model the plan's answer
and the direct answer over all evidence are both formed; the better supported one wins.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from clew.agents.answering.extractive import extract_answer, quote_whole
from clew.agents.answering.finish import conclude, run_with_fallback
from clew.agents.answering.write import quote_chain, write_answer
from clew.agents.core.messages import is_unknown
from clew.agents.core.plan import Plan
from clew.agents.core.scratchpad import Notebook, RecordingRetriever
from clew.agents.core.types import Answer, Mode
from clew.agents.judge import judge_answer
from clew.agents.planning.model_plan import plan_and_check
from clew.agents.reading.answer import QuestionReader, RankedCandidate, describe_best
from clew.agents.reading.follow import Follower
from clew.agents.reading.spans import same_answer
from clew.agents.rule_planner import combine_notes, make_rule_plan
from clew.agents.run_plan import PlanRunner, load_rank
from clew.context import Context
from clew.retrieve.question import content_words, tidy_question
from clew.retrieve.step import Step
from clew.text.language import is_chinese
from clew.text.options import match_option, split_options

_MAX_STEPS = 4  # questions of a model's plan
_MAX_PARTS = 3  # questions in one that are answered
_QUESTION_END = re.compile(r"(?<=[?？])\s+")
_MIN_PART_WORDS = 2  # words of content that make a part a question of its own


@dataclass(frozen=True)
class GraphReader:
    """Reads along the graph; `rules`, `plan` and `spans` can be switched off to be measured."""

    top_k: int = 8
    """Passages that are read."""
    hops: int = 2
    beam: int = 2
    rules: bool = True
    """Compare by the table of operators."""
    plan: bool = True
    """With a model, let it plan; off: it reads once."""
    spans: bool = True
    """With a model, take a sure span of the reader before asking it."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Answer the question, or each of several questions in one."""
        book = Notebook()
        return await run_with_fallback(ctx, book, mode, self._answer(ctx, book, retrieve, mode))

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        parts = split_questions(ctx.question)
        retriever = RecordingRetriever(retrieve, book, self.top_k)
        if len(parts) == 1:
            plain = replace(ctx, question=parts[0])
            return await self._answer_one(plain, book, retriever, mode)
        answers = []
        for part in parts:
            own = Notebook()
            async with ctx.step("part", part) as step:
                asked = step.ctx.with_question(part)
                one = await self._answer_one(asked, own, replace(retriever, book=own), mode)
                step.output = one.candidate or one.verdict
            answers.append(one)
            for retrieval in own.retrievals:
                book.add(retrieval)
            for note in own.notes:
                book.add(note)
        return join_parts(ctx, book, answers)

    async def _answer_one(
        self, ctx: Context, book: Notebook, retriever: RecordingRetriever, mode: Mode
    ) -> Answer:
        plan = await make_rule_plan(ctx) if self.rules else Plan((ctx.question,))
        if ctx.chat("answer") is not None:
            return await self._answer_with_model(ctx, book, retriever, mode, plan)
        if plan.simple and self.plan and ctx.chat("plan") is not None:
            plan = await plan_and_check(ctx, most=_MAX_STEPS)
        if not plan.simple and (computed := await self._compute(ctx, book, retriever, plan)):
            return computed
        retrieval = await retriever(ctx, ctx.question)
        evidence, found = retrieval.evidence, retrieval.found
        if (whole := quote_whole(ctx, evidence, found)) is not None:
            return whole
        if is_chinese(ctx.question) or ctx.reader is None:
            return await extract_answer(ctx, evidence, found)
        reader = QuestionReader(retriever, await load_rank(ctx), Follower(self.hops, self.beam))
        ranked = await reader.read(ctx, evidence.chunks)
        if not ranked:
            return await extract_answer(ctx, evidence, found)
        return self._name_best(ctx, book, prefer_options(plan, ranked))

    def _name_best(self, ctx: Context, book: Notebook, ranked: list[RankedCandidate]) -> Answer:
        """Name the best candidate and quote the sentence of each reading that led to it."""
        best = ranked[0]
        notes = best.notes(ctx.question)
        for note in notes:
            book.add(note)
        answer = quote_chain(ctx, book.evidence(), notes, best.candidate.text)
        return replace(answer, support=best.probability, signals=describe_best(ranked))

    async def _compute(
        self, ctx: Context, book: Notebook, retriever: RecordingRetriever, plan: Plan
    ) -> Answer | None:
        """Read the values of a plan and combine them; None if one is missing."""
        notes = await PlanRunner(retriever, book)(ctx, plan)
        short = match_option(ctx.question, combine_notes(plan, notes))
        if not short:
            return None
        support = min((note.probability for note in notes.values()), default=0.0)
        answer = quote_chain(ctx, book.evidence(), book.notes, short)
        return replace(answer, support=support, computed=plan.join is not None)

    async def _answer_with_model(
        self, ctx: Context, book: Notebook, retriever: RecordingRetriever, mode: Mode, plan: Plan
    ) -> Answer:
        if plan.simple and self.plan and ctx.chat("plan") is not None:
            plan = await plan_and_check(ctx, most=_MAX_STEPS)
        short = ""
        if not plan.simple:
            notes = await PlanRunner(retriever, book, use_spans=self.spans)(ctx, plan)
            short = match_option(ctx.question, combine_notes(plan, notes))
        await retriever(ctx, ctx.question)
        if not short or is_unknown(short):
            return await conclude(ctx, book, mode)
        planned = await judge_answer(ctx, await conclude(ctx, book, mode, short))
        if plan.by == "rules":
            return planned
        direct = await write_answer(ctx, book.evidence(), mode, book.format_notes())
        return choose_better(planned, await judge_answer(ctx, direct))


def choose_better(planned: Answer, direct: Answer) -> Answer:
    """Return the answer that is better supported; the plan's where both are alike."""
    if planned.verdict == "refused":
        return direct
    return direct if direct.confidence > planned.confidence else planned


def prefer_options(plan: Plan, ranked: list[RankedCandidate]) -> list[RankedCandidate]:
    """Put the candidates first that are among the things a question lets choose from."""
    join = plan.join
    chooses = join is not None and not join.yes_no and join.how not in ("same", "both")
    options = join.options if join is not None and chooses else ()
    among = [r for r in ranked if any(same_answer(r.candidate.text, o) for o in options)]
    return [*among, *(one for one in ranked if one not in among)]


def split_questions(question: str) -> list[str]:
    """Return the questions in a text without courtesy, if several stand for themselves."""
    asked, options = split_options(question)
    if options:
        return [question]
    asked = question = tidy_question(asked)
    parts = [part.strip() for part in _QUESTION_END.split(asked) if part.strip()]
    if len(parts) < 2 or not all(part.endswith(("?", "？")) for part in parts[:-1]):
        return [question]
    full = [part for part in parts if len(content_words(part)) >= _MIN_PART_WORDS]
    return full[:_MAX_PARTS] if len(full) > 1 else [question]


def _renumber(text: str, numbers: Mapping[int, int]) -> str:
    """Give the citation marks of a text their numbers in the whole answer."""
    return re.sub(r"\[(\d+)\]", lambda mark: f"[{numbers.get(int(mark[1]), mark[1])}]", text)


def join_parts(ctx: Context, book: Notebook, answers: list[Answer]) -> Answer:
    """Put the answers to several questions together, each under its question."""
    citations = list(dict.fromkeys(c for answer in answers for c in answer.citations))
    lines = []
    for answer in answers:
        numbers = {n: citations.index(c) + 1 for n, c in enumerate(answer.citations, start=1)}
        lines.append(f"{answer.question}\n{_renumber(answer.answer, numbers)}")
    answered = [answer for answer in answers if answer.verdict == "answered"]
    first = (answered or answers)[0]
    short = "; ".join(answer.candidate for answer in answered if answer.candidate)
    missing = "; ".join(answer.missing for answer in answers if answer.missing)
    return replace(
        first,
        question=ctx.question,
        answer="\n\n".join(lines),
        citations=tuple(citations),
        evidence=book.evidence(),
        candidate=short,
        missing=missing,
        support=min((answer.support for answer in answered), default=0.0),
    )
