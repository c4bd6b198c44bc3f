"""Which recipe for these documents and this budget? Measured on a sample, told with numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.evaluate.compare import FEW, SURE, Cell, Comparison, compare
from clew.evaluate.datasets import Question, question_of
from clew.evaluate.measure import drawn, usual_metrics
from clew.evaluate.questions import make_questions
from clew.evaluate.reach import left_out as too_deep
from clew.evaluate.runner import Run, Tell, silent
from clew.evaluate.summary import Report

_TRIED = 3  # questions on which a recipe must not fail throughout, or it is left out
CAUTION = (
    "made questions share words with your documents and flatter bm25; questions of your own "
    "(`clew advise FOLDER`) tell more"
)
DEFAULT = ("clew", "naive", "bm25", "hybrid", "hipporag2", "lightrag")


@dataclass(frozen=True)
class Budget:
    """What a question may cost; None is no limit."""

    ms: float | None = None
    """Milliseconds, for nine questions in ten and more (p95)."""
    money: float | None = None
    """Per 1,000 questions."""


@dataclass(frozen=True)
class Trial:
    """What is tried: recipes, on how many questions, with or without answers."""

    recipes: Sequence[str] = DEFAULT
    sample: int = 50
    seed: int = 0
    answers: bool = False


@dataclass(frozen=True)
class Advice:
    """The recipe to take, why, and all that was measured."""

    recipe: str
    metric: str
    reason: str
    comparison: Comparison
    left_out: dict[str, str]
    """Recipes that could not run, and why."""
    made: bool
    """Whether the questions were made from the knowledge base itself."""
    questions: int
    problems: tuple[str, ...] = ()
    """What is wrong with the questions, and what could not be told."""
    unread: int = 0
    """Rows of the data set that are no questions."""

    def told(self) -> dict[str, Any]:
        """For programs."""
        return {
            "recommended": self.recipe,
            "metric": self.metric,
            "reason": self.reason,
            "questions": self.questions,
            "made": self.made,
            "caution": CAUTION if self.made else "",
            "unread": self.unread,
            "problems": list(self.problems),
            "left_out": self.left_out,
            "recipes": {r.recipe: r.summary() for r in self.comparison.reports},
            "significance": self.comparison.significance(),
        }


async def advise(
    kb: KnowledgeBase,
    trial: Trial,
    questions: Sequence[Question],
    budget: Budget,
    tell: Tell = silent,
) -> Advice:
    """Run the recipes on a sample of the questions, or on made ones, and choose."""
    made = not questions
    if made:
        chat = kb.models.chat("plan") if kb.models.has("plan") else None
        rows = (await make_questions(kb, trial.sample, seed=trial.seed, chat=chat)).rows
        questions = [question_of(row, number) for number, row in enumerate(rows, start=1)]
    asked = drawn(questions, trial.sample, trial.seed)
    metrics = usual_metrics(asked, trial.answers)
    run = Run(kb, metrics, trial.answers, progress=tell)
    reports: list[Report] = []
    left_out: dict[str, str] = {}
    for name in trial.recipes:
        first = await run.recipe(name, asked[:_TRIED])
        errors = [record.error for record in first.records if record.error]
        if len(errors) == len(first.records):
            left_out[name] = errors[0]
            continue
        # The first look also warmed caches, so that no recipe pays for being the first.
        reports.append(await run.recipe(name, asked))
    if not reports:
        why = next(iter(left_out.values()), "no recipe was named")
        raise ConfigError(f"no recipe could run here: {why}")
    table = compare(reports, seed=trial.seed)
    metric = _main_metric(table, trial.answers, made)
    recipe, reason = choose(table, metric, budget)
    if len(asked) < FEW:
        reason += f"; {len(asked)} questions are too few to tell recipes apart, {FEW} would do"
    problems = tuple(too_deep(reports))
    return Advice(recipe, metric, reason, table, left_out, made, len(asked), problems)


def choose(table: Comparison, metric: str, budget: Budget) -> tuple[str, str]:
    """The cheapest of those within the budget that are not clearly worse than the best of them."""
    cells = {name: row[metric] for name, row in table.cells.items() if metric in row}
    costs = {report.recipe: report.costs() for report in table.reports}
    fit = [name for name in cells if _fits(costs[name], budget)]
    if not fit:
        nearest = min(cells, key=lambda name: costs[name]["seconds_p95"])
        return nearest, (
            f"nothing fits the budget; {nearest} comes nearest with "
            f"{_cost(costs[nearest])} and {metric} {cells[nearest].mean:.3f}"
        )
    best = max(fit, key=lambda name: (cells[name].mean, -costs[name]["seconds_p50"]))
    inside = compare([r for r in table.reports if r.recipe in fit], against=best)
    equal = [name for name in fit if inside.cells[name][metric].p >= SURE]
    taken = min(
        equal,
        key=lambda name: (
            costs[name]["money_per_1k_queries"],
            costs[name]["tokens_per_query"],
            costs[name]["seconds_p50"],
        ),
    )
    return taken, _reason(taken, best, metric, cells, costs)


def _reason(
    taken: str,
    best: str,
    metric: str,
    cells: dict[str, Cell],
    costs: dict[str, dict[str, float]],
) -> str:
    cell = cells[taken]
    told = f"{metric} {cell.mean:.3f} ({cell.low:.3f} to {cell.high:.3f}) at {_cost(costs[taken])}"
    if taken == best:
        return f"best within the budget: {told}"
    gap = cells[best].mean - cell.mean
    return (
        f"{told}; {best} is {gap:.3f} better, which these questions cannot tell from chance, "
        f"and costs {_cost(costs[best])}"
    )


def _fits(costs: dict[str, float], budget: Budget) -> bool:
    slow = budget.ms is not None and costs["seconds_p95"] * 1000 > budget.ms
    dear = budget.money is not None and costs["money_per_1k_queries"] > budget.money
    return not (slow or dear)


def _cost(costs: dict[str, float]) -> str:
    told = f"{costs['seconds_p50'] * 1000:.0f} ms (p95 {costs['seconds_p95'] * 1000:.0f})"
    if costs["tokens_per_query"]:
        told += f", {costs['tokens_per_query']:.0f} tokens"
    if costs["money_per_1k_queries"]:
        told += f", {costs['money_per_1k_queries']:.4g} per 1,000 questions"
    return told


def _main_metric(table: Comparison, answers: bool, made: bool) -> str:
    wanted = ["f1", "choice", "hits@1"] if answers else []
    # A made question is worded as its passages are: among five any recipe has them all.
    wanted += ["recall@2", "recall@5", "hits@1"] if made else ["recall@5", "hits@1"]
    return next((name for name in wanted if name in table.metrics), table.metrics[0])
