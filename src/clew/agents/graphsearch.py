"""GraphSearch agent: two channels of sub-queries, drafted, verified, and expanded when incomplete.

The paper's six modules are fields, so that its ablation is a table of values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, Field

from clew.agents.answering.finish import conclude, mark_incomplete, run_with_fallback
from clew.agents.answering.read import KeptFact, keep_supported
from clew.agents.core.evidence_page import show_evidence
from clew.agents.core.messages import is_unknown
from clew.agents.core.plan import Plan, has_placeholders, validate_questions
from clew.agents.core.scratchpad import Note, Notebook, RecordingRetriever, Retrieval
from clew.agents.core.types import Answer, Mode, run_concurrently
from clew.agents.planning.compare_answers import answers_equal, combine_answers
from clew.agents.planning.model_plan import (
    DRAFT,
    EXPAND,
    VERIFY,
    DraftCheck,
    Verdict,
    ask_planner,
    plan_as_triples,
    plan_with_model,
)
from clew.agents.rule_planner import make_rule_plan
from clew.agents.run_plan import PlanRunner
from clew.context import Context, TraceStep
from clew.layout import FACTS, PASSAGES, EvidenceOrder, Layout, Section
from clew.llm.budget import BudgetExceeded
from clew.llm.chat import Request
from clew.llm.prompt import Prompt
from clew.retrieve.step import Step

Channel = Literal["semantic", "relational"]
BOTH_CHANNELS: tuple[Channel, ...] = ("semantic", "relational")
_RESERVED_CALLS = 2  # calls reserved for the answer, which may need a retry
_LOOK_UP_CALLS = 3  # of one sub-query: the retriever's keywords, the reading, a second look
_FACTS_SECTION = Section("facts", 600, most=20)
_BACKGROUND = Layout((_FACTS_SECTION, Section("passages", most=5)))


class RefinedContext(BaseModel, title="Refined"):
    """What context refinement keeps."""

    notes: list[KeptFact] = Field(default_factory=list)


REFINE = Prompt("refine", RefinedContext, {"question", "evidence"}, documents={"evidence"})


@dataclass(frozen=True)
class GraphSearch:
    """The workflow; a field that is off leaves its module out."""

    decompose: bool = True
    refine: bool = True
    ground: bool = True
    draft: bool = True
    verify: bool = True
    expand: bool = True
    channels: tuple[Channel, ...] = BOTH_CHANNELS
    top_k: int = 30
    sub_queries: int = 4
    """Of each channel; the paper's own examples have up to four."""
    expansions: int = 2
    max_reflections: int = 2
    expand_on: Verdict = Verdict.REJECT
    calls: int = 60
    """Model calls for one question, including the retriever's and retries: enough for four
    sub-queries of each channel and both expansions. The channels leave one expansion its calls."""
    rules: bool = True
    """Plan by rules where a question pattern matches, and let code combine the answers."""
    facts: EvidenceOrder = "linked-first"
    """How the facts of the relational channel are ordered."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Refine background, run the channels, reflect, answer."""
        book = Notebook()
        budget, layout = ctx.budget.with_call_limit(self.calls), self._final_layout(ctx)
        own = replace(ctx, budget=budget, layout=layout)
        return await run_with_fallback(own, book, mode, self._answer(own, book, retrieve, mode))

    def _final_layout(self, ctx: Context) -> Layout:
        """Return the recipe's layout, with the facts that the relational channel reads."""
        layout = ctx.layout
        if not self.decompose or "relational" not in self.channels or "facts" in layout.kinds:
            return layout
        return replace(layout, sections=(_FACTS_SECTION, *layout.sections)).select(ctx.modality)

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        """Search with all but the last calls, which are reserved for the answer."""
        retriever = RecordingRetriever(retrieve, book, self.top_k)
        search = replace(
            ctx, budget=ctx.budget.with_call_limit(max(0, self.calls - _RESERVED_CALLS))
        )
        short = ""
        try:
            background = await retriever(search, ctx.question)
            if self.decompose:
                short = await self._run_channels(search, book, retriever, background)
                if self.draft:
                    await self._reflect(search, book, retriever, short)
        except BudgetExceeded as ended:
            return mark_incomplete(await conclude(ctx, book, mode, short), str(ended))
        answer = await conclude(ctx, book, mode, short)
        if not book.dropped:
            return answer
        return mark_incomplete(answer, f"no calls were left for {'; '.join(book.dropped)}")

    def _limit_channels(self, ctx: Context) -> Context:
        """Leave calls for what follows the channels: draft, check, an expansion, both again."""
        after = 0
        if self.draft:
            after = 1 + self.verify
            if self.verify and self.expand:
                after += 1 + self.expansions * _LOOK_UP_CALLS + after
        room = max(0, self.calls - _RESERVED_CALLS)
        budget = ctx.budget.with_call_limit(room - min(after, room // 2))
        return replace(ctx, budget=budget)

    async def _run_channels(
        self, ctx: Context, book: Notebook, retriever: RecordingRetriever, background: Retrieval
    ) -> str:
        """Run background and channels concurrently; return their combined answer, if any."""
        planned = self.rules or ctx.chat("plan") is None
        rules = await make_rule_plan(ctx) if planned else Plan((ctx.question,))
        limited = self._limit_channels(ctx)
        _, *notes = await run_concurrently(
            [
                self._refine_background(limited, book, background),
                *(
                    self._run_channel(limited, book, retriever, name, rules)
                    for name in self.channels
                ),
            ]
        )
        if rules.simple or book.dropped:
            return ""  # the model planned, or not all was asked: every module has its say
        answer = _combine_channels(rules, notes) or _find_agreement(rules, notes)
        book.combined_answer = book.draft = answer
        return answer

    async def _run_channel(
        self,
        ctx: Context,
        book: Notebook,
        retriever: RecordingRetriever,
        channel: Channel,
        plan: Plan,
    ) -> dict[int, Note]:
        """Plan and run one channel; the model plans what no rule matches."""
        async with ctx.step(f"{channel} channel", ctx.question) as step:
            if plan.simple and ctx.chat("plan") is not None:
                decompose = plan_with_model if channel == "semantic" else plan_as_triples
                plan = await decompose(step.ctx, self.sub_queries)
            dropped: list[str] = []
            show = self._choose_source(channel).select(ctx.modality)
            runner = PlanRunner(
                replace(retriever, kinds=show.kinds),
                book,
                channel=channel,
                ground=self.ground,
                context="refined" if self.refine else "raw",
                dropped=dropped,
            )
            notes = await runner(replace(step.ctx, layout=show), plan)
            step.output = "; ".join(note.answer or "unknown" for _, note in sorted(notes.items()))
            if dropped:
                reason = "no calls are left"
                step.ctx.trace.append(TraceStep("drop", "; ".join(dropped), reason, 0.0))
            book.dropped += dropped
            return notes

    def _choose_source(self, channel: Channel) -> Layout:
        """Return what a channel reads: passages, or entities and facts."""
        if channel == "semantic":
            return PASSAGES
        entities, facts = FACTS.sections
        return replace(FACTS, sections=(entities, replace(facts, order=self.facts)))

    async def _refine_background(
        self, ctx: Context, book: Notebook, retrieval: Retrieval
    ) -> dict[int, Note]:
        """Keep the sentences and triples of the first retrieval that matter, if supported."""
        layout = _BACKGROUND.select(ctx.modality)
        if not self.refine or ctx.chat("answer") is None:
            return {}
        page = await show_evidence(
            ctx, retrieval.evidence, layout.for_part(), reply=220, role="plan"
        )
        if not page.items:
            return {}
        reply = await ask_planner(
            ctx,
            REFINE,
            "refine background",
            Request(max_tokens=220),
            question=ctx.question,
            evidence=page,
        )
        book.background += keep_supported(reply.notes, page) if reply else ()
        return {}

    async def _reflect(
        self, ctx: Context, book: Notebook, retriever: RecordingRetriever, short: str
    ) -> None:
        """Draft and verify; while the verdict asks for it, expand and draft again."""
        for turn in range(self.max_reflections + 1):
            if short:
                book.draft = short
            else:
                await self._draft(ctx, book)
            if not self.verify:
                return
            checked = await self._verify(ctx, book)
            book.findings.append(f"{checked.verdict.value} {checked.missing}".strip())
            if checked.verdict is not self.expand_on or not self.expand:
                return
            if turn == self.max_reflections or not await self._expand(
                ctx, book, retriever, checked
            ):
                return

    async def _draft(self, ctx: Context, book: Notebook) -> None:
        """Draft an answer with its reasoning; an unusable reply leaves the draft before it."""
        reply = await ask_planner(
            ctx, DRAFT, "draft", question=ctx.question, notes=_format_history(book)
        )
        if reply is None:
            return
        book.draft_steps = tuple(reply.steps)
        book.draft = "" if is_unknown(reply.answer) else reply.answer.strip()

    async def _verify(self, ctx: Context, book: Notebook) -> DraftCheck:
        """Return the model's verdict; the code's own if the model has none or overlooks a gap."""
        gap = not book.draft
        reply = await ask_planner(
            ctx,
            VERIFY,
            "verify",
            question=ctx.question,
            notes=_format_history(book),
            draft="\n".join(replace(book, findings=[]).format_draft()) or "unknown",
        )
        if reply is None or (gap and reply.verdict is Verdict.ACCEPT):
            return DraftCheck(
                verdict=Verdict.REJECT if gap else Verdict.ACCEPT,
                missing=_first_open_question(book) if gap else "",
            )
        return reply

    async def _expand(
        self, ctx: Context, book: Notebook, retriever: RecordingRetriever, checked: DraftCheck
    ) -> bool:
        """Look up what is missing; return False when there is nothing new to ask."""
        reply = await ask_planner(
            ctx,
            EXPAND,
            "expand",
            question=ctx.question,
            notes=_format_history(book),
            draft="\n".join(book.format_draft()) or "(none)",
            missing=" ".join(checked.missing.split()) or "unclear",
        )
        known = {note.question for note in book.notes}
        questions = validate_questions(reply.questions if reply else [], 9).questions
        new = [q for q in questions if q not in known and not has_placeholders(q)]
        if not new:
            return False
        context: Literal["refined", "raw"] = "refined" if self.refine else "raw"
        runner = PlanRunner(retriever, book, channel="expansion", context=context)

        async def look_up(question: str) -> None:
            book.add(await runner.look_up(ctx, question))

        await run_concurrently([look_up(question) for question in new[: self.expansions]])
        return True


def _format_history(book: Notebook) -> str:
    """Format the background and both channels' queries, contexts and answers."""
    return replace(book, draft="", draft_steps=(), findings=[]).format_notes() or "(none)"


def _combine_channels(plan: Plan, channels: Sequence[dict[int, Note]]) -> str:
    """Combine the channels' answers by the plan's join; the first channel takes precedence."""
    if plan.join is None:
        return ""
    answers: dict[int, str] = {}
    for notes in reversed(channels):
        answers |= {number: note.answer for number, note in notes.items() if note.has_answer}
    return combine_answers(plan.join, answers)


def _find_agreement(plan: Plan, channels: Sequence[dict[int, Note]]) -> str:
    """Return the last answer if both channels of a rule's plan found the same."""
    last = [notes[max(notes)] for notes in channels if notes]
    if plan.join is not None or len(last) < len(BOTH_CHANNELS):
        return ""
    one, other = last
    return (
        one.answer
        if one.has_answer and other.has_answer and answers_equal(one.answer, other.answer)
        else ""
    )


def _first_open_question(book: Notebook) -> str:
    return next((note.question for note in book.notes if not note.has_answer), "")
