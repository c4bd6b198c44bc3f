"""The command compare: recipes, models and evidence over one or several data sets, as tables."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.markup import escape

from clew.agents.base import Mode
from clew.cli.common import CommandContext, command, format_table, out
from clew.cli.evaluate import (
    AnswersOption,
    ConcurrencyOption,
    FreshOption,
    GrowOption,
    LimitOption,
    LinkOption,
    MetricsOption,
    OpenieOption,
    RecipesOption,
    SampleOption,
    SeedOption,
    fail_if_none_ran,
    parse_metrics,
    print_failures,
    print_problems,
    run_measure,
    split_names,
)
from clew.errors import ConfigError
from clew.evaluate.compare import Comparison, compare, find_baselines, find_reference
from clew.evaluate.datasets import Dataset, load_dataset
from clew.evaluate.grid import Grid, GridAxes, build_grid, read_grid
from clew.evaluate.measure import MeasureOptions, MeasureResult
from clew.evaluate.report.page import save_report
from clew.evaluate.report.text import build_table, format_legend
from clew.evaluate.tables import (
    GOLD,
    average_datasets,
    build_costs,
    tabulate_costs,
    tabulate_means,
    tabulate_wins,
)
from clew.json_output import to_json_value
from clew.kb_address import child_location
from clew.layout import Modality
from clew.recipes.registry import RecipeSet

_MAX_STEPS = 20
DatasetsArgument = Annotated[
    list[Path],
    typer.Argument(help="Folders with questions.jsonl (and corpus.jsonl), or files of questions."),
]

ModesOption = Annotated[str, typer.Option(help="open, reject, or both: open,reject.")]
ModelsOption = Annotated[
    str, typer.Option(help="Models that plan and answer, separated by commas.")
]
EvidenceOption = Annotated[
    str, typer.Option(help="What the model is shown: text, graph, all, or several of them.")
]
DepthsOption = Annotated[
    str, typer.Option("-k", help="Passages per question, one or several; 0: automatic.")
]
StepsOption = Annotated[
    int, typer.Option(min=0, max=_MAX_STEPS, help="Recall after each of an agent's N retrievals.")
]
CostsOption = Annotated[
    bool, typer.Option("--costs", help="A table of what building and answering cost.")
]
PairwiseOption = Annotated[
    str,
    typer.Option(help="Judge answers against this row's, recipe's, or `gold`, in both orders."),
]
GridOption = Annotated[
    Path | None, typer.Option(help="A TOML or YAML file of recipes and parameters to vary.")
]
AgainstOption = Annotated[
    str, typer.Option(help="Baseline recipe for significance; default: the best.")
]
RecordsOption = Annotated[
    list[Path] | None, typer.Option(help="Recorded runs to include; without --recipe only these.")
]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="A folder for JSON, CSV, Markdown and HTML.")
]


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command(name="compare")(compare_)


@command
async def compare_(
    ctx: CommandContext,
    folders: DatasetsArgument,
    recipe: RecipesOption = "",
    metrics: MetricsOption = "",
    limit: LimitOption = None,
    sample: SampleOption = None,
    seed: SeedOption = 0,
    openie: OpenieOption = None,
    answers: AnswersOption = False,
    mode: ModesOption = "open",
    model: ModelsOption = "",
    evidence: EvidenceOption = "all",
    k: DepthsOption = "0",
    at_once: ConcurrencyOption = 0,
    link: LinkOption = False,
    fresh: FreshOption = False,
    steps: StepsOption = 0,
    costs: CostsOption = False,
    grow: GrowOption = False,
    pairwise: PairwiseOption = "",
    grid: GridOption = None,
    against: AgainstOption = "",
    records: RecordsOption = None,
    into: OutOption = None,
) -> None:
    """Compare recipes on the same questions, with confidence intervals and significance."""
    axes = GridAxes(
        _parse_choices(mode, get_args(Mode), "mode", "open or reject"),
        _parse_depths(k),
        split_names(model) if model else ("",),
        _parse_choices(evidence, get_args(Modality), "evidence", ", ".join(get_args(Modality))),
    )
    given = _CompareArgs(
        *(folders, recipe, grid, axes, against, records or (), openie, into),
        *(costs, answers or bool(steps or pairwise)),
    )
    wanted = MeasureOptions(
        *(given.make_grid(ctx.recipes), parse_metrics(metrics), limit, sample, seed, given.answers),
        *(axes.depths[0] if len(axes.depths) == 1 else 0, at_once, link, fresh, steps, pairwise),
        grow,
    )
    await _compare_datasets(ctx, given, wanted)


@dataclass(frozen=True)
class _CompareArgs:
    """Arguments of `clew compare` besides what is measured."""

    folders: Sequence[Path]
    recipe: str
    grid: Path | None
    axes: GridAxes
    against: str
    records: Sequence[Path]
    openie: Path | None
    into: Path | None
    costs: bool
    answers: bool

    def make_grid(self, recipes: RecipeSet) -> Grid:
        """Return the grid to run; empty if records alone make the table."""
        if self.records and not self.recipe and not self.grid:
            return Grid((), {})
        if self.grid is None:
            names = split_names(self.recipe or "clew,naive,bm25,hybrid")
            return build_grid(names, self.axes, answers=self.answers, recipes=recipes)
        if self.recipe:
            raise ConfigError("--grid names the recipes; leave out --recipe")
        return read_grid(self.grid, self.axes, answers=self.answers, recipes=recipes)

    def output_folder(self, dataset: Dataset) -> Path | None:
        """Return the folder of one data set's page: with several, each has its own."""
        if self.into is None or len(self.folders) < 2:
            return self.into
        return self.into / dataset.name


def _parse_depths(names: str) -> list[int]:
    for name in split_names(names):
        if not name.isdecimal():
            raise ConfigError(f"-k {name}: give whole numbers, 0 for automatic")
    return [int(name) for name in split_names(names)]


def _parse_choices(names: str, known: Sequence[str], what: str, use: str) -> list[Any]:
    """Split names; raise for one that is not known."""
    for name in split_names(names):
        if name not in known:
            raise ConfigError(f"unknown {what} {name!r}; use {use}")
    return split_names(names)


async def _compare_datasets(
    ctx: CommandContext, given: _CompareArgs, wanted: MeasureOptions
) -> None:
    """Measure on every data set and show one table each, and their means if there are several."""
    if not given.records:  # else the records may contain the recipe
        rows = [(case.label, case.recipe) for case in wanted.grid.cases]
        given = replace(given, against=find_reference(given.against, rows))
        if wanted.pairwise:
            find_baselines(wanted.pairwise, [*rows, (GOLD, GOLD)])  # raises if there is none
    datasets = [load_dataset(folder) for folder in given.folders]
    if len({dataset.name for dataset in datasets}) < len(datasets):
        raise ConfigError("two data sets have the same name; rename one of the folders")
    measured = []
    for dataset in datasets:
        place = _place_of(ctx, dataset, len(datasets))
        done = await run_measure(place, dataset, wanted, given.openie, given.records)
        table = compare(done.reports, against=given.against, seed=wanted.seed)
        payload = _make_payload(done, table, given.costs)
        if (into := given.output_folder(dataset)) is not None:
            made_by = f"Made by: {_repeat_command(given, wanted, into)}"
            save_report(table, into, to_json_value(payload), [*done.describe_run(), made_by])
        measured.append((done, table, payload))
    whole = _join_payloads([payload for _, _, payload in measured])

    def print_tables() -> None:
        for done, table, payload in measured:
            _print_comparison(table, done, payload, given.output_folder(done.dataset))
        if len(measured) > 1:
            out.print(format_table(*tabulate_means(whole["recipes"])))

    ctx.show(whole, print_tables)
    for done, _, _ in measured:
        fail_if_none_ran(done)


def _place_of(ctx: CommandContext, dataset: Dataset, number: int) -> CommandContext:
    """Return where a data set's knowledge base is: one of several corpora has a folder of its own.

    Question files without a corpus share the knowledge base given.
    """
    if number < 2 or dataset.corpus is None:
        return ctx
    return replace(ctx, settings=ctx.settings_at(child_location(ctx.settings.kb, dataset.name)))


def _make_payload(done: MeasureResult, table: Comparison, costs: bool) -> dict[str, Any]:
    payload = done.to_dict() | {"significance": table.significance(), "by_type": table.by_type()}
    return payload | ({"costs": build_costs(done.reports, done.build)} if costs else {})


def _join_payloads(payloads: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one data set's object as it is; of several their means, and each by its name."""
    if len(payloads) == 1:
        return payloads[0]
    return {
        "dataset": ", ".join(payload["dataset"] for payload in payloads),
        "questions": sum(payload["questions"] for payload in payloads),
        "unread": sum(payload["unread"] for payload in payloads),
        "problems": [problem for payload in payloads for problem in payload["problems"]],
        "recipes": average_datasets(payloads),
        "datasets": {payload["dataset"]: payload for payload in payloads},
    }


def _repeat_command(given: _CompareArgs, wanted: MeasureOptions, into: Path) -> str:
    """Return the command that reproduces this page; paths are shortened to their names."""
    axes = given.axes
    words = ["clew compare", *(folder.name for folder in given.folders)]
    if given.grid:
        words.append(f"--grid {given.grid.name}")
    elif given.recipe:
        words.append(f"--recipe {given.recipe}")
    words += [f"--openie {'/'.join(given.openie.parts[-2:])}"] if given.openie else []
    words += [f"--metrics {','.join(wanted.metrics)}"] if wanted.metrics else []
    words += [f"--limit {wanted.limit}"] if wanted.limit else []
    words += [f"--sample {wanted.sample} --seed {wanted.seed}"] if wanted.sample else []
    words += ["--answers"] if wanted.answers else []
    words += [f"--mode {','.join(axes.modes)}"] if list(axes.modes) != ["open"] else []
    words += [f"--model {','.join(axes.models)}"] if any(axes.models) else []
    words += [f"--evidence {','.join(axes.evidence)}"] if list(axes.evidence) != ["all"] else []
    words += [f"--steps {wanted.steps}"] if wanted.steps else []
    words += ["--costs"] if given.costs else []
    words += ["--grow"] if wanted.grow else []
    words += [f"--pairwise '{wanted.pairwise}'"] if wanted.pairwise else []
    words += [f"-k {','.join(map(str, axes.depths))}"] if any(axes.depths) else []
    words += [f"--against {given.against}"] if given.against else []
    words += [f"--records {'/'.join(path.parts[-2:])}" for path in given.records]
    words += ["--link"] if wanted.link else []
    return " ".join([*words, "--out", into.name])


def _print_comparison(
    table: Comparison, done: MeasureResult, payload: dict[str, Any], into: Path | None
) -> None:
    print_problems(done.problems)
    for line in done.describe_run():
        out.print(line, markup=False)
    out.print(format_table(*build_table(table)))
    out.print(f"[dim]{escape(format_legend(table))}[/dim]")
    if "costs" in payload:
        out.print(format_table(*tabulate_costs(payload["costs"])))
    if done.pairwise is not None:
        out.print(format_table(*tabulate_wins(done.pairwise)))
    print_failures(done.count_failures())
    if into is not None:
        out.print(f"written: {into}/report.html, table.md, table.csv, table.json", markup=False)
