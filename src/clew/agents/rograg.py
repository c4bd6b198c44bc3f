"""ROGRAG's agent: gate, logic-form plan run by code, a check, and dual-level as the fallback."""

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
    """Intent, relevance, logic form; what it cannot settle is answered from dual-level evidence."""

    top_k: int = 5
    check: Check = "argument"  # paper, Table 7: better than checking the result
    gate: bool = True
    intent: bool = True
    """Look whether a message that names nothing is small talk: by its words, else by one call."""
    rules: bool = True

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Gate, plan, run, check, answer or fall back."""
        book = Notebook()
        return await bounded(ctx, book, mode, self._work(ctx, book, retrieve, mode))

    async def _work(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        if self.intent and await self._chats(ctx):
            return refusal(ctx, Evidence(), SMALL_TALK)
        look = Looker(retrieve, book, self.top_k)
        looked = await look(ctx, ctx.question)
        if mode == "reject" and (missing := await self._turned_away(ctx, book)):
            return refusal(ctx, looked.evidence, missing)
        plan = await self._plan(ctx)
        if not plan.valid:
            return await self._fall_back(ctx, book, mode, "; ".join(plan.problems) or "no plan")
        async with ctx.step("run the plan", str(plan)) as step:
            ran = await LogicRunner(look, book)(step.ctx, plan)
            step.left = ran.stuck or "; ".join(item.text for item in ran.items) or "nothing"
        if not ran.items:
            return await self._fall_back(ctx, book, mode, ran.stuck or "the plan found nothing")
        return await self._checked(ctx, book, mode, (plan, ran.items))

    async def _chats(self, ctx: Context) -> bool:
        """Whether this is small talk; more than pleasantries with a name in it is none."""
        chats = small_talk(ctx.question)
        if not chats and names_in(ctx.view, ctx.question):
            return False
        async with ctx.step("intent", ctx.question) as step:
            if not chats and ctx.chat("plan") is not None:
                said = await ask_plainly(step.ctx, INTENT, "ask", question=ctx.question)
                chats = said is not None and said.intent == "chat"
            step.left = "small talk" if chats else "a question"
            return chats

    async def _turned_away(self, ctx: Context, book: Notebook) -> str:
        """Why this question is refused before any planning; empty when it is not."""
        async with ctx.step("gate", ctx.question) as step:
            held = await relevance(ctx, book.evidence())
            mark = await threshold(ctx.memory, GATE)
            mark = UNCALIBRATED if mark is None else mark
            step.left = f"relevance {held.score:.2f}, threshold {mark:.2f}"
            if not self.gate or held.score >= mark:
                return ""
            lacking = ", ".join(held.unknown[:3])
            about = f"nothing is said about {lacking}" if lacking else "no passage is about this"
            return f"{about} (relevance {held.score:.2f} is below {mark:.2f})"

    async def _plan(self, ctx: Context) -> LogicPlan:
        """By rules where a shape fits; else by the model, mended once when it is not valid."""
        if self.rules or ctx.chat("plan") is None:
            plan = await rule_plan(ctx)
            if plan.join is not None and plan.join.how == "both":
                plan = Plan((ctx.question,))  # no operator says whether two answers are both yes
            if not plan.simple or ctx.chat("plan") is None:
                return from_plan(plan)
        checked, problem = LogicPlan(), ""
        for turn in ("plan", "mend the plan"):
            said = await ask_plainly(
                ctx, LOGIC, turn, _LOGIC, question=ctx.question, problem=problem
            )
            checked = checked_plan(said.steps if said else [])
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
            said = await ask_plainly(
                ctx, SUFFICIENT, "check arguments", question=ctx.question, context=context
            )
            if said is not None and not said.sufficient and not _computed(plan):
                return await self._fall_back(ctx, book, mode, said.missing or "not sufficient")
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
        """The first look's evidence, read whole."""
        async with ctx.step("fall back to dual-level", why) as step:
            answer = await concluded(step.ctx, book, mode)
            step.left = answer.verdict
        return replace(answer, note="; ".join(filter(None, (answer.note, f"fell back: {why}"))))


def _computed(plan: LogicPlan) -> bool:
    """Whether code made the result out of checked values: no opinion can overrule arithmetic."""
    return not isinstance(plan.steps[-1], Retrieve)


def from_plan(plan: Plan) -> LogicPlan:
    """A plan in words as a logic form: each question a look-up, the join a comparison."""
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
    """The join as operators; a life is the difference of its two dates."""
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
