"""The commands eval and compare."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from clew.cli.common import CommandContext, command, err, fail, format_table, out
from clew.cli.progress import show_progress
from clew.errors import ConfigError
from clew.evaluate.compare import Comparison, check_reference, compare
from clew.evaluate.datasets import Dataset, load_dataset
from clew.evaluate.grid import Grid, build_grid, read_grid
from clew.evaluate.measure import MeasureOptions, MeasureResult, measure
from clew.evaluate.metrics.registry import check_metric
from clew.evaluate.report.page import save_report
from clew.evaluate.report.text import build_table, format_cost, format_failures, format_legend
from clew.evaluate.summary import COST_FIELDS, COUNT_FIELDS
from clew.extract.openie import Recorded, load_recording
from clew.json_output import to_json_value
from clew.recipes.registry import RecipeSet

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
FreshOption = Annotated[bool, typer.Option("--fresh", help="Start over; do not resume.")]


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command(name="eval")(evaluate)
    app.command(name="compare")(compare_)


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
) -> None:
    """Evaluate recipes on a dataset folder; builds the knowledge base if it does not exist."""
    grid = build_grid(split_names(recipe), [mode], answers=answers, recipes=ctx.recipes)
    wanted = MeasureOptions(
        grid, _parse_metrics(metrics), limit, sample, seed, answers, k, at_once, link, fresh
    )
    done = await _run_measure(ctx, load_dataset(folder), wanted, openie)
    payload = done.to_dict()
    ctx.show(payload, lambda: _print_measured(done))
    _fail_if_none_ran(done)


@command
async def compare_(
    ctx: CommandContext,
    folder: DatasetArgument,
    recipe: RecipesOption = "",
    metrics: MetricsOption = "",
    limit: LimitOption = None,
    sample: SampleOption = None,
    seed: SeedOption = 0,
    openie: OpenieOption = None,
    answers: AnswersOption = False,
    mode: Annotated[str, typer.Option(help="open, reject, or both: open,reject.")] = "open",
    k: TopKOption = 0,
    at_once: ConcurrencyOption = 0,
    link: LinkOption = False,
    fresh: FreshOption = False,
    grid: Annotated[
        Path | None, typer.Option(help="A TOML or YAML file of recipes and parameters to vary.")
    ] = None,
    against: Annotated[
        str, typer.Option(help="Baseline recipe for significance; default: the best.")
    ] = "",
    records: Annotated[
        list[Path] | None,
        typer.Option(help="Recorded runs to include; without --recipe only these."),
    ] = None,
    into: Annotated[
        Path | None, typer.Option("--out", help="A folder for JSON, CSV, Markdown and HTML.")
    ] = None,
) -> None:
    """Compare recipes on the same questions, with confidence intervals and significance."""
    given = _CompareArgs(folder, recipe, grid, mode, against, records or (), openie, into)
    wanted = MeasureOptions(
        *(
            given.make_grid(answers, ctx.recipes),
            _parse_metrics(metrics),
            limit,
            sample,
            seed,
            answers,
        ),
        *(k, at_once, link, fresh),
    )
    if not given.records:  # else the records may contain the recipe
        check_reference(given.against, [case.label for case in wanted.grid.cases])
    dataset = load_dataset(given.folder)
    done = await _run_measure(ctx, dataset, wanted, given.openie, given.records)
    table = compare(done.reports, against=given.against, seed=wanted.seed)
    payload = done.to_dict() | {"significance": table.significance(), "by_type": table.by_type()}
    if given.into is not None:
        made_by = f"Made by: {_repeat_command(given, wanted, given.into)}"
        save_report(table, given.into, to_json_value(payload), [*done.describe_run(), made_by])
    ctx.show(payload, lambda: _print_comparison(table, done, given.into))
    _fail_if_none_ran(done)


def _fail_if_none_ran(done: MeasureResult) -> None:
    """Exit with an error if every question of a recipe failed, so that scripts notice."""
    if idle := [report.recipe for report in done.reports if not report.any_succeeded]:
        fail(f"{', '.join(idle)}: every question failed, so there are no results")


async def _run_measure(
    ctx: CommandContext,
    dataset: Dataset,
    wanted: MeasureOptions,
    openie: Path | None,
    records: Sequence[Path] = (),
) -> MeasureResult:
    extractor = Recorded(load_recording(openie)) if openie else None
    async with ctx.open_kb(create=dataset.corpus is not None) as base:
        with show_progress(ctx.json) as report:
            return await measure(base, dataset, wanted, extractor, records, report)


def _make_grid(
    recipe: str, mode: str, grid: Path | None, answers: bool, recipes: RecipeSet
) -> Grid:
    if grid is not None:
        if recipe:
            raise ConfigError("--grid names the recipes; leave out --recipe")
        return read_grid(grid, answers=answers, recipes=recipes)
    modes: list[Literal["open", "reject"]] = []
    for one in split_names(mode):
        if one not in ("open", "reject"):
            raise ConfigError(f"unknown mode {one!r}; use open or reject")
        modes.append("open" if one == "open" else "reject")
    names = split_names(recipe or "clew,naive,bm25,hybrid")
    return build_grid(names, modes, answers=answers, recipes=recipes)


def split_names(names: str) -> list[str]:
    """Split a comma-separated list of names; raise if it is empty."""
    found = [name.strip() for name in names.split(",") if name.strip()]
    if not found:
        raise ConfigError("give at least one recipe")
    return list(dict.fromkeys(found))


def _parse_metrics(names: str) -> list[str]:
    found = [name.strip() for name in names.split(",") if name.strip()]
    for name in found:
        check_metric(name)
    return found


@dataclass(frozen=True)
class _CompareArgs:
    """Arguments of `clew compare` besides what is measured."""

    folder: Path
    recipe: str
    grid: Path | None
    mode: str
    against: str
    records: Sequence[Path]
    openie: Path | None
    into: Path | None

    def make_grid(self, answers: bool, recipes: RecipeSet) -> Grid:
        """Return the grid to run; empty if records alone make the table."""
        if self.records and not self.recipe and not self.grid:
            return Grid((), {})
        return _make_grid(self.recipe, self.mode, self.grid, answers, recipes)


def _repeat_command(given: _CompareArgs, wanted: MeasureOptions, into: Path) -> str:
    """Return the command that reproduces this page; paths are shortened to their names."""
    words = ["clew compare", given.folder.name]
    if given.grid:
        words.append(f"--grid {given.grid.name}")
    elif given.recipe:
        words.append(f"--recipe {given.recipe}")
    words += [f"--openie {'/'.join(given.openie.parts[-2:])}"] if given.openie else []
    words += [f"--metrics {','.join(wanted.metrics)}"] if wanted.metrics else []
    words += [f"--limit {wanted.limit}"] if wanted.limit else []
    words += [f"--sample {wanted.sample} --seed {wanted.seed}"] if wanted.sample else []
    words += ["--answers"] if wanted.answers else []
    words += [f"--mode {given.mode}"] if given.mode != "open" else []
    words += [f"-k {wanted.k}"] if wanted.k else []
    words += [f"--against {given.against}"] if given.against else []
    words += [f"--records {'/'.join(path.parts[-2:])}" for path in given.records]
    words += ["--link"] if wanted.link else []
    return " ".join([*words, "--out", into.name])


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
    _print_failures(done.count_failures())


def _format_value(metric: str, row: Mapping[str, Any]) -> str:
    """Format a mean, with its own count if that differs from the row's."""
    if metric not in row:
        return ""
    own = row.get(f"{metric}.n")
    return f"{row[metric]:.3f}" + ("" if own is None else f" (n={own})")


def _print_comparison(table: Comparison, done: MeasureResult, into: Path | None) -> None:
    print_problems(done.problems)
    for line in done.describe_run():
        out.print(line, markup=False)
    out.print(format_table(*build_table(table)))
    out.print(f"[dim]{escape(format_legend(table))}[/dim]")
    _print_failures(done.count_failures())
    if into is not None:
        out.print(f"written: {into}/report.html, table.md, table.csv, table.json", markup=False)


def print_problems(problems: Sequence[str]) -> None:
    """Print the first few problems and how many more there are."""
    for problem in problems[:5]:
        err.print(f"  {problem}", style="yellow", markup=False)
    if len(problems) > 5:
        err.print(f"  … and {len(problems) - 5} more; --json lists them all", style="yellow")


def _print_failures(failures: dict[str, dict[str, int]]) -> None:
    for recipe, reasons in failures.items():
        for reason, times in list(reasons.items())[:3]:
            err.print(f"  {recipe}: {times} × {reason}", style="yellow", markup=False)
