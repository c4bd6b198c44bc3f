"""The default agent: follow the graph and read spans; with a model, it plans and code checks.

Without a model the question's names lead to passages, the reader reads them alone, together and
along chains, and code compares where the table of operators says so. With a model the plan's answer
and the direct answer over all evidence are both formed; the better supported one wins.
"""

from dataclasses import dataclass, replace
from typing import Literal

from clew.agents.answering.account import PASSAGES
from clew.agents.answering.asked_term import find_asked_term
from clew.agents.answering.by_words import answer_by_words, read_measure
from clew.agents.answering.choose_answer import (
    choose_better,
    explain_unsupported,
)
from clew.agents.answering.exact_terms import find_long_form
from clew.agents.answering.extractive import (
    QUOTED_NOTE,
    extract_answer,
    name_best,
    note_span,
    quote_account,
    quote_under,
    quote_whole,
    wants_account,
)
from clew.agents.answering.finish import (
    conclude,
    conclude_briefly,
    mark_incomplete,
    note_failures,
    run_with_fallback,
)
from clew.agents.answering.parts import (
    join_parts,
    refuse_unsure_halves,
    split_halves,
    split_questions,
)
from clew.agents.answering.quote_block import quote_block
from clew.agents.answering.write import (
    TOO_LONG,
    UNSUPPORTED,
    make_answer,
    make_refusal,
    quote_chain,
    write_answer,
)
from clew.agents.answering.write_account import write_account
from clew.agents.conversation import ConversationTurn, resolve_pronouns
from clew.agents.core.messages import (
    YES_NO,
    explain_no_model,
    explain_not_written,
    is_unknown,
)
from clew.agents.core.plan import ARITHMETIC, Plan
from clew.agents.core.scratchpad import Notebook, RecordingRetriever, Retrieval
from clew.agents.core.types import Answer, Mode
from clew.agents.judge import judge_answer
from clew.agents.planning.check_values import WEAKEST, find_mismatch
from clew.agents.planning.model_plan import plan_and_check
from clew.agents.quote_units import (
    cite_exact,
    complete_lists,
    is_technical,
    keep_exact,
    leave_out_others,
    quote_units,
    widen_quotes,
)
from clew.agents.reading.answer import (
    QuestionReader,
    RankedCandidate,
    load_rank,
)
from clew.agents.reading.bridges import find_unsaid_step
from clew.agents.reading.confirm import confirm
from clew.agents.reading.decide import DECIDED
from clew.agents.reading.follow import Follower
from clew.agents.reading.lists import (
    find_like,
    is_count,
    open_count,
    prefer_options,
    wants_several,
)
from clew.agents.reading.periods import compute_told, is_uncomputed
from clew.agents.reading.spans import can_read, same_answer
from clew.agents.rule_planner import combine_notes, keep_stated, make_rule_plan
from clew.agents.rules.operators import is_polar
from clew.agents.rules.question_analysis import find_names
from clew.agents.rules.question_context import say_plainly
from clew.agents.run_plan import PlanRunner
from clew.agents.second_opinion import LEAST_SURE, SecondOpinion
from clew.context import Context
from clew.llm.chat import ContextTooLong
from clew.retrieve.step import Step
from clew.retrieve.tidy import lower_capitals, restore_capitals
from clew.text.language import is_chinese
from clew.text.options import match_option
from clew.text.word_forms import is_read_language
from clew.types import Evidence

_MAX_STEPS = 4  # questions of a model's plan
_UNCITED = "no passage has every value that the model read"
_MIN_CONFIDENCE = 0.5  # as in reject mode: of what is read where the model finds too little


@dataclass(frozen=True)
class GraphReader:
    """Reads along the graph; `rules`, `plan` and `spans` can be switched off to be measured."""

    top_k: int = 8
    """Passages that are read."""
    hops: int = 4
    beam: int = 2
    rules: bool = True
    """Compare by the table of operators."""
    plan: bool = False
    """With a model, let it plan; off: it reads once."""
    spans: bool = True
    """With a model, take a sure span of the reader for a value before asking it."""
    second: bool = True
    """With a model, ask the reader as well; the better supported answer is given."""
    give: Literal["better", "written", "read"] = "better"
    """Where model and reader differ: the better supported answer, or always that of one of them,
    to fit the confidence of both."""
    choose: bool = True
    """Where they differ, let the model choose among its answer and those that were read."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Answer the question, or each of several questions in one."""
        book = Notebook()
        plain = lower_capitals(ctx.question)
        if plain == ctx.question:
            return await self._run(ctx, book, retrieve, mode)
        asked = ctx.with_question(await restore_capitals(ctx, plain))  # SHOUTED
        answer = await self._run(asked, book, retrieve, mode)
        if not answer.signals and not answer.parts:
            answer = await judge_answer(asked, answer)
        return replace(answer, question=ctx.question)

    async def _run(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        work = self._answer(ctx, book, retrieve, mode)
        if ctx.has("answer") or ctx.has("plan"):  # where a model fails, `ask` does without one
            return note_failures(book, await work)
        return await run_with_fallback(ctx, book, mode, work)

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        # What only addresses the reader makes no question of yes or no: "Do you know who …?"
        plain = await say_plainly(ctx)
        parts = split_questions(plain)
        retriever = RecordingRetriever(retrieve, book, self.top_k)
        if len(parts) == 1:
            asked = replace(ctx, question=parts[0])
            answer = await self._answer_one(asked, book, retriever, mode)
            judged = bool(answer.signals) or asked.question == ctx.question
            return answer if judged else await judge_answer(asked, answer)
        answers, turns = list[Answer](), list[ConversationTurn]()
        for part in parts:
            own = Notebook()
            async with ctx.step("part", part) as step:
                asked = step.ctx.with_question(resolve_pronouns(ctx.view, part, turns))
                one = await self._answer_one(asked, own, replace(retriever, book=own), mode)
                answers.append(one if one.signals else await judge_answer(asked, one))
                step.output = one.candidate or one.verdict
            turns.append(ConversationTurn(asked.question, one.candidate or one.answer))
            for retrieval in own.retrievals:
                book.add(retrieval)
            for note in own.notes:
                book.add(note)
        if not ctx.has("answer") and parts == split_halves(plain):
            answers = refuse_unsure_halves(ctx, answers)
        return join_parts(ctx.question, book.evidence(), answers)

    async def _answer_one(
        self, ctx: Context, book: Notebook, retriever: RecordingRetriever, mode: Mode
    ) -> Answer:
        plan = await make_rule_plan(ctx) if self.rules else Plan((ctx.question,))
        if ctx.chat("answer") is not None:
            try:
                return await self._answer_with_model(ctx, book, retriever, mode, plan)
            except ContextTooLong as error:
                answer = await self._answer_alone(ctx, retriever, mode, TOO_LONG)
                return mark_incomplete(answer, str(error))
        if plan.simple and self.plan and ctx.chat("plan") is not None:
            plan = await plan_and_check(ctx, most=_MAX_STEPS)
        if not plan.simple and (computed := await self._compute(ctx, book, retriever, plan)):
            return computed
        answer = await self._answer_whole(ctx, book, retriever, plan)
        if is_uncomputed(ctx.question, answer):
            answer = replace(answer, hints={**answer.hints, WEAKEST: 0.0})
        if plan.join is not None and plan.join.how in ARITHMETIC:
            return keep_stated(ctx, plan, book, answer)
        return answer if plan.join is None or answer.computed else mark_undecided(answer)

    async def _answer_whole(
        self, ctx: Context, book: Notebook, retriever: RecordingRetriever, plan: Plan
    ) -> Answer:
        """Read a question as it stands, or quote what is near it."""
        retrieval = await retriever(ctx, ctx.question)
        if not is_read_language(ctx.question):
            return await self._quote_words(ctx, retriever, retrieval)
        if (computed := self._compute_told(ctx, book, retrieval)) is not None:
            return computed
        if (told := quote_under(ctx, retrieval.evidence)) is not None:
            return await complete_lists(ctx, retrieval.found, told)
        if is_polar(ctx.question) and not is_chinese(ctx.question):
            return await self._confirm(ctx, book, retrieval)
        if (spelled := find_long_form(ctx.question, retrieval.evidence.chunks)) is not None:
            return cite_exact(ctx, retrieval.evidence, spelled)
        whole = await quote_whole(ctx, retrieval.evidence, retrieval.found)
        account = None if whole else await self._quote_account(ctx, retriever, retrieval)
        if account is not None:
            return leave_out_others(ctx.question, account)
        read = whole or await self._read(ctx, book, retriever, retrieval, plan)
        asked = find_asked_term(ctx, read.evidence.chunks) if whole is None else None
        if whole is None:
            read = await keep_exact(ctx, read_measure(ctx, read), asked)
        units = await quote_units(ctx, read, retrieval.found, keep=whole is not None)
        if asked is not None and units.candidate:
            bound = asked.bound(units.candidate, units.confidence)
            units = replace(units, confidence=round(bound, 4))
        units = await complete_lists(ctx, retrieval.found, widen_quotes(units))
        return leave_out_others(ctx.question, units)

    def _compute_told(self, ctx: Context, book: Notebook, retrieval: Retrieval) -> Answer | None:
        """Compute a period or a total from the sentence that has both ends, or all parts."""
        if not self.rules:
            return None
        names = find_names(ctx.view, ctx.question)
        told = compute_told(ctx.question, names, retrieval.evidence.chunks)
        if told is None:
            return None
        book.add(note_span(ctx.question, told.passage, (told.start, told.end)))
        answer = quote_chain(ctx, book.evidence(), book.notes, told.text)
        hints = answer.hints if told.sure else {**answer.hints, WEAKEST: 0.0}
        return replace(answer, support=1.0, computed=True, hints=hints)

    async def _quote_account(
        self, ctx: Context, retriever: RecordingRetriever, retrieval: Retrieval
    ) -> Answer | None:
        """Quote what covers a topic, of more passages than are read, where breadth is wanted."""
        if not await wants_account(ctx) or await self._reads_list(ctx, retriever, retrieval):
            return None
        wide = await replace(retriever, top_k=PASSAGES)(ctx, ctx.question)
        return await quote_account(ctx, wide.evidence, wide.found)

    async def _reads_list(
        self, ctx: Context, retriever: RecordingRetriever, retrieval: Retrieval
    ) -> bool:
        """Whether pages say one item each of the list that is asked for, so that it can be read."""
        if not wants_several(ctx.question):
            return False
        ranked = await self._read_spans(ctx, retriever, retrieval.evidence)
        return bool(await find_like(ctx, retriever, ranked))

    async def _quote_words(
        self, ctx: Context, retriever: RecordingRetriever, retrieval: Retrieval
    ) -> Answer:
        """Quote what has the words of a question in a language without a reader."""
        block = quote_block(ctx.question, retrieval.evidence.chunks)
        if block is None:
            return await answer_by_words(ctx, retriever, retrieval)
        note = explain_not_written(ctx, QUOTED_NOTE)
        return make_answer(ctx, retrieval.evidence, f"{block.quote} [1]", (block,), note=note)

    async def _confirm(self, ctx: Context, book: Notebook, retrieval: Retrieval) -> Answer:
        """Answer yes or no with the sentence that says so; quote what is near where none does."""
        evidence = retrieval.evidence
        said = await confirm(ctx, evidence.chunks)
        if said is None:
            return mark_undecided(await extract_answer(ctx, evidence, retrieval.found))
        book.add(said)
        answer = quote_chain(ctx, book.evidence(), [said], said.answer)
        hints = {**answer.hints, **said.signs}
        return replace(answer, support=said.probability, computed=True, hints=hints)

    async def _read(
        self,
        ctx: Context,
        book: Notebook,
        retriever: RecordingRetriever,
        retrieval: Retrieval,
        plan: Plan,
    ) -> Answer:
        """Name the best candidate that is read, or quote sentences."""
        evidence, found = retrieval.evidence, retrieval.found
        ranked = await self._read_spans(ctx, retriever, evidence)
        if not ranked:
            return await extract_answer(ctx, evidence, found)
        if ranked[0].probability < _MIN_CONFIDENCE and is_count(ctx.question):
            asked = ctx.with_question(open_count(ctx.question))  # which they are, to be counted
            named = await self._read_spans(asked, retriever, evidence)
            counted = await find_like(asked, retriever, named)
            if len({one.candidate.text for one in (*named[:1], *counted)}) > 1:
                return name_best(asked, book, named, counted, count=True)
        like = await find_like(ctx, retriever, ranked)
        preferred = prefer_options(plan, ranked)
        best = name_best(ctx, book, preferred, like)
        unsaid = await find_unsaid_step(ctx, preferred[0])
        return replace(best, hints={**best.hints, **unsaid})

    async def _read_spans(
        self, ctx: Context, retriever: RecordingRetriever, evidence: Evidence
    ) -> list[RankedCandidate]:
        """Return the spans that may answer, best first; none where the reader cannot read it."""
        if not can_read(ctx, ctx.question):
            return []
        technical = await is_technical(ctx, evidence.chunks)
        follow = None if technical else Follower(self.hops, self.beam)
        reader = QuestionReader(retriever, await load_rank(ctx), follow)
        return await reader.read(ctx, evidence.chunks)

    async def _compute(
        self, ctx: Context, book: Notebook, retriever: RecordingRetriever, plan: Plan
    ) -> Answer | None:
        """Read the values of a plan and combine them; None if one is missing.

        Values that do not go together are refused, with the reason.
        """
        notes = await PlanRunner(retriever, book)(ctx, plan)
        evidence = book.evidence()
        if plan.join is not None:
            reason = find_mismatch(ctx.question, plan.join, notes, evidence.chunks)
            if reason and all(note.has_answer for note in notes.values()):
                return make_refusal(ctx, evidence, reason)
        short = match_option(ctx.question, combine_notes(plan, notes))
        if not short:
            return None
        support = min((note.probability for note in notes.values()), default=0.0)
        answer = quote_chain(ctx, evidence, book.notes, short)
        valued = plan.join is not None and plan.join.how not in ("same", "both")
        hints = {**answer.hints, WEAKEST: support} if valued else answer.hints
        return replace(answer, support=support, computed=plan.join is not None, hints=hints)

    async def _answer_with_model(
        self, ctx: Context, book: Notebook, retriever: RecordingRetriever, mode: Mode, plan: Plan
    ) -> Answer:
        if plan.simple and self.plan and ctx.chat("plan") is not None:
            plan = await plan_and_check(ctx, most=_MAX_STEPS)
        short = ""
        if not plan.simple:
            notes = await PlanRunner(retriever, book, use_spans=self.spans)(ctx, plan)
            short = match_option(ctx.question, combine_notes(plan, notes))
        retrieval = await retriever(ctx, ctx.question)
        if not short or is_unknown(short):
            answer = await self._write_and_read(ctx, book, retriever, mode, retrieval)
            return await self._weigh(ctx, retriever, mode, answer)
        if plan.by == "rules" and not all(note.citation for note in notes.values()):
            return await self._answer_alone(ctx, retriever, mode, _UNCITED)
        composed = await conclude(ctx, book, mode, short)
        planned = await judge_answer(ctx, replace(composed, computed=plan.join is not None))
        if plan.by == "rules":
            return planned
        direct = await write_answer(ctx, book.evidence(), mode, book.format_notes())
        if UNSUPPORTED in direct.hints:
            refused = planned.verdict == "refused"
            return await self._do_without(ctx, retriever, mode, direct) if refused else planned
        return choose_better(planned, await judge_answer(ctx, direct))

    async def _write_and_read(
        self,
        ctx: Context,
        book: Notebook,
        retriever: RecordingRetriever,
        mode: Mode,
        retrieval: Retrieval,
    ) -> Answer:
        """Let the model write, and the reader read where a short answer is asked for."""
        evidence, found = retrieval.evidence, retrieval.found
        broad = await wants_account(ctx) and is_read_language(ctx.question)
        whole = quote_under(ctx, evidence) if broad else None
        whole = whole or await quote_whole(ctx, evidence, found)
        quoted = whole or await self._quote_account(ctx, retriever, retrieval) if broad else None
        if quoted and (account := await write_account(ctx, quoted, mode)):
            return account
        written = await conclude_briefly(ctx, book, mode)
        if not self.second:
            return written
        if UNSUPPORTED in written.hints and self.give != "written":
            return await self._do_without(ctx, retriever, mode, written)
        if is_polar(ctx.question):
            return await self._ask_whether(ctx, book, retriever, written, evidence)
        if whole or broad:
            return written
        ranked = await self._read_spans(ctx, retriever, evidence)
        return await self._opinion(ctx, book, written, ranked)

    async def _weigh(
        self, ctx: Context, retriever: RecordingRetriever, mode: Mode, answer: Answer
    ) -> Answer:
        """Give what code computes from values that it reads itself, where that is surer."""
        if self.give != "better" or answer.computed:
            return answer
        found = await self._compute_alone(ctx, retriever, mode)
        if found is None or found.confidence <= max(answer.confidence, LEAST_SURE):
            return answer
        if same_answer(answer.candidate, found.candidate):
            return answer
        note = f"the model wrote “{answer.candidate}”; " if answer.candidate else ""
        return replace(found, note=f"{note}{found.note}")

    async def _compute_alone(
        self, ctx: Context, retriever: RecordingRetriever, mode: Mode
    ) -> Answer | None:
        """Return what code computes without the model, where rules plan that; else None."""
        if not self.rules or (await make_rule_plan(replace(ctx, models=None))).simple:
            return None
        found = await self._answer_alone(ctx, retriever, mode, "")
        return found if found.computed else None

    @property
    def _opinion(self) -> SecondOpinion:
        return SecondOpinion(self.give, self.choose)

    async def _do_without(
        self, ctx: Context, retriever: RecordingRetriever, mode: Mode, written: Answer
    ) -> Answer:
        """Answer as if there were no model, where what it wrote has no support.

        In open mode the likelier of both is given, each judged by what speaks against it; a model
        that is wrong takes nothing from what is found without it, and adds nothing to it.
        """
        found = await self._answer_alone(ctx, retriever, mode, explain_unsupported(written))
        same = same_answer(written.candidate, found.candidate)
        if written.candidate and mode == "open" and not same:
            judged, contested = await self._opinion.judge_both(ctx, written, found)
            if contested.confidence < judged.confidence:
                return judged
        return found

    async def _answer_alone(
        self, ctx: Context, retriever: RecordingRetriever, mode: Mode, why: str
    ) -> Answer:
        """Answer as if there were no model; the note says why."""
        bare, own = replace(ctx, models=None), replace(retriever, book=Notebook())
        async with bare.step("answer without the model", why) as step:
            asked = step.ctx
            found = await judge_answer(asked, await self._answer_one(asked, own.book, own, mode))
            step.output = found.candidate or found.verdict
        how = found.note.removeprefix(f"{explain_no_model(bare)}: ")
        return replace(found, note="; ".join(filter(None, (why, how))))

    async def _ask_whether(
        self,
        ctx: Context,
        book: Notebook,
        retriever: RecordingRetriever,
        written: Answer,
        evidence: Evidence,
    ) -> Answer:
        """Compare a written yes or no with the sentence that says or denies it, if there is one.

        Of two things ("Are A and B both …?") no sentence does: each is read and compared by code.
        """
        yes_or_no = written.candidate.casefold() in YES_NO
        if not yes_or_no or is_chinese(ctx.question):
            return written
        said = await confirm(ctx, evidence.chunks)
        if said is None:
            found = await self._compute_alone(ctx, retriever, "open")
            if found is None or found.confidence < _MIN_CONFIDENCE:
                return written
            return await self._opinion.compare(ctx, written, found)
        same = said.answer.casefold() == written.candidate.casefold()
        # A sentence in other words proves nothing against what a model reads in all of them.
        if DECIDED in said.signs and not same:
            return written
        book.add(said)
        hints = {"agreed": (1 + said.probability) / 2} if same else {"against": said.probability}
        note = written.note if same else f"a sentence says “{said.answer}”: {said.quote}"
        return await judge_answer(ctx, replace(written, hints=hints, note=note))


def mark_undecided(answer: Answer) -> Answer:
    """Return what is near a question that no passage decides: it is no answer to rely on."""
    return replace(answer, hints={**answer.hints, "undecided": 1.0})
