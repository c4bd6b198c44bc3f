"""Rule planner, the default agent: plan by rules, read question by question, combine by code."""

from dataclasses import dataclass

from clew.agents.answering.finish import conclude, run_with_fallback
from clew.agents.answering.write import make_refusal
from clew.agents.core.plan import Plan
from clew.agents.core.scratchpad import Note, Notebook, RecordingRetriever
from clew.agents.core.types import Answer, Mode
from clew.agents.planning.compare_answers import combine_answers
from clew.agents.rules.english_questions import plan_by_rules
from clew.agents.rules.question_analysis import find_name_spans
from clew.agents.run_plan import PlanRunner
from clew.context import Context
from clew.retrieve.step import Step
from clew.text.options import match_option, split_options


@dataclass(frozen=True)
class RulePlanner:
    """Runs a plan made by rules; a question that matches no pattern is read as it is."""

    top_k: int = 5
    phrases: bool = True
    """Try answer patterns first; the model reads the rest."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Plan, run, combine; if an answer is missing, write from everything retrieved."""
        book = Notebook()
        return await run_with_fallback(ctx, book, mode, self._answer(ctx, book, retrieve, mode))

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        plan = await make_rule_plan(ctx)
        retriever = RecordingRetriever(retrieve, book, self.top_k)
        if plan.simple:
            await retriever(ctx, ctx.question)
            return await conclude(ctx, book, mode)
        notes = await PlanRunner(retriever, book, use_patterns=self.phrases)(ctx, plan)
        short = match_option(ctx.question, combine_notes(plan, notes))
        gap = next((note.question for _, note in sorted(notes.items()) if not note.has_answer), "")
        if not short and gap and mode == "reject":
            return make_refusal(ctx, book.evidence(), f"no passage answers: {gap}")
        if not short:
            await retriever(ctx, ctx.question)
        return await conclude(ctx, book, mode, short)


async def make_rule_plan(ctx: Context) -> Plan:
    """Plan the context's question without a model."""
    async with ctx.step("plan by rules", ctx.question) as step:
        asked, _ = split_options(ctx.question)
        plan = plan_by_rules(asked, find_name_spans(ctx.view, asked))
        step.output = "kept as one question" if plan.simple else str(plan)
        return plan


def combine_notes(plan: Plan, notes: dict[int, Note]) -> str:
    """Combine the notes of a plan: by its join, or the last question's answer."""
    answers = {
        number: note.name or note.answer for number, note in notes.items() if note.has_answer
    }
    if plan.join is not None:
        return combine_answers(plan.join, answers)
    return answers.get(len(plan.questions), "")
