"""Let the scorer judge answers, each said with its page and the sentences that it rests on.

Texts are said exactly as the scorer is trained with them (`bench/query_scorer/spans.py`).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from clew.agents.citing.clauses import refer_back
from clew.agents.citing.support import mentions_name
from clew.context import Context
from clew.odds import to_log_odds
from clew.reader.query_scorer import find_told, say_answer
from clew.text.names import strip_disambiguation
from clew.text.sentences import sentence_spans
from clew.types import Passage

_MAX_LOGIT = 6.0  # log odds beyond this say nothing more
_LEAST = 1e-6  # probability


@dataclass(frozen=True, slots=True)
class Place:
    """A span of a passage that an answer rests on."""

    passage: Passage
    start: int
    end: int

    def find_told(self) -> str:
        """Return the sentence around it, behind the one before."""
        return find_told(self.passage.text, self.start, self.end)

    def find_reference(self) -> str:
        """Return the sentence, further back, that says what its sentence refers to; or nothing."""
        text, told = self.passage.text, self.find_told()
        spans = sentence_spans(text)
        first, last = next(((a, b) for a, b in spans if b > self.start), (self.start, self.end))
        at = refer_back(text, first, text[first:last])
        return next((text[a:b] for a, b in spans if a == at and text[a:b] not in told), "")


def can_judge(ctx: Context) -> bool:
    """Whether there is a scorer that knows the language of the question."""
    return ctx.can_score("en")


def say_with_places(
    short: str, places: Sequence[Place], names: Sequence[str], others: Sequence[Passage]
) -> str:
    """Say an answer with the page of its last place, and the sentences that lead there.

    Where that page mentions no name of the question, another of the passages found may lead to it;
    what a sentence refers to may stand further back.
    """
    *before, last = places
    led = [f"{one.passage.title}: {one.find_told()}" for one in before]
    if not led and (bridge := find_bridge(names, last.passage, others)) is not None:
        led = [f"{bridge.passage.title}: {bridge.find_told()}"]
    if not led and (reference := last.find_reference()):
        led = [reference]
    return say_answer(short, last.passage.title, " ".join((*led, last.find_told())))


def find_bridge(names: Sequence[str], home: Passage, others: Sequence[Passage]) -> Place | None:
    """Return where a passage about the question's names mentions the page of another one."""
    title = strip_disambiguation(home.title)
    own = f"{home.title} {home.text}"
    if not names or not title or any(mentions_name(name, own) for name in names):
        return None
    for passage in others:
        at = passage.text.find(title)
        text = f"{passage.title} {passage.text}"
        if passage.id != home.id and at >= 0 and any(mentions_name(name, text) for name in names):
            return Place(passage, at, at + 1)
    return None


async def judge_texts(ctx: Context, question: str, texts: Sequence[str]) -> list[float]:
    """Return for each text how far the scorer finds it to answer, -1 to 1; none without one."""
    if ctx.scorer is None or not can_judge(ctx):
        return []
    known = ctx.answers_judged
    new = [text for text in dict.fromkeys(texts) if (question, text) not in known]
    if new:
        chances = await asyncio.to_thread(ctx.scorer.score, question, new)
        values = map(squash_chance, chances.tolist())
        known |= {(question, text): one for text, one in zip(new, values, strict=True)}
    return [known[question, text] for text in texts]


def squash_chance(chance: float) -> float:
    """Return the log odds of a probability, scaled to -1 … 1."""
    return max(-_MAX_LOGIT, min(_MAX_LOGIT, to_log_odds(chance, _LEAST))) / _MAX_LOGIT
