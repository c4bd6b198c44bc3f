"""Drop metrics with a cutoff k deeper than the number of passages fetched."""

from collections.abc import Sequence
from dataclasses import replace

from clew.evaluate.metrics import looks_at
from clew.evaluate.summary import Report

_FETCHED, _LEFT_OUT = "fetched", "left_out"


def within_reach(report: Report, metrics: Sequence[str], fetched: int, held: int) -> Report:
    """Remove metrics deeper than `fetched` passages, unless all `held` documents were fetched.

    Otherwise recall@20 of 5 passages would look like a recipe that finds nothing more.
    """
    dropped = _too_deep(metrics, fetched, held)
    if not dropped:
        return report
    records = tuple(
        replace(record, values={k: v for k, v in record.values.items() if k not in dropped})
        for record in report.records
    )
    about = report.about | {_FETCHED: fetched, _LEFT_OUT: dropped}
    return replace(report, records=records, about=about)


def most_found(report: Report) -> int:
    """Return the largest number of passages found for a question."""
    return max((len(record.found) for record in report.records), default=0)


def left_out(reports: Sequence[Report]) -> list[str]:
    """Describe the dropped metrics, one sentence for the recipes that share them."""
    dropped: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for report in reports:
        if report.about.get(_LEFT_OUT):
            key = (int(report.about[_FETCHED]), tuple(report.about[_LEFT_OUT]))
            dropped.setdefault(key, []).append(report.recipe)
    return [
        f"{', '.join(names)}: left out for {', '.join(recipes)}, no more than {fetched} passages "
        f"were fetched; -k {max(map(looks_at, names))} fetches enough"
        for (fetched, names), recipes in dropped.items()
    ]


def doubtful(report: Report, metrics: Sequence[str], held: int) -> list[str]:
    """Warn of metrics deeper than external records, whose requested depth is unknown."""
    deep = _too_deep(metrics, most_found(report), held)
    if not deep:
        return []
    return [
        f"{', '.join(deep)}: of no more than {most_found(report)} passages for {report.recipe}; "
        "its records name no more"
    ]


def _too_deep(metrics: Sequence[str], fetched: int, held: int) -> list[str]:
    # If nothing was found at all, depth is not the cause.
    return [name for name in metrics if 0 < fetched < min(looks_at(name), held)]
