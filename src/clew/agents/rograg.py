"""ROGRAG (Wang et al. 2025): a logic form that code runs, a verifier, and the dual level behind."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel, Field

from clew.agents.base import Answer, Mode
from clew.agents.evidence import EvidencePage, show_evidence
from clew.agents.logic.forms import Operator, Plan, validate_plan
from clew.agents.run_logic import LogicResult, LogicRun
from clew.agents.tools import Toolbox
from clew.agents.writing import (
    ANSWER,
    NO_NOTES,
    AnswerListener,
    ask_to_write,
    finish,
    mode_rules,
    refuse,
)
from clew.context import Context
from clew.llm.prompt import Prompt
from clew.types import Evidence

CheckMode = Literal["argument", "result", "none"]
_SMALL_TALK = "this is small talk, not a question about the documents"
_UNREADABLE = "the check could not be read"


class Intent(BaseModel):
    """What a message wants, and what it is about."""

    reasoning: str = ""
    intent: Literal["question", "chat"] = "question"
    domain: str = ""
    topic: str = ""

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.topic, self.domain))) or "(not known)"


class Judgement(BaseModel):
    """Whether a context can answer a question, or bears out a reply."""

    reasoning: str = Field(default="", description="think first: what is needed, and what is there")
    sufficient: bool = False
    missing: str = ""


INTENT = Prompt("intent", Intent, {"question"})
LOGIC_FORM = Prompt("logic", Plan, {"question", "about", "problem"})
CHECK_ARGUMENT = Prompt("check_argument", Judgement, {"question", "context"}, documents={"context"})
CHECK_RESULT = Prompt(
    "check_result", Judgement, {"question", "context", "reply"}, documents={"context", "reply"}
)


@dataclass(frozen=True)
class Rograg:
    """Intent, logic form, verifier; on failure the dual level (figure 2)."""

    check: CheckMode = "argument"  # Table 7: better than checking the result
    intent: bool = True
    """Ask first whether a message is a question, of what domain, and about what."""
    logic: bool = True
    """Off: dual-level retrieval alone (Table 6)."""
    fallback: bool = True
    """Off: the logic form alone, whatever the verifier would say (Table 6)."""
    lookup_tokens: int = 8000
    """Evidence that is read for one lookup."""
    lookups: int = 20
    """Lookups of one step at most, where it needs one for each value of another."""

    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        """Answer by the logic form if the verifier agrees, else by the dual level."""
        about = Intent()
        if self.intent:
            about = await ctx.ask(INTENT, step="intent", otherwise=Intent(), question=ctx.question)
        if about.intent == "chat":
            return refuse(ctx, Evidence(), _SMALL_TALK)
        writer = _Writer(ctx, tools, mode, AnswerListener(ctx))
        why = ""
        if self.logic:
            answer, why = await self._answer_by_logic(writer, about)
            if answer is not None:
                return answer.noting(why)
        # The topic is what the high-level keywords are to be about.
        query = f"{ctx.question}\n({about})" if about.topic else ctx.question
        async with ctx.step("dual level", why or ctx.question) as step:
            found = await tools.within(step.ctx).search(query)
        answer = await writer.write(await show_evidence(ctx, found))
        return answer.noting(f"fell back to the dual level: {why}" if why else "")

    async def _answer_by_logic(self, writer: "_Writer", about: Intent) -> tuple[Answer | None, str]:
        """Return an answer that the verifier supports, or None and why there is none."""
        ctx = writer.ctx
        plan, problem = await _make_plan(ctx, about)
        result = LogicResult(problem=problem)
        if not problem:
            run = LogicRun(ctx, writer.tools, str(about), self.lookup_tokens, self.lookups)
            result = await run(plan)
        page = result.page
        if not self.fallback:
            return await writer.write(page, result), result.problem
        if result.problem:
            return None, result.problem
        if self.check == "argument":
            judged = await _judge(ctx, CHECK_ARGUMENT, "check arguments", context=page)
            if not judged.sufficient:
                return None, judged.missing or "what was found is not sufficient"
        answer = await writer.write(page, result)
        found = answer.verdict == "answered" and answer.signals.get("enough", 1.0) > 0
        why = "" if found else answer.missing or answer.note or "the result says too little"
        if self.check == "result" and not why:
            judged = await _judge(
                ctx, CHECK_RESULT, "check result", context=page, reply=answer.answer
            )
            why = "" if judged.sufficient else judged.missing or "the result was rejected"
        if why:
            writer.listener.withdraw()
            return None, why
        return answer, ""


async def _make_plan(ctx: Context, about: Intent) -> tuple[tuple[Operator, ...], str]:
    """Let the model plan; a plan that cannot run is repaired once, then its problem returned."""
    plan: tuple[Operator, ...] = ()
    problem = told = ""
    for step in ("plan", "repair the plan"):
        said = await ctx.ask(
            LOGIC_FORM,
            step=step,
            otherwise=Plan(),
            question=ctx.question,
            about=str(about),
            problem=told,
        )
        plan, problem = validate_plan(said.steps)
        if not problem:
            break
        written = "; ".join(map(str, plan))
        told = f"Your last plan was: {written}\nIt cannot run: {problem}. Write it anew."
    return plan, problem


async def _judge(ctx: Context, prompt: Prompt[Judgement], step: str, **inputs: Any) -> Judgement:
    """Ask the verifier; one whose reply cannot be read supports nothing."""
    otherwise = Judgement(missing=_UNREADABLE)
    return await ctx.ask(prompt, step=step, otherwise=otherwise, question=ctx.question, **inputs)


@dataclass(frozen=True)
class _Writer:
    """Writes the answer over a page, streaming; what an earlier one streamed is then void."""

    ctx: Context
    tools: Toolbox
    mode: Mode
    listener: AnswerListener

    async def write(self, page: EvidencePage, result: LogicResult | None = None) -> Answer:
        """Let the model answer; the operators' results are part of the evidence."""
        said = await ask_to_write(
            self.ctx,
            ANSWER,
            step="answer",
            listener=self.listener,
            evidence=page,
            question=self.ctx.question,
            notes=NO_NOTES,
            rules=mode_rules(self.ctx, self.mode),
        )
        evidence = self.tools.evidence()
        if result is not None:
            evidence = replace(evidence, findings=(*result.findings, *evidence.findings))
        return finish(self.ctx, said, page, evidence, self.mode)
