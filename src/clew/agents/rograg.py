"""ROGRAG's agent: gate, logic-form plan run by code, a check, dual-level retrieval as fallback."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from pydantic import BaseModel

from clew.agents.answering.finish import conclude, run_with_fallback
from clew.agents.answering.write import make_refusal
from clew.agents.core.plan import Join, Plan
from clew.agents.core.scratchpad import Notebook, RecordingRetriever
from clew.agents.core.types import Answer, Mode
from clew.agents.logic.compute import Items
from clew.agents.logic.forms import (
    Compare,
    ComparisonKind,
    LogicPlan,
    Operator,
    RawPlan,
    Retrieve,
    parse_choice,
    validate_plan,
)
from clew.agents.planning.model_plan import VERIFY, Verdict, ask_planner
from clew.agents.relevance_gate import (
    DEFAULT_THRESHOLD,
    GATE,
    is_small_talk,
    load_threshold,
    score_relevance,
)
from clew.agents.rule_planner import make_rule_plan
from clew.agents.rules.question_analysis import find_question_name_spans
from clew.agents.run_logic import LogicRunner
from clew.context import Context
from clew.llm.chat import Request
from clew.llm.prompt import Prompt
from clew.retrieve.step import Step
from clew.types import Evidence

CheckMode = Literal["argument", "result", "none"]
_LOGIC_REQUEST = Request(max_tokens=300)
_SMALL_TALK_MESSAGE = "this is small talk, not a question about the documents"


class Intent(BaseModel):
    """What a message wants, and what about."""

    intent: Literal["question", "chat"]
    topic: str = ""


class SufficiencyCheck(BaseModel, title="Sufficient"):
    """Whether a context can answer."""

    sufficient: bool
    missing: str = ""


INTENT = Prompt("intent", Intent, {"question"})
LOGIC_FORM = Prompt("logic", RawPlan, {"question", "problem"})
CHECK_SUFFICIENT = Prompt(
    "sufficient", SufficiencyCheck, {"question", "context"}, documents={"context"}
)


@dataclass(frozen=True)
class Rograg:
    """Checks intent and relevance, runs a logic form, and falls back to dual-level evidence."""

    top_k: int | None = None
    """Passages of each retrieval; None: as many as the recipe shows."""
    check: CheckMode = "argument"  # paper, Table 7: better than checking the result
    gate: bool = True
    intent: bool = True
    """Detect small talk in messages that name nothing: by their words, else with one call."""
    rules: bool = True
    """Plan by rules where a question pattern matches, and let code write that plan's answer."""
    fallback: bool = True
    """Off: no dual-level retrieval, neither at first nor when a plan fails (Table 6)."""
    near: bool = False
    """In a lookup read what is about the names asked for first, also where facts are beside it."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Gate, plan, run, check; then answer or fall back."""
        book = Notebook()
        return await run_with_fallback(ctx, book, mode, self._answer(ctx, book, retrieve, mode))

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        if self.intent and await self._is_small_talk(ctx):
            return make_refusal(ctx, Evidence(), _SMALL_TALK_MESSAGE)
        retriever = RecordingRetriever(retrieve, book, self.top_k or ctx.layout.max_passages)
        if self.fallback:
            retrieval = await retriever(ctx, ctx.question)
            if mode == "reject" and (missing := await self._explain_gate_refusal(ctx, book)):
                return make_refusal(ctx, retrieval.evidence, missing)
        plan, by_rules = await self._make_plan(ctx)
        if not plan.valid:
            return await self._fall_back(ctx, book, mode, "; ".join(plan.problems) or "no plan")
        async with ctx.step("run the plan", str(plan)) as step:
            result = await LogicRunner(retriever, book, self.near)(step.ctx, plan)
            step.output = result.error or "; ".join(item.text for item in result.items) or "nothing"
        if not result.items:
            return await self._fall_back(ctx, book, mode, result.error or "the plan found nothing")
        computed = by_rules or _is_computed(plan)
        return await self._check_and_answer(ctx, book, mode, (result.items, computed))

    async def _is_small_talk(self, ctx: Context) -> bool:
        """Whether the message is small talk; one with a name and other content is not."""
        is_chat = is_small_talk(ctx.question)
        if not is_chat and find_question_name_spans(ctx.view, ctx.question):
            return False
        async with ctx.step("intent", ctx.question) as step:
            if not is_chat and ctx.chat("plan") is not None:
                reply = await ask_planner(step.ctx, INTENT, "ask", question=ctx.question)
                is_chat = reply is not None and reply.intent == "chat"
            step.output = "small talk" if is_chat else "a question"
            return is_chat

    async def _explain_gate_refusal(self, ctx: Context, book: Notebook) -> str:
        """Return why the gate refuses the question before planning, or ""."""
        async with ctx.step("gate", ctx.question) as step:
            coverage = await score_relevance(ctx, book.evidence())
            limit = await load_threshold(ctx.key_values, GATE)
            limit = DEFAULT_THRESHOLD if limit is None else limit
            step.output = f"relevance {coverage.score:.2f}, threshold {limit:.2f}"
            if not self.gate or coverage.score >= limit:
                return ""
            lacking = ", ".join(coverage.unknown[:3])
            about = (
                f"the documents do not mention {lacking}" if lacking else "no passage is about this"
            )
            return f"{about} (relevance {coverage.score:.2f} is below {limit:.2f})"

    async def _make_plan(self, ctx: Context) -> tuple[LogicPlan, bool]:
        """Plan by rules where a pattern matches; else by the model, with one repair.

        Also return whether rules made the plan.
        """
        if self.rules or ctx.chat("plan") is None:
            plan = await make_rule_plan(ctx)
            if plan.join is not None and plan.join.how == "both":
                plan = Plan((ctx.question,))  # no operator checks that two answers are both yes
            if not plan.simple or ctx.chat("plan") is None:
                return to_logic_plan(plan), True
        checked, problem = LogicPlan(), ""
        for turn in ("plan", "mend the plan"):
            reply = await ask_planner(
                ctx, LOGIC_FORM, turn, _LOGIC_REQUEST, question=ctx.question, problem=problem
            )
            checked = validate_plan(reply.steps if reply else [])
            if checked.valid:
                return checked, False
            problem = f"Your last plan could not run: {'; '.join(checked.problems)}. Mend it."
        return checked, False

    async def _check_and_answer(
        self, ctx: Context, book: Notebook, mode: Mode, run: tuple[Items, bool]
    ) -> Answer:
        """Check the arguments before the answer is written, or the result after it."""
        items, computed = run
        short = ", ".join(item.text for item in items)
        if ctx.chat("plan") is None:
            return await conclude(ctx, book, mode, short)
        if self.check == "argument":
            context = book.format_notes()
            reply = await ask_planner(
                ctx, CHECK_SUFFICIENT, "check arguments", question=ctx.question, context=context
            )
            if reply is not None and not reply.sufficient and not computed:
                return await self._fall_back(ctx, book, mode, reply.missing or "not sufficient")
        answer = await _write_result(ctx, book, mode, short, computed)
        if self.check == "result" and answer.verdict == "answered":
            checked = await ask_planner(
                ctx,
                VERIFY,
                "check result",
                question=ctx.question,
                notes=book.format_notes(),
                draft=answer.candidate or answer.answer,
            )
            if checked is not None and checked.verdict is Verdict.REJECT:
                return await self._fall_back(ctx, book, mode, checked.missing or "rejected")
        return answer

    async def _fall_back(self, ctx: Context, book: Notebook, mode: Mode, why: str) -> Answer:
        """Write the answer from all evidence; that of the first retrieval, if there is one."""
        name = "fall back to dual-level" if self.fallback else "answer without a fallback"
        async with ctx.step(name, why) as step:
            answer = await conclude(step.ctx, self._without_plan(book, mode), mode)
            step.output = answer.verdict
        how = "fell back" if self.fallback else "the plan failed"
        return replace(answer, note="; ".join(filter(None, (answer.note, f"{how}: {why}"))))

    def _without_plan(self, book: Notebook, mode: Mode) -> Notebook:
        """Return what was retrieved without the results that failed, unless they are all there is.

        In reject mode notes without an answer stay: they are the reason to refuse.
        """
        known = any(note.has_answer for note in book.notes)
        if not self.fallback or (mode == "reject" and book.notes and not known):
            return book
        bare = Notebook()
        for retrieval in book.retrievals:
            bare.add(retrieval)
        return bare


async def _write_result(
    ctx: Context, book: Notebook, mode: Mode, short: str, computed: bool
) -> Answer:
    """Let the model write from the operators' results, the facts and the passages.

    What code computed stands as it is, and so does a result that the model does not answer from.
    """
    if not computed and ctx.chat("answer") is not None:
        answer = await conclude(ctx, book, mode)
        if answer.verdict == "answered" and answer.citations:
            return replace(answer, candidate=answer.candidate or short)
    return await conclude(ctx, book, mode, short)


def _is_computed(plan: LogicPlan) -> bool:
    """Whether code computed the result from checked values: no verdict overrules arithmetic."""
    return not isinstance(plan.steps[-1], Retrieve)


def to_logic_plan(plan: Plan) -> LogicPlan:
    """Convert a plan in words to a logic form: each question a lookup, the join a comparison."""
    steps: list[Operator] = []
    subjects: dict[int, str] = {}
    if plan.join is not None:
        for places, option in zip(plan.join.question_numbers, plan.join.options, strict=True):
            subjects |= dict.fromkeys(places, option)
    for number, question in enumerate(plan.questions, start=1):
        steps.append(Retrieve(subjects.get(number, "it"), "answer", "?", question))
    if plan.join is not None:
        steps += _join_operators(plan.join, len(steps))
    return LogicPlan(tuple(steps))


def _join_operators(join: Join, before: int) -> list[Operator]:
    """Convert a join to operators; a lifespan is the difference of its two dates."""
    if join.how in ("longer life", "shorter life"):
        (born, died), (other_born, other_died) = join.question_numbers[:2]
        return [
            Compare(born, died, "difference"),
            Compare(other_born, other_died, "difference"),
            Compare(before + 1, before + 2, "larger" if join.how == "longer life" else "smaller"),
        ]
    left, right = (places[-1] for places in join.question_numbers[:2])
    how: ComparisonKind = parse_choice(join.how, get_args(ComparisonKind))
    return [Compare(left, right, how)]
