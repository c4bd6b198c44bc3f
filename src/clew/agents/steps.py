"""Default agent: plan by rules, read one small question at a time, combine the answers by code."""

from dataclasses import dataclass

from clew.agents.answer import Answer, Mode
from clew.agents.follow import Follower
from clew.agents.notebook import Looker, Note, Notebook
from clew.agents.planning.joining import joined
from clew.agents.planning.naming import names_in
from clew.agents.planning.plan import Plan
from clew.agents.planning.shapes import plan_by_rules
from clew.agents.writing.finish import bounded, concluded
from clew.agents.writing.written import refusal
from clew.context import Context
from clew.retrieve.step import Step


async def rule_plan(ctx: Context) -> Plan:
    """Plan the context's question without a model."""
    async with ctx.step("plan by rules", ctx.question) as step:
        plan = plan_by_rules(ctx.question, names_in(ctx.view, ctx.question))
        step.left = "stays whole" if plan.simple else str(plan)
        return plan


def worked_out(plan: Plan, notes: dict[int, Note]) -> str:
    """Combine the notes of a plan: by its join, or the last question's answer."""
    answers = {number: note.name or note.answer for number, note in notes.items() if note.known}
    if plan.join is not None:
        return joined(plan.join, answers)
    return answers.get(len(plan.questions), "")


@dataclass(frozen=True)
class Steps:
    """Runs a plan made by rules; a question that matches no pattern is read whole."""

    top_k: int = 5
    phrases: bool = True
    """Try answer patterns first; the model reads the rest."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Plan, run, combine; if an answer is missing, write from everything retrieved."""
        book = Notebook()
        return await bounded(ctx, book, mode, self._work(ctx, book, retrieve, mode))

    async def _work(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        plan = await rule_plan(ctx)
        retriever = Looker(retrieve, book, self.top_k)
        if plan.simple:
            await retriever(ctx, ctx.question)
            return await concluded(ctx, book, mode)
        notes = await Follower(retriever, book, phrases=self.phrases)(ctx, plan)
        short = worked_out(plan, notes)
        gap = next((note.question for _, note in sorted(notes.items()) if not note.known), "")
        if not short and gap and mode == "reject":
            return refusal(ctx, book.evidence(), f"no passage says: {gap}")
        if not short:
            await retriever(ctx, ctx.question)
        return await concluded(ctx, book, mode, short)
