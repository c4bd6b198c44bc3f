"""Agents over a dataset with a real model: SubEM, F1, calls, tokens and seconds in one table."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np

from clew.config import Settings, load_settings
from clew.engine import KnowledgeBase
from clew.errors import ClewError
from clew.evaluate.datasets import Question, load_dataset
from clew.evaluate.metrics.answers import exact_match, f1, sub_exact_match
from clew.evaluate.scoring import RecipeOutput
from clew.ingest.files import read

Mode = Literal["open", "reject"]


@dataclass(frozen=True)
class AgentTable:
    """Recipes, dataset and options of one table."""

    data: Path
    kb: Path
    recipes: tuple[str, ...]
    limit: int = 100
    skip: int = 0
    mode: Mode = "reject"
    k: int | None = 5
    concurrency: int = 32
    out: Path | None = None

    def settings(self) -> Settings:
        """Return the user's settings with a higher call concurrency."""
        found = load_settings()
        models = found.models.model_copy(update={"concurrency": 4 * self.concurrency})
        return found.model_copy(update={"kb": self.kb, "models": models})

    async def run(self) -> dict[str, dict[str, Any]]:
        """Run every recipe over the same questions."""
        dataset = load_dataset(self.data)
        base = await KnowledgeBase.open(self.settings(), create=True)
        try:
            if not (await base.store.counts()).documents and dataset.corpus is not None:
                await base.take(read([dataset.corpus], row_names="id"))
            questions = dataset.questions[self.skip : self.skip + self.limit]
            return {name: await self._run_recipe(base, name, questions) for name in self.recipes}
        finally:
            await base.close()

    async def _run_recipe(
        self, base: KnowledgeBase, name: str, questions: Sequence[Question]
    ) -> dict[str, Any]:
        started = perf_counter()
        found = summarize(await self.ask_all(base, name, questions))
        found["wall"] = round(perf_counter() - started, 1)
        print(format_row(name, found), flush=True)
        return found

    async def ask_all(
        self, base: KnowledgeBase, name: str, questions: Sequence[Question]
    ) -> list[dict[str, Any]]:
        """Ask all questions concurrently and return a row for each."""
        gate = asyncio.Semaphore(self.concurrency)

        async def one(question: Question) -> dict[str, Any]:
            async with gate:
                return await self._ask_question(base, name, question)

        rows = await asyncio.gather(*(one(question) for question in questions))
        if self.out is not None:
            with self.out.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return rows

    async def _ask_question(
        self, base: KnowledgeBase, name: str, question: Question
    ) -> dict[str, Any]:
        row: dict[str, Any] = {"recipe": name, "question": question.text, "type": question.type}
        row["golds"] = list(question.answers)
        try:
            answer = await base.ask(question.text, recipe=name, mode=self.mode, k=self.k)
        except ClewError as error:
            zeros = dict.fromkeys(("subem", "subem-short", "em", "f1"), 0.0)
            return row | zeros | {"error": str(error), "calls": 0}
        refused = answer.verdict == "refused"
        output = RecipeOutput(
            answer=answer.answer, short=answer.candidate, refused=refused, plain=answer.plain
        )
        answer_text = output.named_answer()
        usage = answer.usage
        docs = [passage.doc for passage in answer.evidence.chunks]
        gold = set(question.gold)
        return row | {
            "said": answer_text,
            "answer": answer.answer,
            "note": answer.note,
            "refused": refused,
            "complete": answer.complete,
            "subem-short": sub_exact_match(answer_text, question.answers),
            "subem": max(
                sub_exact_match(text, question.answers)
                for text in (output.scored_text(), answer_text)
            ),
            "em": exact_match(answer_text, question.answers),
            "f1": f1(answer_text, question.answers),
            "recall": len(gold & set(docs)) / max(1, len(gold)),
            "cited": len(answer.citations),
            "calls": usage.calls + usage.cached_calls,
            "tokens": usage.prompt_tokens
            + usage.completion_tokens
            + usage.cached_prompt_tokens
            + usage.cached_completion_tokens,
            "seconds": answer.seconds,
            "trace": outline_trace(answer.trace),
        }


def outline_trace(trace: Sequence[Any]) -> list[Any]:
    """Shorten a trace to a readable outline."""
    return [
        [step.step[:40], step.input[:200], step.output[:200], outline_trace(step.steps)]
        for step in trace
        if not step.step.startswith(("LinkNames", "Walk"))
    ]


def summarize(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Average over all questions; a failed one counts as wrong."""
    names = ("subem-short", "subem", "em", "f1", "recall", "refused", "calls", "tokens", "seconds")
    found: dict[str, Any] = {
        name: round(float(np.mean([float(row.get(name, 0.0)) for row in rows])), 4)
        for name in names
    }
    found["n"] = len(rows)
    found["failed"] = sum("error" in row for row in rows)
    types = sorted({row["type"] for row in rows if row["type"]})
    for kind in types:
        mine = [row["subem-short"] for row in rows if row["type"] == kind]
        found[f"subem-short {kind}"] = round(float(np.mean(mine)), 3)
    return found


TITLES = ("short", "SubEM", "EM", "F1", "recall", "refused", "calls", "tokens", "s", "failed")


def format_row(name: str, found: dict[str, Any]) -> str:
    """Format one row of the table."""
    marks = [100 * found[k] for k in ("subem-short", "subem", "em", "f1", "recall", "refused")]
    cells = [f"{mark:7.1f}" for mark in marks]
    cells += [f"{found['calls']:7.2f}", f"{found['tokens']:8.0f}", f"{found['seconds']:7.1f}"]
    return f"{name:26}" + "".join(cells) + f"{found['failed']:7d}"


def format_header() -> str:
    """Format the column titles."""
    widths = (7, 7, 7, 7, 7, 8, 7, 8, 7, 7)
    return " " * 26 + "".join(f"{t:>{w}}" for t, w in zip(TITLES, widths, strict=True))
