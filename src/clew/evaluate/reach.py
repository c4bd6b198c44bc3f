"""Drop metrics with a cutoff k deeper than the number of passages fetched."""

from collections.abc import Sequence
from dataclasses import replace

from clew.evaluate.metrics import metric_depth
from clew.evaluate.summary import RecipeReport

_FETCHED_KEY, _LEFT_OUT_KEY = "fetched", "left_out"


def drop_deep_metrics(
    report: RecipeReport, metrics: Sequence[str], fetched: int, held: int
) -> RecipeReport:
    """Remove metrics deeper than `fetched` passages, unless all `held` documents were fetched.

    Otherwise recall@20 of 5 passages would look like a recipe that finds nothing more.
    """
    dropped = _find_deep_metrics(metrics, fetched, held)
    if not dropped:
        return report
    records = tuple(
        replace(record, values={k: v for k, v in record.values.items() if k not in dropped})
        for record in report.records
    )
    about = report.about | {_FETCHED_KEY: fetched, _LEFT_OUT_KEY: dropped}
    return replace(report, records=records, about=about)


def max_found(report: RecipeReport) -> int:
    """Return the largest number of passages found for a question."""
    return max((len(record.found) for record in report.records), default=0)


def describe_dropped_metrics(reports: Sequence[RecipeReport]) -> list[str]:
    """Describe the dropped metrics, one sentence for the recipes that share them."""
    dropped: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for report in reports:
        if report.about.get(_LEFT_OUT_KEY):
            key = (int(report.about[_FETCHED_KEY]), tuple(report.about[_LEFT_OUT_KEY]))
            dropped.setdefault(key, []).append(report.recipe)
    return [
        f"{', '.join(names)}: left out for {', '.join(recipes)}, no more than {fetched} passages "
        f"were fetched; -k {max(map(metric_depth, names))} fetches enough"
        for (fetched, names), recipes in dropped.items()
    ]


def describe_shallow_records(report: RecipeReport, metrics: Sequence[str], held: int) -> list[str]:
    """Warn of metrics deeper than external records, whose requested depth is unknown."""
    deep = _find_deep_metrics(metrics, max_found(report), held)
    if not deep:
        return []
    return [
        f"{', '.join(deep)}: of no more than {max_found(report)} passages for {report.recipe}; "
        "its records name no more"
    ]


def _find_deep_metrics(metrics: Sequence[str], fetched: int, held: int) -> list[str]:
    # If nothing was found at all, depth is not the cause.
    return [name for name in metrics if 0 < fetched < min(metric_depth(name), held)]
