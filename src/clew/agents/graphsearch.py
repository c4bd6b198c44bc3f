"""GraphSearch: two channels of sub-queries, drafted, verified, and expanded where they fall short.

Its six modules are fields, so that the paper's ablation is a table of values.
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
_ANSWERING = 2  # calls kept back for the answer, which may have to be asked for twice


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
    """Model calls of one question, the retriever's and repeated ones included."""
    rules: bool = True
    """Take the plan from rules where the question has a known shape; the model plans the rest."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Background, channels, reflection, answer."""
        book = Notebook()
        own = replace(ctx, budget=ctx.budget.narrowed(self.calls))
        return await bounded(own, book, mode, self._work(own, book, retrieve, mode))

    async def _work(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        """Search with all but the last calls, which are for the answer."""
        look = Looker(retrieve, book, self.top_k)
        search = replace(ctx, budget=ctx.budget.narrowed(max(0, self.calls - _ANSWERING)))
        short = ""
        try:
            background = await look(search, ctx.question)
            if self.decompose:
                short = await self._both(search, book, look, background)
                if self.draft:
                    await self._reflect(search, book, look, short)
        except BudgetEnded as ended:
            return incomplete(await concluded(ctx, book, mode, short), str(ended))
        return await concluded(ctx, book, mode, short)

    async def _both(self, ctx: Context, book: Notebook, look: Looker, background: Looked) -> str:
        """The channels and the background side by side; what they come to, if code can tell."""
        planned = self.rules or ctx.chat("plan") is None
        rules = await rule_plan(ctx) if planned else Plan((ctx.question,))
        work = [self._channel(ctx, book, look, channel, rules) for channel in self.channels]
        first, *rest = await together([self._background(ctx, book, background), *work])
        del first
        book.joined = book.draft = _joined(rules, rest) or _agreed(rules, rest)
        return book.draft

    async def _channel(
        self, ctx: Context, book: Notebook, look: Looker, channel: Channel, plan: Plan
    ) -> dict[int, Note]:
        """One channel from its plan to its notes; the model plans what no rule fits."""
        async with ctx.step(f"{channel} channel", ctx.question) as step:
            if plan.simple and ctx.chat("plan") is not None:
                decompose = model_plan if channel == "semantic" else relational_plan
                plan = await decompose(step.ctx, self.sub_queries)
            show = chunks_only if channel == "semantic" else facts_only
            follow = Follower(look, book, show, channel, ground=self.ground, refine=self.refine)
            notes = await follow(step.ctx, plan)
            step.left = "; ".join(note.answer or "unknown" for _, note in sorted(notes.items()))
            return notes

    async def _background(self, ctx: Context, book: Notebook, looked: Looked) -> dict[int, Note]:
        """Keep what matters of the first look; code drops what its passage does not say."""
        chat = ctx.chat("answer")
        if not self.refine or chat is None or not looked.evidence.chunks:
            return {}
        page = page_of(looked.evidence.chunks)
        said = await ask_plainly(
            ctx,
            REFINE,
            "refine background",
            Request(max_tokens=220),
            question=ctx.question,
            evidence=str(page),
        )
        for kept in said.notes[:3] if said else ():
            if citations_for(kept.text, [kept.source], page.passages):
                book.background.append(kept.text)
        return {}

    async def _reflect(self, ctx: Context, book: Notebook, look: Looker, short: str) -> None:
        """Draft and verify; while the verdict asks for it, expand, and draft again."""
        for turn in range(self.max_reflections + 1):
            book.draft = short or await self._draft(ctx, book) or book.draft
            if not self.verify:
                return
            checked = await self._verify(ctx, book)
            if checked.verdict is not self.expand_on or not self.expand:
                return
            if turn == self.max_reflections or not await self._expand(ctx, book, look, checked):
                return

    async def _draft(self, ctx: Context, book: Notebook) -> str:
        said = await ask_plainly(
            ctx, DRAFT, "draft", question=ctx.question, notes=book.told() or "(none)"
        )
        return "" if said is None or unknown(said.answer) else said.answer.strip()

    async def _verify(self, ctx: Context, book: Notebook) -> Checked:
        """The model's verdict; code's own where the model has none or overlooks a gap."""
        gap = not book.draft
        said = await ask_plainly(
            ctx,
            VERIFY,
            "verify",
            question=ctx.question,
            notes=book.told() or "(none)",
            draft=book.draft or "unknown",
        )
        if said is None or (gap and said.verdict is Verdict.ACCEPT):
            return Checked(
                verdict=Verdict.REJECT if gap else Verdict.ACCEPT,
                missing=_first_gap(book) if gap else "",
            )
        return said

    async def _expand(self, ctx: Context, book: Notebook, look: Looker, checked: Checked) -> bool:
        """Look up what is missing; false when nothing new can be asked."""
        said = await ask_plainly(
            ctx,
            EXPAND,
            "expand",
            question=ctx.question,
            notes=book.told() or "(none)",
            missing=checked.missing or "unclear",
        )
        asked = {note.question for note in book.notes}
        questions = sound(said.questions if said else [], 9).questions
        new = [q for q in questions if q not in asked and not open_places(q)]
        if not new:
            return False
        follower = Follower(look, book, chunks_only, "expansion")

        async def note(question: str) -> Note:
            found = await follower.note(ctx, question)
            book.notes.append(found)
            return found

        await each(note, new[: self.expansions])
        return True


def _joined(plan: Plan, channels: Sequence[dict[int, Note]]) -> str:
    """What the channels' notes come to by code, the first channel's word first."""
    if plan.join is None:
        return ""
    answers: dict[int, str] = {}
    for notes in reversed(channels):
        answers |= {number: note.answer for number, note in notes.items() if note.known}
    return joined(plan.join, answers)


def _agreed(plan: Plan, channels: Sequence[dict[int, Note]]) -> str:
    """The last answer where both channels came to the same: two readings of two kinds of source."""
    last = [notes[max(notes)] for notes in channels if notes]
    if plan.join is not None or len(last) < len(BOTH):
        return ""
    one, other = last
    return one.answer if one.known and other.known and alike(one.answer, other.answer) else ""


def _first_gap(book: Notebook) -> str:
    open_notes = [note.question for note in book.notes if not note.known]
    return open_notes[0] if open_notes else ""
