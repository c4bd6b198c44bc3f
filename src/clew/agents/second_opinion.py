"""Weigh what a model wrote against what is read in the passages, and give the better supported one.

Neither is preferred: both are judged, the sentences that each cites are compared by the same
signals (`answering/backing.py`), and where they differ the one that is given is no surer than the
other leaves it.
"""

from dataclasses import dataclass, replace
from typing import Literal

from clew.agents.answering.backing import BACKED, bound_by, compare_backing
from clew.agents.answering.choose_answer import (
    agree,
    answers_as_well,
    choose_answer,
    is_span_like,
    is_stated,
    overrule,
)
from clew.agents.answering.extractive import name_best
from clew.agents.answering.write import NO_REPLY
from clew.agents.citing.check import find_framed
from clew.agents.citing.support import contains_answer
from clew.agents.core.messages import strip_marks
from clew.agents.core.scratchpad import Notebook
from clew.agents.core.types import Answer
from clew.agents.judge import asks_openly, judge_answer
from clew.agents.reading.answer import RankedCandidate, load_rank
from clew.agents.reading.spans import same_answer
from clew.context import Context
from clew.odds import to_log_odds
from clew.text.options import split_options

LEAST_SURE = 0.5
"""As in reject mode: of what is read where the model finds too little."""
_MIN_OPINION = 0.14  # a reader less sure than this finds no answer, which is a sign as well
_LEAST_CHANCE, _MOST_ODDS = 0.0025, 6.0  # of a confidence, and its log odds
_DISPUTED = 0.45  # confidence at most of a yes that is computed and a no that is written
_READ_ALIKE = "no passage supports the sentences of the model; the same answer is read in one"
_READ_THERE = "the model named the answer; it is read in the passage that is cited"


@dataclass(frozen=True)
class SecondOpinion:
    """Asks the reader beside the model; what both give, and `choose`, can be switched."""

    give: Literal["better", "written", "read"] = "better"
    choose: bool = True

    async def __call__(
        self, ctx: Context, book: Notebook, written: Answer, ranked: list[RankedCandidate]
    ) -> Answer:
        """Form the reader's answer as well: both agree, or the better supported one is given."""
        if not ranked:
            return written
        if written.computed:  # a span is at most a part of what code has checked
            return await judge_answer(ctx, written)
        named = name_best(ctx, book, ranked)
        read = await judge_answer(ctx, named)
        if written.verdict == "refused":
            return await self._doubt(ctx, written, named, read)
        if written.note.startswith(NO_REPLY):
            return overrule(written, read) if read.confidence >= LEAST_SURE else written
        if not written.candidate:
            return await self._compare_prose(ctx, written, named, read)
        span_like = is_span_like(ctx.question, written.candidate)
        if read.confidence < _MIN_OPINION:
            unread = replace(written, hints={"unread": 1.0})
            return await judge_answer(ctx, unread) if span_like else written
        if agree(ctx.question, written.candidate, read.candidate):
            return await self.second(ctx, written, read)
        chosen = await choose_answer(ctx, written, named, ranked) if self.choose else ""
        return await self._settle(ctx, written, named, read, chosen)

    async def second(self, ctx: Context, written: Answer, read: Answer) -> Answer:
        """Judge what model and reader agree on; a reader that is not sure of itself counts too.

        Where no passage supports the model's sentences, what is read is given, with its citation;
        so it is where they only name the answer.
        """
        same = same_answer(written.candidate, read.candidate)
        if same and not written.citations and self.give != "written":
            found = await judge_answer(replace(ctx, models=None), read)
            return replace(found, note=_READ_ALIKE)
        told = any(contains_answer(read.candidate, one.quote) for one in written.citations)
        if same and not told and find_framed(strip_marks(written.answer)):
            cited = replace(written, evidence=read.evidence, citations=read.citations)
            written = replace(cited, answer=read.answer, note=_READ_THERE)
        agreed = (1 + read.confidence) / 2
        return await judge_answer(ctx, replace(written, hints={"agreed": agreed}))

    async def judge_both(
        self, ctx: Context, written: Answer, found: Answer
    ) -> tuple[Answer, Answer]:
        """Judge what a model wrote and what was found without it by each other.

        Where both name something else, each has the confidence of answers that were contradicted.
        """
        if not found.candidate or not is_span_like(ctx.question, written.candidate):
            return await judge_answer(ctx, written), found
        if agree(ctx.question, written.candidate, found.candidate):
            return await self.second(ctx, written, found), found
        hints = {"against": found.confidence}
        judged = await judge_answer(ctx, replace(written, hints=hints))
        if found.kind != "span":
            return judged, found
        heard = {**found.hints, "alone": found.confidence, "contested": 1.0}
        contested = await judge_answer(ctx, replace(found, hints=heard))
        return judged, contested

    async def compare(self, ctx: Context, written: Answer, computed: Answer) -> Answer:
        """Weigh a written yes or no against one that code computed from what it read of each thing.

        Each thing has a citation of its own there, so where they differ it is given; neither is
        sure then.
        """
        if same_answer(written.candidate, computed.candidate):
            return written
        if self.give == "written":
            return await judge_answer(ctx, replace(written, hints={"against": computed.confidence}))
        unsure = min(computed.confidence, _DISPUTED)
        note = f"the model says “{written.candidate}”, what is read of each says otherwise"
        return replace(computed, confidence=unsure, note=note)

    async def _doubt(self, ctx: Context, written: Answer, named: Answer, read: Answer) -> Answer:
        """Give what is read where the model finds no answer, if the reader is sure of it.

        That a model finds none in all the passages speaks against it, as another answer would.
        """
        if read.confidence < LEAST_SURE:
            return written
        odds = to_log_odds(read.confidence, _LEAST_CHANCE) / _MOST_ODDS
        heard = {"alone odds": odds, "unfound": 1.0}
        return overrule(written, await judge_answer(ctx, _hear(named, heard)))

    async def _compare_prose(
        self, ctx: Context, written: Answer, named: Answer, read: Answer
    ) -> Answer:
        """Look for what is read in sentences that name no short answer, where one is asked for."""
        if asks_openly(ctx.question) or read.confidence < _MIN_OPINION:
            return written
        if contains_answer(read.candidate, strip_marks(written.answer)):
            return await self.second(ctx, replace(written, candidate=read.candidate), read)
        if read.confidence < LEAST_SURE:
            return written
        return await self._settle(ctx, written, named, read, "")

    async def _settle(
        self, ctx: Context, written: Answer, named: Answer, read: Answer, chosen: str
    ) -> Answer:
        """Give the answer that the model chose of two that differ, else the better supported."""
        alone = read.confidence
        kept = bool(chosen) and same_answer(chosen, written.candidate)
        moved = not kept and same_answer(chosen, named.candidate)
        own = await judge_answer(ctx, written)
        backed = await compare_backing(ctx, await load_rank(ctx), own, read)
        heard = {"kept": float(kept), "moved": float(moved)}
        # A model that keeps what one sentence says in full is not wrong because a span differs,
        # unless that span answers better: a sentence may have the value of another thing as well.
        stated = kept and is_stated(ctx.question, written) and answers_as_well(own, read)
        hints = {"against": 0.0 if stated else alone, "stated": float(stated), BACKED: backed}
        judged = await judge_answer(ctx, replace(written, hints={**hints, **heard}))
        if self.give == "written" or split_options(ctx.question)[1]:
            return judged
        against = {**heard, "alone": alone, "contested": 1.0, BACKED: -backed}
        contested = await judge_answer(ctx, _hear(named, against))
        weighed = alone >= LEAST_SURE and not stated  # a sure reader against a stubborn model
        keeps = self.give == "better" and kept and not weighed  # with the others before its eyes
        better = contested.confidence > judged.confidence
        if moved or self.give == "read" or (better and not keeps):
            # That it is contested makes no answer surer, unless the model takes it for its own.
            sure = contested.confidence if moved else min(alone, contested.confidence)
            return bound_by(overrule(judged, replace(contested, confidence=sure)), judged)
        return judged if stated else bound_by(judged, contested)


def _hear(named: Answer, heard: dict[str, float]) -> Answer:
    return replace(named, hints={**named.hints, **heard})
