"""Measure recipes on a data set: build the knowledge base, run them, collect the reports."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from clew.builder import ignore_progress
from clew.config import RoleSettings
from clew.engine import ANSWERING_ROLES, KnowledgeBase
from clew.errors import ConfigError
from clew.evaluate.build import build_if_empty, check_corpus, load_tree_costs
from clew.evaluate.datasets import Dataset, Question
from clew.evaluate.external_runs import read_external_reports
from clew.evaluate.grid import Grid, register_variants
from clew.evaluate.judges import Judge
from clew.evaluate.metrics.registry import (
    JUDGED_METRICS,
    REFUSAL_METRICS,
    STATEMENT_RECALL,
    metric_depth,
    needs_answers,
)
from clew.evaluate.runner import RecipeRunner, has_judge
from clew.evaluate.summary import RecipeReport, describe_dropped_metrics, describe_shallow_records
from clew.evaluate.tables import WinRates, judge_pairs
from clew.extract.openie import Recorded
from clew.ingest.embedding import ProgressCallback
from clew.llm.roles import with_named_model
from clew.llm.trained_model import resolve_model_folder
from clew.recipes.chunking import describe_other_chunking, load_chunking
from clew.types import Chunking

_MAX_REASONS = 20
_RECALL_DEPTHS = (2, 5, 10, 20)


@dataclass(frozen=True)
class MeasureOptions:
    """Which recipes, metrics and questions to measure, and how."""

    grid: Grid
    metrics: Sequence[str] = ()
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    answers: bool = False
    k: int = 0
    at_once: int = 0
    link: bool = False
    fresh: bool = False
    steps: int = 0
    """Recall after each of an agent's first retrievals, up to this many."""
    pairwise: str = ""
    """The row whose answers the others are judged against, two by two."""
    grow: bool = False
    """Grow the trees that the recipes read and the knowledge base lacks."""


@dataclass(frozen=True)
class MeasureResult:
    """One report for each row of the grid, over the same questions."""

    dataset: Dataset
    questions: tuple[Question, ...]
    reports: tuple[RecipeReport, ...]
    build: dict[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    pairwise: WinRates | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of `clew eval --json`."""
        return {
            "dataset": self.dataset.name,
            "questions": len(self.questions),
            "unread": self.dataset.unread,
            "problems": list(self.problems),
            "build": self.build,
            "recipes": {report.recipe: report.summary() for report in self.reports},
            "failures": self.count_failures(),
            "about": {report.recipe: report.about for report in self.reports},
            **({"pairwise": asdict(self.pairwise)} if self.pairwise else {}),
        }

    def count_failures(self) -> dict[str, dict[str, int]]:
        """Count failed questions and unscored values: recipe → reason → number."""
        counts: dict[str, dict[str, int]] = {}
        for report in self.reports:
            reasons = Counter(record.error for record in report.records if record.error)
            for record in report.records:
                reasons.update(f"{metric}: {reason}" for metric, reason in record.unscored.items())
            if reasons:
                counts[report.recipe] = dict(reasons.most_common(_MAX_REASONS))
        return counts

    def describe_questions(self) -> str:
        """Describe the data set: its name, number of questions and of unreadable rows."""
        unread = self.dataset.unread
        unreadable = f", {unread} rows could not be read" if unread else ""
        return f"{self.dataset.name}: {len(self.questions)} questions{unreadable}"

    def describe_run(self) -> list[str]:
        """Describe data set, models, concurrency and build cost, one line each."""
        lines = [self.describe_questions()]
        own_runs = [report.about for report in self.reports if report.about.get("k")]
        for name in ("embedder", "model", "judge"):
            values = sorted({str(about[name]) for about in own_runs if about.get(name)})
            if values:
                lines.append(f"{name}: {', '.join(values)}")
        if own_runs:
            lines.append(f"concurrent questions: {own_runs[0]['at_once']}")
        lines.append(_format_build_cost(self.build))
        return [line for line in lines if line]


async def measure(
    base: KnowledgeBase,
    dataset: Dataset,
    wanted: MeasureOptions,
    extractor: Recorded | None = None,
    records: Sequence[Path] = (),
    progress: ProgressCallback = ignore_progress,
) -> MeasureResult:
    """Build the knowledge base if empty, run every row of the grid, add external records."""
    presets = _find_presets(base, wanted.grid)
    doubts = await check_corpus(base, dataset)
    build = await build_if_empty(base, dataset, extractor, progress, presets)
    build |= await load_tree_costs(base, wanted.grid, progress, grow=wanted.grow)
    questions = select_questions(dataset.questions, wanted)
    metrics = select_metrics(questions, wanted)
    if wanted.grid.cases:
        _check_options(base, metrics, wanted)
    folder = base.settings.folder / "runs" / dataset.name
    reports = []
    run = RecipeRunner(
        *(base, metrics, wanted.answers, "open", wanted.k, wanted.at_once, wanted.link),
        folder=folder,
        fresh=wanted.fresh,
        progress=progress,
    )
    bases = {name: use_model(base, name) for name in {case.model for case in wanted.grid.cases}}
    with register_variants(wanted.grid.variants):
        for case in wanted.grid.cases:
            one = replace(
                run,
                kb=bases[case.model],
                mode=case.mode,
                k=case.k or wanted.k,
                evidence=case.evidence,
            )
            reports.append(await one.run_recipe(case.recipe, questions, case.label))
    problems = [*doubts, *([wanted.grid.note] if wanted.grid.note else [])]
    problems += describe_other_chunking(presets, await load_chunking(base.store))
    problems += describe_dropped_metrics(reports)
    size = (await base.store.counts()).documents
    for path in records:
        scorer = await run.make_scorer(questions)
        external, issues = await read_external_reports(path, questions, scorer, wanted.answers)
        reports += external
        problems += issues + [
            line for one in external for line in describe_shallow_records(one, metrics, size)
        ]
    problems += _list_missing_metrics(metrics, reports, wanted.answers, has_judge(base))
    problems += dataset.problems  # last, since only the first problems are printed
    rates = await _judge_pairs(base, reports, wanted.pairwise, progress)
    return MeasureResult(dataset, questions, tuple(reports), build, tuple(problems), rates)


def use_model(base: KnowledgeBase, model: str) -> KnowledgeBase:
    """Return the knowledge base with another model to plan and answer; the judge stays the same."""
    if not model:
        return base
    models = base.settings.models
    named = with_named_model(models, model)
    roles: dict[str, RoleSettings] = {role: RoleSettings() for role in ANSWERING_ROLES}
    if not resolve_model_folder(model):
        named = named.model_copy(update=roles)
    if not models.judge.model and models.model:
        named = named.model_copy(update={"judge": RoleSettings(model=models.model)})
    settings = base.settings.model_copy(update={"models": named})
    return KnowledgeBase(base.store, settings, base.embed)


async def _judge_pairs(
    base: KnowledgeBase, reports: Sequence[RecipeReport], baseline: str, progress: ProgressCallback
) -> WinRates | None:
    if not baseline:
        return None
    return await judge_pairs(reports, baseline, Judge(base.models.chat("judge")), progress)


def _find_presets(base: KnowledgeBase, grid: Grid) -> dict[str, Chunking | None]:
    """Return how each recipe wants documents to be split; a variant stands under its label."""
    with register_variants(grid.variants):
        presets = base.chunk_presets([case.recipe for case in grid.cases])
    # Rows of one recipe differ in mode, model or evidence, which chunks do not depend on.
    labels = {case.recipe: case.label for case in grid.cases if case.recipe in grid.variants}
    return {labels.get(name, name): chunking for name, chunking in presets.items()}


def _list_missing_metrics(
    metrics: Sequence[str], reports: Sequence[RecipeReport], answers: bool, judge: bool
) -> list[str]:
    """List the requested metrics that have no value in any report, with the reason."""
    answers = answers or any(record.answer for report in reports for record in report.records)
    present = {name for report in reports for name in report.metric_names()}
    present |= {name for r in reports for record in r.records for name in record.unscored}
    present |= {name for r in reports for name in r.about.get("left_out", ())}
    return [
        f"{name}: {_explain_missing_metric(name, answers, judge)}"
        for name in metrics
        if name not in present
    ]


def _explain_missing_metric(name: str, answers: bool, judge: bool) -> str:
    if needs_answers(name) and not answers:
        return "needs answers; add --answers"
    if name in JUDGED_METRICS and not judge:
        return "needs a judge; set CLEW_MODEL, or `judge` under [models] in clew.toml"
    if name == "refusal-precision":
        return "nothing was refused"
    return "no question has gold for it"


def select_metrics(questions: Sequence[Question], wanted: MeasureOptions) -> list[str]:
    """Return the requested or default metrics, with refusal metrics where they apply."""
    names = list(wanted.metrics) or default_metrics(questions, wanted.answers, wanted.k)
    names += [f"step-recall@{step}" for step in range(1, wanted.steps + 1)]
    if wanted.answers and any(not question.answerable for question in questions):
        names += REFUSAL_METRICS
    return list(dict.fromkeys(names))


def _check_options(base: KnowledgeBase, metrics: Sequence[str], wanted: MeasureOptions) -> None:
    """Raise ConfigError before the run if the requested metrics cannot be computed."""
    if not wanted.answers and all(needs_answers(name) for name in metrics):
        raise ConfigError(f"{metrics[0]} needs answers; add --answers")
    judged = [name for name in metrics if name in JUDGED_METRICS]
    judged += ["--pairwise"] if wanted.pairwise else []
    if judged and wanted.answers and not has_judge(base):
        raise ConfigError(
            f"{', '.join(judged)} needs a judge, but no model is set; set CLEW_MODEL, or `judge` "
            "under [models] in clew.toml, or leave it out"
        )
    if wanted.k and not wanted.answers and all(metric_depth(name) > wanted.k for name in metrics):
        raise ConfigError(
            f"{metrics[0]} needs {metric_depth(metrics[0])} passages, but -k is {wanted.k}; "
            "raise -k or leave it out"
        )


def select_questions(questions: Sequence[Question], wanted: MeasureOptions) -> tuple[Question, ...]:
    """Return the first `limit` questions, or a random sample of them, in data order."""
    selected = sample_questions(questions[: wanted.limit], wanted.sample, wanted.seed)
    if not selected:
        raise ConfigError("no question can be used; check questions.jsonl of the data set")
    return selected


def sample_questions(
    questions: Sequence[Question], sample: int | None, seed: int
) -> tuple[Question, ...]:
    """Draw `sample` questions by the seed, in data order; all if there are no more."""
    if not sample or sample >= len(questions):
        return tuple(questions)
    places = sorted(random.Random(seed).sample(range(len(questions)), sample))
    return tuple(questions[at] for at in places)


def default_metrics(questions: Sequence[Question], answers: bool, k: int = 0) -> list[str]:
    """Return the metrics that these questions have gold for, no deeper than `k` passages."""
    names: list[str] = []
    if any(question.gold for question in questions):
        depths = [depth for depth in _RECALL_DEPTHS if not k or depth <= k] or [k]
        names += [f"recall@{depth}" for depth in depths]
    graph = any(question.entities and question.answers for question in questions)
    if graph or not (names or answers):
        names += ["hits@1", "hits@10", "answer-mrr"]
    if answers:
        names += ["em", "f1", "subem", "subem-short"] if any(q.answers for q in questions) else []
        names += ["choice"] if any(q.options for q in questions) else []
        names += ["reversion"] if any(q.originals for q in questions) else []
        names += [STATEMENT_RECALL] if any(q.statements for q in questions) else []
        names += ["refusal", *REFUSAL_METRICS] if any(not q.answerable for q in questions) else []
    return names


def _format_build_cost(build: dict[str, Any]) -> str:
    if "seconds_per_1k_tokens" not in build:
        return ""
    money = float(build["money_per_1m_tokens"])
    return (
        f"graph: {build.get('entities', 0)} nodes, {build.get('facts', 0)} facts; built at "
        f"{build['seconds_per_1k_tokens']:.4f} s per 1,000 tokens"
        + (f" and a cost of {money:.4g} per 1,000,000" if money else "")
    )
