"""The commands eval and compare."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from clew.cli.bars import progress
from clew.cli.door import AsJson, Debug, Door, Kb, enter, err, fail, out, plain, run
from clew.cli.tables import whole_table
from clew.errors import ConfigError
from clew.evaluate.compare import Comparison, check_against, compare
from clew.evaluate.datasets import Dataset, load_dataset
from clew.evaluate.grid import Grid, plain_grid, read_grid
from clew.evaluate.measure import Measured, Wanted, measure
from clew.evaluate.metrics import check
from clew.evaluate.report.save import save
from clew.evaluate.report.text import cost_text, failed_text, legend, table_rows
from clew.evaluate.summary import COSTS, COUNTS
from clew.extract.openie import Recorded, recorded

Folder = Annotated[
    Path, typer.Argument(help="A folder with questions.jsonl (and corpus.jsonl), or one file.")
]
Recipes = Annotated[str, typer.Option(help="Recipes, separated by commas.")]
Metrics = Annotated[
    str, typer.Option(help="Metrics, separated by commas; by default what the data has gold for.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")]
Sample = Annotated[int | None, typer.Option(min=1, help="N questions, drawn by --seed.")]
Seed = Annotated[int, typer.Option(help="Decides every draw.")]
Openie = Annotated[Path | None, typer.Option(help="Build from these recorded extractions.")]
Answers = Annotated[bool, typer.Option("--answers", help="Answer, do not only retrieve.")]
How = Annotated[
    Literal["open", "reject"], typer.Option(help="reject: refuse when evidence is missing.")
]
Depth = Annotated[int, typer.Option("-k", min=0, help="Passages per question; 0: as needed.")]
AtOnce = Annotated[int, typer.Option(min=0, help="Questions at the same time; 0: chosen.")]
Link = Annotated[
    bool, typer.Option("--link", help="Find the entities in the question; ignore given ones.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin anew, not where a run was cut short.")]


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command(name="eval")(evaluate)
    app.command(name="compare")(compare_)


def evaluate(
    folder: Folder,
    recipe: Recipes = "clew",
    metrics: Metrics = "",
    limit: Limit = None,
    sample: Sample = None,
    seed: Seed = 0,
    openie: Openie = None,
    answers: Answers = False,
    mode: How = "open",
    k: Depth = 0,
    at_once: AtOnce = 0,
    link: Link = False,
    fresh: Fresh = False,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Measure recipes on a dataset folder; builds the knowledge base if there is none."""

    async def work() -> None:
        ctx = enter(kb, as_json)
        grid = plain_grid(listed(recipe), [mode], answers=answers)
        wanted = Wanted(
            grid, _metrics(metrics), limit, sample, seed, answers, k, at_once, link, fresh
        )
        done = await _measured(ctx, load_dataset(folder), wanted, openie)
        payload = done.told()
        ctx.show(payload, lambda: _tell(done))
        _fail_with(done)

    run(work, debug)


def compare_(
    folder: Folder,
    recipe: Recipes = "",
    metrics: Metrics = "",
    limit: Limit = None,
    sample: Sample = None,
    seed: Seed = 0,
    openie: Openie = None,
    answers: Answers = False,
    mode: Annotated[str, typer.Option(help="open, reject, or both: open,reject.")] = "open",
    k: Depth = 0,
    at_once: AtOnce = 0,
    link: Link = False,
    fresh: Fresh = False,
    grid: Annotated[
        Path | None, typer.Option(help="A TOML or YAML file of recipes and numbers to vary.")
    ] = None,
    against: Annotated[
        str, typer.Option(help="Mark differences from this recipe; else from the best.")
    ] = "",
    records: Annotated[
        list[Path] | None,
        typer.Option(
            help="Records of other runs or packages to put beside; without --recipe alone."
        ),
    ] = None,
    into: Annotated[
        Path | None, typer.Option("--out", help="A folder for JSON, CSV, Markdown and HTML.")
    ] = None,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare recipes on the same questions: one table, intervals, what differs for sure."""
    given = _Given(folder, recipe, grid, mode, against, records or (), openie, into)

    async def work() -> None:
        rows = given.rows(answers)
        wanted = Wanted(
            rows, _metrics(metrics), limit, sample, seed, answers, k, at_once, link, fresh
        )
        await _compare(enter(kb, as_json), given, wanted)

    run(work, debug)


async def _compare(ctx: Door, given: "_Given", wanted: Wanted) -> None:
    if not given.records:  # else the records may contain the recipe
        check_against(given.against, [case.label for case in wanted.grid.cases])
    dataset = load_dataset(given.folder)
    done = await _measured(ctx, dataset, wanted, given.openie, given.records)
    table = compare(done.reports, against=given.against, seed=wanted.seed)
    payload = done.told() | {"significance": table.significance(), "by_type": table.by_type()}
    if given.into is not None:
        made_by = f"Made by: {_command(given, wanted, given.into)}"
        save(table, given.into, plain(payload), [*done.about(), made_by])
    ctx.show(payload, lambda: _tell_comparison(table, done, given.into))
    _fail_with(done)


def _fail_with(done: Measured) -> None:
    """Exit with an error if every question of a recipe failed, so that scripts notice."""
    if idle := [report.recipe for report in done.reports if not report.ran]:
        fail(f"{', '.join(idle)}: no question could be answered, so the figures tell nothing of it")


async def _measured(
    ctx: Door,
    dataset: Dataset,
    wanted: Wanted,
    openie: Path | None,
    records: Sequence[Path] = (),
) -> Measured:
    extractor = Recorded(recorded(openie)) if openie else None
    async with ctx.kb(create=dataset.corpus is not None) as base:
        with progress(ctx.json) as tell:
            return await measure(base, dataset, wanted, extractor, records, tell)


def _grid(recipe: str, mode: str, grid: Path | None, answers: bool) -> Grid:
    if grid is not None:
        if recipe:
            raise ConfigError("the grid names the recipes; leave --recipe out")
        return read_grid(grid, answers=answers)
    modes: list[Literal["open", "reject"]] = []
    for one in listed(mode):
        if one not in ("open", "reject"):
            raise ConfigError(f"no mode {one!r}; have open, reject")
        modes.append("open" if one == "open" else "reject")
    return plain_grid(listed(recipe or "clew,naive,bm25,hybrid"), modes, answers=answers)


def listed(names: str) -> list[str]:
    """Split a comma-separated list of names; raise if it is empty."""
    found = [name.strip() for name in names.split(",") if name.strip()]
    if not found:
        raise ConfigError("nothing is named; give at least one recipe")
    return list(dict.fromkeys(found))


def _metrics(names: str) -> list[str]:
    found = [name.strip() for name in names.split(",") if name.strip()]
    for name in found:
        check(name)
    return found


@dataclass(frozen=True)
class _Given:
    """Arguments of `clew compare` besides what is measured."""

    folder: Path
    recipe: str
    grid: Path | None
    mode: str
    against: str
    records: Sequence[Path]
    openie: Path | None
    into: Path | None

    def rows(self, answers: bool) -> Grid:
        """Return the grid to run; empty if records alone make the table."""
        alone = self.records and not self.recipe and not self.grid
        return Grid((), {}) if alone else _grid(self.recipe, self.mode, self.grid, answers)


def _command(given: _Given, wanted: Wanted, into: Path) -> str:
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


def _tell(done: Measured) -> None:
    tell_problems(done.problems)
    rows = {report.recipe: report.summary() for report in done.reports}
    own = {*COSTS, *COUNTS}
    metrics = list(
        dict.fromkeys(k for row in rows.values() for k in row if k not in own and "." not in k)
    )
    lines = []
    for name, row in rows.items():
        values = [_value(key, row) for key in metrics]
        times = [cost_text(key, row) for key in ("seconds_p50", "seconds_p95")]
        lines.append([name, *values, str(row["n"]), failed_text(row), *times])
    out.print(done.asked(), markup=False)
    out.print(whole_table(["recipe", *metrics, "n", "failed", "p50 ms", "p95 ms"], lines))
    _tell_failures(done.failures())


def _value(metric: str, row: Mapping[str, Any]) -> str:
    """Format a mean, with its own count if that differs from the row's."""
    if metric not in row:
        return ""
    own = row.get(f"{metric}.n")
    return f"{row[metric]:.3f}" + ("" if own is None else f" (n={own})")


def _tell_comparison(table: Comparison, done: Measured, into: Path | None) -> None:
    tell_problems(done.problems)
    for line in done.about():
        out.print(line, markup=False)
    out.print(whole_table(*table_rows(table)))
    out.print(f"[dim]{escape(legend(table))}[/dim]")
    _tell_failures(done.failures())
    if into is not None:
        out.print(f"written: {into}/report.html, table.md, table.csv, table.json", markup=False)


def tell_problems(problems: Sequence[str]) -> None:
    """Print the first few problems and how many more there are."""
    for problem in problems[:5]:
        err.print(f"  {problem}", style="yellow", markup=False)
    if len(problems) > 5:
        err.print(f"  … and {len(problems) - 5} more; --json lists them all", style="yellow")


def _tell_failures(failures: dict[str, dict[str, int]]) -> None:
    for recipe, reasons in failures.items():
        for reason, times in list(reasons.items())[:3]:
            err.print(f"  {recipe}: {times} × {reason}", style="yellow", markup=False)
