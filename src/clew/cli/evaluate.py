"""The command eval, and the options it shares with compare."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from clew.cli.ask import SetOption
from clew.cli.common import CommandContext, command, err, fail, format_table, out
from clew.cli.progress import show_progress
from clew.errors import ConfigError
from clew.evaluate.datasets import Dataset, load_dataset
from clew.evaluate.grid import GridAxes, build_grid
from clew.evaluate.measure import MeasureOptions, MeasureResult, measure
from clew.evaluate.metrics.registry import check_metric
from clew.evaluate.report.text import format_cost, format_failures
from clew.evaluate.summary import COST_FIELDS, COUNT_FIELDS
from clew.extract.openie import Recorded, load_recording

DatasetArgument = Annotated[
    Path, typer.Argument(help="A folder with questions.jsonl (and corpus.jsonl), or one file.")
]
RecipesOption = Annotated[str, typer.Option(help="Recipes, separated by commas.")]
MetricsOption = Annotated[
    str, typer.Option(help="Metrics, separated by commas; by default what the data has gold for.")
]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")]
SampleOption = Annotated[int | None, typer.Option(min=1, help="A random sample of N questions.")]
SeedOption = Annotated[int, typer.Option(help="Random seed of the sample and of every other draw.")]
OpenieOption = Annotated[Path | None, typer.Option(help="Build from these recorded extractions.")]
AnswersOption = Annotated[bool, typer.Option("--answers", help="Generate answers, too.")]
ModeOption = Annotated[
    Literal["open", "reject"], typer.Option(help="reject: refuse when evidence is missing.")
]
TopKOption = Annotated[int, typer.Option("-k", min=0, help="Passages per question; 0: automatic.")]
ConcurrencyOption = Annotated[
    int, typer.Option(min=0, help="Questions run concurrently; 0: automatic.")
]
LinkOption = Annotated[
    bool, typer.Option("--link", help="Link entities from the question; ignore given ones.")
]
GrowOption = Annotated[
    bool, typer.Option("--grow", help="Grow the trees that the recipes read and that are missing.")
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Start over; do not resume.")]


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command(name="eval")(evaluate)


@command
async def evaluate(
    ctx: CommandContext,
    folder: DatasetArgument,
    recipe: RecipesOption = "clew",
    metrics: MetricsOption = "",
    limit: LimitOption = None,
    sample: SampleOption = None,
    seed: SeedOption = 0,
    openie: OpenieOption = None,
    answers: AnswersOption = False,
    mode: ModeOption = "open",
    k: TopKOption = 0,
    at_once: ConcurrencyOption = 0,
    link: LinkOption = False,
    fresh: FreshOption = False,
    grow: GrowOption = False,
    changes: SetOption = None,
) -> None:
    """Evaluate recipes on a dataset folder; builds the knowledge base if it does not exist."""
    ctx, names = ctx.with_parameters(split_names(recipe), changes or ())
    grid = build_grid(names, GridAxes([mode]), answers=answers, recipes=ctx.recipes)
    wanted = MeasureOptions(
        *(grid, parse_metrics(metrics), limit, sample, seed, answers, k, at_once, link, fresh),
        grow=grow,
    )
    done = await run_measure(ctx, load_dataset(folder), wanted, openie)
    payload = done.to_dict()
    ctx.show(payload, lambda: _print_measured(done))
    fail_if_none_ran(done)


def fail_if_none_ran(done: MeasureResult) -> None:
    """Exit with an error if every question of a recipe failed, so that scripts notice."""
    if idle := [report.recipe for report in done.reports if not report.any_succeeded]:
        fail(f"{', '.join(idle)}: every question failed, so there are no results")


async def run_measure(
    ctx: CommandContext,
    dataset: Dataset,
    wanted: MeasureOptions,
    openie: Path | None,
    records: Sequence[Path] = (),
) -> MeasureResult:
    """Open or create the knowledge base and measure on one data set, with progress bars."""
    extractor = Recorded(load_recording(openie)) if openie else None
    async with ctx.open_kb(create=dataset.corpus is not None) as base:
        with show_progress(ctx.json) as report:
            return await measure(base, dataset, wanted, extractor, records, report)


def split_names(names: str) -> list[str]:
    """Split a comma-separated list of names; raise if it is empty."""
    found = [name.strip() for name in names.split(",") if name.strip()]
    if not found:
        raise ConfigError("give at least one recipe")
    return list(dict.fromkeys(found))


def parse_metrics(names: str) -> list[str]:
    """Split a comma-separated list of metrics and check each name; it may be empty."""
    found = [name.strip() for name in names.split(",") if name.strip()]
    for name in found:
        check_metric(name)
    return found


# -- text output


def _print_measured(done: MeasureResult) -> None:
    print_problems(done.problems)
    rows = {report.recipe: report.summary() for report in done.reports}
    own = {*COST_FIELDS, *COUNT_FIELDS}
    metrics = list(
        dict.fromkeys(k for row in rows.values() for k in row if k not in own and "." not in k)
    )
    lines = []
    for name, row in rows.items():
        values = [_format_value(key, row) for key in metrics]
        times = [format_cost(key, row) for key in ("seconds_p50", "seconds_p95")]
        lines.append([name, *values, str(row["n"]), format_failures(row), *times])
    out.print(done.describe_questions(), markup=False)
    out.print(format_table(["recipe", *metrics, "n", "failed", "p50 ms", "p95 ms"], lines))
    print_failures(done.count_failures())


def _format_value(metric: str, row: Mapping[str, Any]) -> str:
    """Format a mean, with its own count if that differs from the row's."""
    if metric not in row:
        return ""
    own = row.get(f"{metric}.n")
    return f"{row[metric]:.3f}" + ("" if own is None else f" (n={own})")


def print_problems(problems: Sequence[str], *, listed: bool = True) -> None:
    """Print the first few problems, how many more there are, and that JSON has them if it does."""
    for problem in problems[:5]:
        err.print(f"  {problem}", style="yellow", markup=False)
    if len(problems) > 5:
        hint = "; --json lists them all" if listed else ""
        err.print(f"  … and {len(problems) - 5} more{hint}", style="yellow")


def print_failures(failures: dict[str, dict[str, int]]) -> None:
    """Print why questions of each recipe failed or have no value, the most common first."""
    for recipe, reasons in failures.items():
        for reason, times in list(reasons.items())[:3]:
            err.print(f"  {recipe}: {times} × {reason}", style="yellow", markup=False)
