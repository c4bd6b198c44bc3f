"""ROGRAG's agent: gate, logic-form plan run by code, a check, dual-level retrieval as fallback."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from pydantic import BaseModel

from clew.agents.answer import Answer, Mode
from clew.agents.gate import GATE, UNCALIBRATED, relevance, small_talk, threshold
from clew.agents.logic.computing import Items
from clew.agents.logic.forms import (
    Compare,
    LogicPlan,
    Measure,
    Operator,
    Retrieve,
    WrittenPlan,
    checked_plan,
    one_of,
)
from clew.agents.logic.run import LogicRunner
from clew.agents.notebook import Looker, Notebook
from clew.agents.planning.ask_plan import VERIFY, Verdict, ask_plainly
from clew.agents.planning.naming import names_in
from clew.agents.planning.plan import Join, Plan
from clew.agents.steps import rule_plan
from clew.agents.writing.finish import bounded, concluded
from clew.agents.writing.written import refusal
from clew.context import Context
from clew.llm.chat import Request
from clew.llm.prompt import Prompt
from clew.retrieve.step import Step
from clew.types import Evidence

Check = Literal["argument", "result", "none"]
_LOGIC = Request(max_tokens=300)
SMALL_TALK = "this is small talk, no question about the documents"


class Intent(BaseModel):
    """What a message wants, and what about."""

    intent: Literal["question", "chat"]
    topic: str = ""


class Sufficient(BaseModel):
    """Whether a context can answer."""

    sufficient: bool
    missing: str = ""


INTENT = Prompt("intent", Intent, {"question"})
LOGIC = Prompt("logic", WrittenPlan, {"question", "problem"})
SUFFICIENT = Prompt("sufficient", Sufficient, {"question", "context"}, documents={"context"})


@dataclass(frozen=True)
class Rograg:
    """Checks intent and relevance, runs a logic form, and falls back to dual-level evidence."""

    top_k: int = 5
    check: Check = "argument"  # paper, Table 7: better than checking the result
    gate: bool = True
    intent: bool = True
    """Detect small talk in messages that name nothing: by their words, else with one call."""
    rules: bool = True

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Gate, plan, run, check; then answer or fall back."""
        book = Notebook()
        return await bounded(ctx, book, mode, self._work(ctx, book, retrieve, mode))

    async def _work(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        if self.intent and await self._chats(ctx):
            return refusal(ctx, Evidence(), SMALL_TALK)
        retriever = Looker(retrieve, book, self.top_k)
        retrieval = await retriever(ctx, ctx.question)
        if mode == "reject" and (missing := await self._turned_away(ctx, book)):
            return refusal(ctx, retrieval.evidence, missing)
        plan = await self._plan(ctx)
        if not plan.valid:
            return await self._fall_back(ctx, book, mode, "; ".join(plan.problems) or "no plan")
        async with ctx.step("run the plan", str(plan)) as step:
            result = await LogicRunner(retriever, book)(step.ctx, plan)
            step.left = result.stuck or "; ".join(item.text for item in result.items) or "nothing"
        if not result.items:
            return await self._fall_back(ctx, book, mode, result.stuck or "the plan found nothing")
        return await self._checked(ctx, book, mode, (plan, result.items))

    async def _chats(self, ctx: Context) -> bool:
        """Whether the message is small talk; one with a name and other content is not."""
        is_chat = small_talk(ctx.question)
        if not is_chat and names_in(ctx.view, ctx.question):
            return False
        async with ctx.step("intent", ctx.question) as step:
            if not is_chat and ctx.chat("plan") is not None:
                reply = await ask_plainly(step.ctx, INTENT, "ask", question=ctx.question)
                is_chat = reply is not None and reply.intent == "chat"
            step.left = "small talk" if is_chat else "a question"
            return is_chat

    async def _turned_away(self, ctx: Context, book: Notebook) -> str:
        """Return why the gate refuses the question before planning, or ""."""
        async with ctx.step("gate", ctx.question) as step:
            coverage = await relevance(ctx, book.evidence())
            limit = await threshold(ctx.memory, GATE)
            limit = UNCALIBRATED if limit is None else limit
            step.left = f"relevance {coverage.score:.2f}, threshold {limit:.2f}"
            if not self.gate or coverage.score >= limit:
                return ""
            lacking = ", ".join(coverage.unknown[:3])
            about = f"nothing is said about {lacking}" if lacking else "no passage is about this"
            return f"{about} (relevance {coverage.score:.2f} is below {limit:.2f})"

    async def _plan(self, ctx: Context) -> LogicPlan:
        """Plan by rules where a pattern matches; else by the model, with one repair."""
        if self.rules or ctx.chat("plan") is None:
            plan = await rule_plan(ctx)
            if plan.join is not None and plan.join.how == "both":
                plan = Plan((ctx.question,))  # no operator checks that two answers are both yes
            if not plan.simple or ctx.chat("plan") is None:
                return from_plan(plan)
        checked, problem = LogicPlan(), ""
        for turn in ("plan", "mend the plan"):
            reply = await ask_plainly(
                ctx, LOGIC, turn, _LOGIC, question=ctx.question, problem=problem
            )
            checked = checked_plan(reply.steps if reply else [])
            if checked.valid:
                return checked
            problem = f"Your last plan could not run: {'; '.join(checked.problems)}. Mend it."
        return checked

    async def _checked(
        self, ctx: Context, book: Notebook, mode: Mode, run: tuple[LogicPlan, Items]
    ) -> Answer:
        """Check the arguments before the answer is written, or the result after it."""
        plan, items = run
        short = ", ".join(item.text for item in items)
        if ctx.chat("plan") is None:
            return await concluded(ctx, book, mode, short)
        if self.check == "argument":
            context = book.told()
            reply = await ask_plainly(
                ctx, SUFFICIENT, "check arguments", question=ctx.question, context=context
            )
            if reply is not None and not reply.sufficient and not _computed(plan):
                return await self._fall_back(ctx, book, mode, reply.missing or "not sufficient")
        answer = await concluded(ctx, book, mode, short)
        if self.check == "result" and answer.verdict == "answered":
            checked = await ask_plainly(
                ctx,
                VERIFY,
                "check result",
                question=ctx.question,
                notes=book.told(),
                draft=answer.candidate or answer.answer,
            )
            if checked is not None and checked.verdict is Verdict.REJECT:
                return await self._fall_back(ctx, book, mode, checked.missing or "rejected")
        return answer

    async def _fall_back(self, ctx: Context, book: Notebook, mode: Mode, why: str) -> Answer:
        """Write the answer from all evidence of the first retrieval."""
        async with ctx.step("fall back to dual-level", why) as step:
            answer = await concluded(step.ctx, book, mode)
            step.left = answer.verdict
        return replace(answer, note="; ".join(filter(None, (answer.note, f"fell back: {why}"))))


def _computed(plan: LogicPlan) -> bool:
    """Whether code computed the result from checked values: no verdict overrules arithmetic."""
    return not isinstance(plan.steps[-1], Retrieve)


def from_plan(plan: Plan) -> LogicPlan:
    """Convert a plan in words to a logic form: each question a lookup, the join a comparison."""
    steps: list[Operator] = []
    subjects: dict[int, str] = {}
    if plan.join is not None:
        for places, option in zip(plan.join.places, plan.join.options, strict=True):
            subjects |= dict.fromkeys(places, option)
    for number, question in enumerate(plan.questions, start=1):
        steps.append(Retrieve(subjects.get(number, "it"), "answer", "?", question))
    if plan.join is not None:
        steps += _compared(plan.join, len(steps))
    return LogicPlan(tuple(steps))


def _compared(join: Join, before: int) -> list[Operator]:
    """Convert a join to operators; a lifespan is the difference of its two dates."""
    if join.how in ("longer life", "shorter life"):
        (born, died), (other_born, other_died) = join.places[:2]
        return [
            Compare(born, died, "difference"),
            Compare(other_born, other_died, "difference"),
            Compare(before + 1, before + 2, "larger" if join.how == "longer life" else "smaller"),
        ]
    left, right = (places[-1] for places in join.places[:2])
    how: Measure = one_of(join.how, get_args(Measure))
    return [Compare(left, right, how)]
