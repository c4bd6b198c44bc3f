"""Running recipes over a dataset: per-question records, means that show how many they cover."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from clew.engine import KnowledgeBase
from clew.errors import ClewError
from clew.evaluate.datasets import Question
from clew.evaluate.metrics import ANSWER_METRICS, depth, retrieval_metric


@dataclass(frozen=True)
class Record:
    """One question under one recipe."""

    question: Question
    values: dict[str, float]
    seconds: float
    found: tuple[str, ...] = ()
    answer: str = ""
    error: str = ""


@dataclass(frozen=True)
class Report:
    """All records of one recipe."""

    recipe: str
    records: tuple[Record, ...]

    def summary(self) -> dict[str, Any]:
        """Means over the questions each metric applies to, with their number and the failures."""
        names = dict.fromkeys(name for r in self.records for name in r.values)
        means = {n: [r.values[n] for r in self.records if n in r.values] for n in names}
        seconds = [r.seconds for r in self.records] or [0.0]
        return {
            **{name: round(float(np.mean(values)), 4) for name, values in means.items()},
            "n": max((len(values) for values in means.values()), default=0),
            "failed": sum(1 for r in self.records if r.error),
            "seconds_per_query": round(float(np.mean(seconds)), 5),
            "seconds_p50": round(float(np.percentile(seconds, 50)), 5),
            "seconds_p95": round(float(np.percentile(seconds, 95)), 5),
            "calls": 0,
            "tokens": 0,
        }


@dataclass(frozen=True)
class Run:
    """What to measure and how to tell about it."""

    kb: KnowledgeBase
    metrics: Sequence[str]
    answers: bool = False
    progress: Callable[[str, int, int], None] = field(
        default=lambda stage, done, total: None, repr=False
    )

    async def recipe(self, name: str, questions: Sequence[Question]) -> Report:
        """Run one recipe over the questions."""
        k = depth(self.metrics)
        records = []
        for done, question in enumerate(questions, start=1):
            records.append(await self._one(name, question, k))
            self.progress(name, done, len(questions))
        return Report(name, tuple(records))

    async def _one(self, name: str, question: Question, k: int) -> Record:
        started = perf_counter()
        try:
            if self.answers:
                answer = await self.kb.ask(question.text, recipe=name, k=k)
                evidence, said = answer.evidence, answer.candidate or answer.answer
            else:
                evidence = (await self.kb.search(question.text, recipe=name, k=k)).evidence
                said = ""
        except ClewError as error:
            # A failed question counts as found nothing: the denominator never shrinks in silence.
            zeros = _values(self.metrics, (), "", question, self.answers)
            return Record(question, zeros, perf_counter() - started, error=str(error))
        seconds = perf_counter() - started
        found = tuple(passage.doc for passage in evidence.chunks)
        values = _values(self.metrics, found, said, question, self.answers)
        return Record(question, values, seconds, found, said)


def _values(
    names: Sequence[str], found: Sequence[str], said: str, question: Question, answers: bool
) -> dict[str, float]:
    """The value of every metric that this question has gold for."""
    values = {}
    distinct = list(dict.fromkeys(found))
    for name in names:
        retrieval = retrieval_metric(name)
        if retrieval is not None and question.gold:
            values[name] = retrieval(distinct, question.gold)
        elif name in ANSWER_METRICS and answers and question.answers:
            values[name] = ANSWER_METRICS[name](said, question.answers)
    return values
