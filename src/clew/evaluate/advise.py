"""Recommend a recipe for a knowledge base and a cost limit, measured on a sample of questions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from clew.builder import ignore_progress
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.evaluate.compare import MIN_QUESTIONS, P_SIGNIFICANT, Cell, Comparison, compare
from clew.evaluate.datasets import Question, parse_question
from clew.evaluate.measure import default_metrics, sample_questions
from clew.evaluate.question_generation import NoQuestionsError, make_questions
from clew.evaluate.runner import RecipeRunner
from clew.evaluate.summary import RecipeReport, describe_dropped_metrics
from clew.ingest.embedding import ProgressCallback
from clew.recipes.default import GRAPH_RECIPE, is_only_graph
from clew.retrieve.blend import measure_corpus_trust

_MUCH_LONGER, _SHORT_SECONDS = 2.0, 0.02  # times, and seconds that make no difference
_LITTLE_WORSE = 0.05  # a cheaper recipe is offered, or taken for the best, if it loses no more
_SINGLE_FACTS = "no question over several facts can be made from these documents: each asks for one"
_POOR = 0.3  # where no recipe scores more on generated questions, these tell little
_TRIAL_QUESTIONS = 3  # a recipe that fails on all of these first questions is left out
GENERATED_QUESTIONS_WARNING = (
    "generated questions share words with your documents, which favours bm25; your own "
    "questions (`clew advise FOLDER`) give a better estimate"
)


@dataclass(frozen=True)
class CorpusKind:
    """What a knowledge base holds, and what led on others of its kind (docs/recipes.md)."""

    name: str
    about: str
    recipe: str
    """The one that led."""
    recipes: tuple[str, ...]
    """Those worth trying."""


GRAPH = CorpusKind(
    "graph",
    "only an imported graph: answers are found along relations",
    GRAPH_RECIPE,
    (GRAPH_RECIPE, "tog", "g-retriever"),
)
LINKED_PAGES = CorpusKind(
    "pages that name each other",
    "names in the texts lead to pages about them, so that recipes which follow names lead",
    "clew",
    ("clew", "clew-beam", "hipporag2", "hybrid", "naive", "bm25"),
)
LONG_ARTICLES = CorpusKind(
    "long articles",
    "few names lead to pages about them; words and meaning lead, names help",
    "clew",
    ("clew", "hybrid", "bm25", "naive", "hipporag2", "lightrag"),
)
MIXED_PAGES = CorpusKind(
    "short pages, some of which name each other",
    "some names lead to pages about them; words, meaning and names lead together",
    "clew",
    ("clew", "hipporag2", "hybrid", "naive", "bm25"),
)
UNLINKED_PAGES = CorpusKind(
    "pages that do not name each other",
    "names lead to no page in particular, so that words, meaning and sentences lead",
    "clew",
    ("clew", "hybrid", "naive", "bm25", "hipporag2", "hypergraphrag"),
)
_LONG_ARTICLE = 4  # passages of a document, on average


async def find_corpus_kind(kb: KnowledgeBase) -> CorpusKind:
    """Tell which kind of corpus a knowledge base is, by how far names lead to pages."""
    async with kb.store.snapshot() as now:
        ctx = await kb.context(now, "")
        if await is_only_graph(ctx.view, kb.store):
            return GRAPH
        trust = await measure_corpus_trust(ctx)
    if trust >= 1 or trust <= 0:
        return LINKED_PAGES if trust >= 1 else UNLINKED_PAGES
    counts = await kb.store.counts()
    return LONG_ARTICLES if counts.chunks >= _LONG_ARTICLE * counts.documents else MIXED_PAGES


@dataclass(frozen=True)
class QueryCostLimit:
    """Upper limits of the cost of a question; None is no limit."""

    ms: float | None = None
    """Milliseconds per question (p95)."""
    money: float | None = None
    """Per 1,000 questions."""


@dataclass(frozen=True)
class TrialSettings:
    """Recipes to try, number of questions, seed, and whether answers are generated."""

    recipes: Sequence[str] = ()
    """By default those worth trying on this kind of corpus."""
    sample: int = 50
    seed: int = 0
    answers: bool = False


@dataclass(frozen=True)
class Advice:
    """The recommended recipe, the reason, and the measured comparison."""

    recipe: str
    metric: str
    reason: str
    comparison: Comparison
    left_out: dict[str, str]
    """Recipes that could not run → the error."""
    questions_generated: bool
    """Whether the questions were generated from the knowledge base itself."""
    questions: int
    kind: CorpusKind
    problems: tuple[str, ...] = ()
    """Problems of the data set, and metrics that were left out."""
    unread: int = 0
    """Rows of the data set that could not be read."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object that `clew advise --json` prints."""
        return {
            "recommended": self.recipe,
            "corpus": {"kind": self.kind.name, "about": self.kind.about},
            "metric": self.metric,
            "reason": self.reason,
            "questions": self.questions,
            "made": self.questions_generated,
            "caution": GENERATED_QUESTIONS_WARNING if self.questions_generated else "",
            "unread": self.unread,
            "problems": list(self.problems),
            "left_out": self.left_out,
            "recipes": {r.recipe: r.summary() for r in self.comparison.reports},
            "significance": self.comparison.significance(),
        }


async def advise(
    kb: KnowledgeBase,
    trial: TrialSettings,
    questions: Sequence[Question],
    budget: QueryCostLimit,
    progress: ProgressCallback = ignore_progress,
) -> Advice:
    """Run the recipes on a sample of the questions, or on generated ones, and recommend one."""
    generated, told = not questions, list[str]()
    kind = await find_corpus_kind(kb)
    if generated:
        try:
            questions, told = await _generate(kb, trial)
        except NoQuestionsError as nothing:
            if not (await kb.store.counts()).documents:
                raise
            return _advise_by_kind(kind, str(nothing))
    sampled = sample_questions(questions, trial.sample, trial.seed)
    answers = trial.answers or _scores_answers(kind, sampled)
    metrics = default_metrics(sampled, answers)
    if kind is GRAPH and "hits@1" not in metrics and any(one.answers for one in sampled):
        metrics.append("hits@1")
    run = RecipeRunner(kb, metrics, answers, progress=progress)
    reports: list[RecipeReport] = []
    left_out: dict[str, str] = {}
    for name in trial.recipes or kind.recipes:
        first = await run.run_recipe(name, sampled[:_TRIAL_QUESTIONS])
        errors = [record.error for record in first.records if record.error]
        if len(errors) == len(first.records):
            left_out[name] = errors[0]
            continue
        # The trial questions also warmed the caches, so that the first recipe has no disadvantage.
        reports.append(await run.run_recipe(name, sampled))
    if not reports:
        why = next(iter(left_out.values()), "no recipe was given")
        raise ConfigError(f"no recipe could run: {why}")
    table = compare(reports, seed=trial.seed)
    metric = _select_metric(table, answers or kind is GRAPH, generated)
    doubt = _find_doubt(table, metric, len(sampled), generated)
    biased = generated and kind is not GRAPH  # towards recipes that go by words
    recipe, reason = choose_recipe(
        table, metric, budget, kind.recipe, sure=not doubt, biased=biased
    )
    if doubt:
        reason += f"; {doubt}"
        if recipe == kind.recipe:
            reason += f"; {recipe} led on other corpora of this kind: {kind.name}"
    problems = (*told, *describe_dropped_metrics(reports))
    return Advice(recipe, metric, reason, table, left_out, generated, len(sampled), kind, problems)


def _scores_answers(kind: CorpusKind, questions: Sequence[Question]) -> bool:
    """Whether only answers can be scored: to questions over documents, without gold passages."""
    golden = any(one.gold for one in questions)
    return kind is not GRAPH and not golden and any(one.answers for one in questions)


def _find_doubt(table: Comparison, metric: str, asked: int, generated: bool) -> str:
    """Say why these questions cannot tell which recipe is better; "" if they can."""
    best = _find_best(table, metric)
    if not best:
        return f"no recipe has any {metric} on these questions, so that they tell nothing"
    if asked < MIN_QUESTIONS:
        return (
            f"{asked} questions are too few for significant differences; "
            f"use at least {MIN_QUESTIONS}"
        )
    if generated and best < _POOR:
        return (
            f"no recipe has {metric} of {_POOR} on the generated questions, so that they tell "
            "little; use your own"
        )
    return ""


async def _generate(kb: KnowledgeBase, trial: TrialSettings) -> tuple[list[Question], list[str]]:
    """Generate questions over several facts, else on one each; also return what is to be said."""
    chat = kb.models.chat("plan") if kb.models.has("plan") else None
    make, told = partial(make_questions, kb, trial.sample, seed=trial.seed, chat=chat), list[str]()
    try:
        rows = (await make()).rows
    except NoQuestionsError:
        rows = (await make(kinds=("fact",))).rows
        told.append(_SINGLE_FACTS)
    return [parse_question(row, number) for number, row in enumerate(rows, start=1)], told


def _advise_by_kind(kind: CorpusKind, problem: str) -> Advice:
    """Recommend what led on other corpora of this kind: nothing could be asked of this one."""
    reason = f"not measured here; it led on other corpora of this kind: {kind.name}"
    nothing = Comparison((), (), {})
    return Advice(kind.recipe, "", reason, nothing, {}, False, 0, kind, (problem,))


def choose_recipe(
    table: Comparison,
    metric: str,
    budget: QueryCostLimit,
    default: str = "",
    *,
    sure: bool = True,
    biased: bool = False,
) -> tuple[str, str]:
    """Pick the default within the budget unless another recipe is significantly better.

    If the default is not tried, dearer than the budget or significantly worse, pick the cheapest
    within the budget that is little, and not significantly, worse than the best. Where questions
    are too few or too poor to be `sure`, the default stays even if it seems worse. It gives way to
    one that is better and much cheaper, unless the questions are `biased` towards cheap ones.
    """
    cells = {name: row[metric] for name, row in table.cells.items() if metric in row}
    costs = {report.recipe: report.costs() for report in table.reports}
    fit = [name for name in cells if _fits_budget(costs[name], budget)]
    if not fit:
        nearest = min(cells, key=lambda name: costs[name]["seconds_p95"])
        return nearest, (
            f"no recipe fits the budget; {nearest} is closest, with "
            f"{_format_cost(costs[nearest])} and {metric} {cells[nearest].mean:.3f}"
        )
    best = max(fit, key=lambda name: (cells[name].mean, name == default, -_spent(costs[name])[-1]))
    within_budget = compare([r for r in table.reports if r.recipe in fit], against=best)
    equal = [name for name in fit if within_budget.cells[name][metric].p >= P_SIGNIFICANT]
    # Few questions leave large differences without significance.
    near = [name for name in equal if cells[best].mean - cells[name].mean <= _LITTLE_WORSE]
    cheapest = min(near, key=lambda name: _spent(costs[name]))
    chosen = default if default in (equal if sure else fit) else cheapest
    better = default in fit and cells[best].mean > cells[default].mean
    if better and not biased and _is_much_cheaper(costs[best], costs[default]):
        chosen = best
    cell = cells[chosen]
    cost = _format_cost(costs[chosen])
    reason = f"{metric} {cell.mean:.3f} ({cell.low:.3f} to {cell.high:.3f}) at {cost}"
    if chosen == best:
        reason = f"best within the budget: {reason}"
    else:
        reason += "; " + _compare_with(best, chosen, cells, costs, significant=chosen not in equal)
    if cheapest not in (chosen, best) and _is_much_cheaper(costs[cheapest], costs[chosen]):
        reason += "; cheaper: " + _compare_with(cheapest, chosen, cells, costs, significant=False)
    return chosen, reason


def _spent(costs: dict[str, float]) -> tuple[float, float, float]:
    return costs["money_per_1k_queries"], costs["tokens_per_query"], costs["seconds_p50"]


def _is_much_cheaper(costs: dict[str, float], others: dict[str, float]) -> bool:
    """Whether a recipe takes less money or tokens than another, or much less time."""
    *prices, seconds = _spent(costs)
    *other_prices, other_seconds = _spent(others)
    return prices < other_prices or other_seconds > _MUCH_LONGER * seconds + _SHORT_SECONDS


def _compare_with(
    other: str,
    chosen: str,
    cells: dict[str, Cell],
    costs: dict[str, dict[str, float]],
    *,
    significant: bool,
) -> str:
    """Say how another recipe compares with the chosen one."""
    gap = cells[other].mean - cells[chosen].mean
    cost = f"costs {_format_cost(costs[other])}"
    if not gap:
        return f"{other} scores the same and {cost}"
    apart = "" if significant else ", which is not significant on these questions,"
    return f"{other} is {abs(gap):.3f} {'better' if gap > 0 else 'worse'}{apart} and {cost}"


def _fits_budget(costs: dict[str, float], budget: QueryCostLimit) -> bool:
    slow = budget.ms is not None and costs["seconds_p95"] * 1000 > budget.ms
    dear = budget.money is not None and costs["money_per_1k_queries"] > budget.money
    return not (slow or dear)


def _format_cost(costs: dict[str, float]) -> str:
    text = f"{costs['seconds_p50'] * 1000:.0f} ms (p95 {costs['seconds_p95'] * 1000:.0f})"
    if costs["tokens_per_query"]:
        text += f", {costs['tokens_per_query']:.0f} tokens"
    if costs["money_per_1k_queries"]:
        text += f", {costs['money_per_1k_queries']:.4g} per 1,000 questions"
    return text


def _select_metric(table: Comparison, answers: bool, generated: bool) -> str:
    """Return the metric to choose by; `answers`: the recipes find answers, not only passages."""
    preferred = ["f1", "choice", "hits@1"] if answers else []
    # Generated questions share words with their passages: every recipe reaches recall@5 of 1.
    preferred += ["recall@2", "recall@5", "hits@1"] if generated else ["recall@5", "hits@1"]
    known = [name for name in (*preferred, *table.metrics) if name in table.metrics]
    # What no recipe has any of tells nothing.
    return next((name for name in known if _find_best(table, name)), known[0])


def _find_best(table: Comparison, metric: str) -> float:
    """Return the highest mean of a metric that any recipe reaches."""
    return max((row[metric].mean for row in table.cells.values() if metric in row), default=0.0)
