"""GraphSearch agent: two channels of sub-queries, drafted, verified, and expanded when incomplete.

The paper's six modules are fields, so that its ablation is a table of values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, Field

from clew.agents.agent import together
from clew.agents.answer import Answer, Mode
from clew.agents.follow import Follower, chunks_only, each, facts_only
from clew.agents.notebook import Looked, Looker, Note, Notebook
from clew.agents.planning.ask_plan import (
    DRAFT,
    EXPAND,
    VERIFY,
    Checked,
    Verdict,
    ask_plainly,
    model_plan,
    relational_plan,
)
from clew.agents.planning.joining import joined
from clew.agents.planning.likeness import alike
from clew.agents.planning.plan import Plan, open_places, sound
from clew.agents.steps import rule_plan
from clew.agents.writing.finish import bounded, concluded, incomplete
from clew.agents.writing.reading import page_of, unknown
from clew.agents.writing.support import citations_for
from clew.context import Context
from clew.llm.budget import BudgetEnded
from clew.llm.chat import Request
from clew.llm.prompt import Prompt
from clew.retrieve.step import Step

Channel = Literal["semantic", "relational"]
BOTH: tuple[Channel, ...] = ("semantic", "relational")
_ANSWERING = 2  # calls reserved for the answer, which may need a retry


class Kept(BaseModel):
    """A fact worth keeping and the passage that says it."""

    text: str
    source: int = 0


class Refined(BaseModel):
    """What context refinement keeps."""

    notes: list[Kept] = Field(default_factory=list)


REFINE = Prompt("refine", Refined, {"question", "evidence"}, documents={"evidence"})


@dataclass(frozen=True)
class GraphSearch:
    """The workflow; a field that is off leaves its module out."""

    decompose: bool = True
    refine: bool = True
    ground: bool = True
    draft: bool = True
    verify: bool = True
    expand: bool = True
    channels: tuple[Channel, ...] = BOTH
    top_k: int = 30
    sub_queries: int = 3
    expansions: int = 2
    max_reflections: int = 2
    expand_on: Verdict = Verdict.REJECT
    calls: int = 25
    """Model calls for one question, including the retriever's and retries."""
    rules: bool = True
    """Plan by rules where a question pattern matches; otherwise the model plans."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Refine background, run the channels, reflect, answer."""
        book = Notebook()
        own = replace(ctx, budget=ctx.budget.narrowed(self.calls))
        return await bounded(own, book, mode, self._work(own, book, retrieve, mode))

    async def _work(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        """Search with all but the last calls, which are reserved for the answer."""
        retriever = Looker(retrieve, book, self.top_k)
        search = replace(ctx, budget=ctx.budget.narrowed(max(0, self.calls - _ANSWERING)))
        short = ""
        try:
            background = await retriever(search, ctx.question)
            if self.decompose:
                short = await self._both(search, book, retriever, background)
                if self.draft:
                    await self._reflect(search, book, retriever, short)
        except BudgetEnded as ended:
            return incomplete(await concluded(ctx, book, mode, short), str(ended))
        return await concluded(ctx, book, mode, short)

    async def _both(
        self, ctx: Context, book: Notebook, retriever: Looker, background: Looked
    ) -> str:
        """Run background and channels concurrently; return their combined answer, if any."""
        planned = self.rules or ctx.chat("plan") is None
        rules = await rule_plan(ctx) if planned else Plan((ctx.question,))
        work = [self._channel(ctx, book, retriever, channel, rules) for channel in self.channels]
        first, *rest = await together([self._background(ctx, book, background), *work])
        del first
        book.joined = book.draft = _joined(rules, rest) or _agreed(rules, rest)
        return book.draft

    async def _channel(
        self, ctx: Context, book: Notebook, retriever: Looker, channel: Channel, plan: Plan
    ) -> dict[int, Note]:
        """Plan and run one channel; the model plans what no rule matches."""
        async with ctx.step(f"{channel} channel", ctx.question) as step:
            if plan.simple and ctx.chat("plan") is not None:
                decompose = model_plan if channel == "semantic" else relational_plan
                plan = await decompose(step.ctx, self.sub_queries)
            show = chunks_only if channel == "semantic" else facts_only
            runner = Follower(
                retriever, book, show, channel, ground=self.ground, refine=self.refine
            )
            notes = await runner(step.ctx, plan)
            step.left = "; ".join(note.answer or "unknown" for _, note in sorted(notes.items()))
            return notes

    async def _background(self, ctx: Context, book: Notebook, retrieval: Looked) -> dict[int, Note]:
        """Keep the relevant facts of the first retrieval that their passage supports."""
        chat = ctx.chat("answer")
        if not self.refine or chat is None or not retrieval.evidence.chunks:
            return {}
        page = page_of(retrieval.evidence.chunks)
        reply = await ask_plainly(
            ctx,
            REFINE,
            "refine background",
            Request(max_tokens=220),
            question=ctx.question,
            evidence=str(page),
        )
        for kept in reply.notes[:3] if reply else ():
            if citations_for(kept.text, [kept.source], page.passages):
                book.background.append(kept.text)
        return {}

    async def _reflect(self, ctx: Context, book: Notebook, retriever: Looker, short: str) -> None:
        """Draft and verify; while the verdict asks for it, expand and draft again."""
        for turn in range(self.max_reflections + 1):
            book.draft = short or await self._draft(ctx, book) or book.draft
            if not self.verify:
                return
            checked = await self._verify(ctx, book)
            if checked.verdict is not self.expand_on or not self.expand:
                return
            if turn == self.max_reflections or not await self._expand(
                ctx, book, retriever, checked
            ):
                return

    async def _draft(self, ctx: Context, book: Notebook) -> str:
        reply = await ask_plainly(
            ctx, DRAFT, "draft", question=ctx.question, notes=book.told() or "(none)"
        )
        return "" if reply is None or unknown(reply.answer) else reply.answer.strip()

    async def _verify(self, ctx: Context, book: Notebook) -> Checked:
        """Return the model's verdict; the code's own if the model has none or overlooks a gap."""
        gap = not book.draft
        reply = await ask_plainly(
            ctx,
            VERIFY,
            "verify",
            question=ctx.question,
            notes=book.told() or "(none)",
            draft=book.draft or "unknown",
        )
        if reply is None or (gap and reply.verdict is Verdict.ACCEPT):
            return Checked(
                verdict=Verdict.REJECT if gap else Verdict.ACCEPT,
                missing=_first_gap(book) if gap else "",
            )
        return reply

    async def _expand(
        self, ctx: Context, book: Notebook, retriever: Looker, checked: Checked
    ) -> bool:
        """Look up what is missing; return False when there is nothing new to ask."""
        reply = await ask_plainly(
            ctx,
            EXPAND,
            "expand",
            question=ctx.question,
            notes=book.told() or "(none)",
            missing=checked.missing or "unclear",
        )
        asked_questions = {note.question for note in book.notes}
        questions = sound(reply.questions if reply else [], 9).questions
        new = [q for q in questions if q not in asked_questions and not open_places(q)]
        if not new:
            return False
        runner = Follower(retriever, book, chunks_only, "expansion")

        async def note(question: str) -> Note:
            found = await runner.note(ctx, question)
            book.notes.append(found)
            return found

        await each(note, new[: self.expansions])
        return True


def _joined(plan: Plan, channels: Sequence[dict[int, Note]]) -> str:
    """Combine the channels' answers by the plan's join; the first channel takes precedence."""
    if plan.join is None:
        return ""
    answers: dict[int, str] = {}
    for notes in reversed(channels):
        answers |= {number: note.answer for number, note in notes.items() if note.known}
    return joined(plan.join, answers)


def _agreed(plan: Plan, channels: Sequence[dict[int, Note]]) -> str:
    """Return the last answer if both channels found the same, from two kinds of source."""
    last = [notes[max(notes)] for notes in channels if notes]
    if plan.join is not None or len(last) < len(BOTH):
        return ""
    one, other = last
    return one.answer if one.known and other.known and alike(one.answer, other.answer) else ""


def _first_gap(book: Notebook) -> str:
    open_notes = [note.question for note in book.notes if not note.known]
    return open_notes[0] if open_notes else ""
