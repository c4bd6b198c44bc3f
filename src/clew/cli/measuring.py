"""Commands that measure: eval."""

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.table import Table

from clew.cli.bars import progress
from clew.cli.door import AsJson, Debug, Door, Kb, enter, err, out, plain, run
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.evaluate.datasets import Dataset, load_dataset
from clew.evaluate.metrics import depth
from clew.evaluate.runner import Run
from clew.extract.openie import Recorded, recorded
from clew.ingest.read import read
from clew.recipes import recipe_named
from clew.store.protocol import Counts

_DEFAULT = "recall@2,recall@5"
_OWN = {"n", "failed", "seconds_per_query", "seconds_p50", "seconds_p95", "calls", "tokens"}


def register(app: typer.Typer) -> None:
    """Add this room's commands."""
    app.command(name="eval")(evaluate)


def evaluate(
    folder: Annotated[
        Path, typer.Argument(help="questions.jsonl, and corpus.jsonl to build from.")
    ],
    recipe: Annotated[str, typer.Option(help="Recipes, separated by commas.")] = "clew",
    metrics: Annotated[str, typer.Option(help="Metrics, separated by commas.")] = _DEFAULT,
    limit: Annotated[int | None, typer.Option(help="Only the first N questions.")] = None,
    openie: Annotated[
        Path | None, typer.Option(help="Build from these recorded extractions.")
    ] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="Answer, do not only retrieve.")
    ] = False,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Measure recipes on a dataset folder; builds the knowledge base if there is none."""
    door = enter(kb, as_json)
    extractor = Recorded(recorded(openie)) if openie else None
    run(lambda: _evaluate(door, folder, extractor, (recipe, metrics, limit, answers)), debug)


async def _evaluate(
    door: Door,
    folder: Path,
    extractor: Recorded | None,
    how: tuple[str, str, int | None, bool],
) -> None:
    recipes, metrics, limit, answers = how
    names, measures = _listed(recipes), _listed(metrics)
    depth(measures)
    for name in names:
        recipe_named(name)
    dataset = load_dataset(folder)
    async with door.kb(create=dataset.corpus is not None) as base:
        with progress(door.json) as tell:
            build = await _built(base, dataset, extractor, tell)
            running = Run(base, measures, answers, tell)
            questions = dataset.questions[:limit]
            reports = [await running.recipe(name, questions) for name in names]
    summaries = {report.recipe: report.summary() for report in reports}
    found = {
        "dataset": dataset.name,
        "questions": len(questions),
        "problems": list(dataset.problems),
        "build": build,
        "recipes": summaries,
    }
    door.show(found, lambda: _tell(found))


def _listed(names: str) -> list[str]:
    found = [name.strip() for name in names.split(",") if name.strip()]
    if not found:
        raise ConfigError("nothing is named; give at least one recipe and one metric")
    return found


async def _built(
    base: KnowledgeBase, dataset: Dataset, extractor: Recorded | None, tell: Any
) -> dict[str, Any]:
    """Build from the corpus when the knowledge base is empty; reuse it otherwise."""
    counts: Counts = await base.store.counts()
    if counts.documents:
        return {"reused": True, **plain(counts)}
    if dataset.corpus is None:
        raise ConfigError(
            f"{dataset.name} has no corpus.jsonl; name a built knowledge base by --kb"
        )
    started = perf_counter()
    added = await base.take(read([dataset.corpus], row_names="id"), extractor, progress=tell)
    seconds = round(perf_counter() - started, 3)
    return {"reused": False, "seconds": seconds, **plain(added.counts)}


def _tell(found: dict[str, Any]) -> None:
    for problem in found["problems"][:5]:
        err.print(f"  {problem}", style="yellow", markup=False)
    rows = found["recipes"]
    metrics = list(dict.fromkeys(key for row in rows.values() for key in row if key not in _OWN))
    table = Table("recipe", *metrics, "n", "failed", "p50 ms", "p95 ms", box=None, pad_edge=False)
    for name, row in rows.items():
        values = [f"{row[key]:.3f}" if key in row else "" for key in metrics]
        times = [f"{row[key] * 1000:.0f}" for key in ("seconds_p50", "seconds_p95")]
        table.add_row(name, *values, str(row["n"]), str(row["failed"]), *times)
    out.print(f"{found['dataset']}: {found['questions']} questions")
    out.print(table)
