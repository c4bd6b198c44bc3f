"""Default agent: plan by rules, read one small question at a time, combine the answers by code."""

from dataclasses import dataclass

from clew.agents.answer import Answer, Mode
from clew.agents.follow import PlanRunner
from clew.agents.notebook import Note, Notebook, RecordingRetriever
from clew.agents.planning.joining import combine_answers
from clew.agents.planning.naming import find_name_spans
from clew.agents.planning.plan import Plan
from clew.agents.planning.shapes import plan_by_rules
from clew.agents.writing.finish import conclude, run_with_fallback
from clew.agents.writing.written import make_refusal
from clew.context import Context
from clew.retrieve.step import Step


async def make_rule_plan(ctx: Context) -> Plan:
    """Plan the context's question without a model."""
    async with ctx.step("plan by rules", ctx.question) as step:
        plan = plan_by_rules(ctx.question, find_name_spans(ctx.view, ctx.question))
        step.output = "stays whole" if plan.simple else str(plan)
        return plan


def combine_notes(plan: Plan, notes: dict[int, Note]) -> str:
    """Combine the notes of a plan: by its join, or the last question's answer."""
    answers = {
        number: note.name or note.answer for number, note in notes.items() if note.has_answer
    }
    if plan.join is not None:
        return combine_answers(plan.join, answers)
    return answers.get(len(plan.questions), "")


@dataclass(frozen=True)
class RulePlanner:
    """Runs a plan made by rules; a question that matches no pattern is read whole."""

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
        short = combine_notes(plan, notes)
        gap = next((note.question for _, note in sorted(notes.items()) if not note.has_answer), "")
        if not short and gap and mode == "reject":
            return make_refusal(ctx, book.evidence(), f"no passage says: {gap}")
        if not short:
            await retriever(ctx, ctx.question)
        return await conclude(ctx, book, mode, short)
