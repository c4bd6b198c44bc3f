"""A metric of the first K passages tells nothing where fewer than K were fetched."""

from collections.abc import Sequence
from dataclasses import replace

from clew.evaluate.metrics import looks_at
from clew.evaluate.summary import Report

_FETCHED, _LEFT_OUT = "fetched", "left_out"


def within_reach(report: Report, metrics: Sequence[str], fetched: int, held: int) -> Report:
    """The report without the metrics that look deeper than what was fetched of what is held.

    recall@5 under the name of recall@20 would look like a recipe that finds nothing more.
    """
    lost = _too_deep(metrics, fetched, held)
    if not lost:
        return report
    records = tuple(
        replace(one, values={k: v for k, v in one.values.items() if k not in lost})
        for one in report.records
    )
    about = report.about | {_FETCHED: fetched, _LEFT_OUT: lost}
    return replace(report, records=records, about=about)


def most_found(report: Report) -> int:
    """The most passages that any question was given."""
    return max((len(record.found) for record in report.records), default=0)


def left_out(reports: Sequence[Report]) -> list[str]:
    """What was left out as too deep, a sentence for recipes that share it."""
    lost: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for report in reports:
        if report.about.get(_LEFT_OUT):
            key = (int(report.about[_FETCHED]), tuple(report.about[_LEFT_OUT]))
            lost.setdefault(key, []).append(report.recipe)
    return [
        f"{', '.join(names)}: left out for {', '.join(recipes)}, no more than {fetched} passages "
        f"were fetched; -k {max(map(looks_at, names))} fetches enough"
        for (fetched, names), recipes in lost.items()
    ]


def doubtful(report: Report, metrics: Sequence[str], held: int) -> list[str]:
    """Others' records do not say how many passages were asked for: only name what looks too few."""
    lost = _too_deep(metrics, most_found(report), held)
    if not lost:
        return []
    return [
        f"{', '.join(lost)}: of no more than {most_found(report)} passages for {report.recipe}; "
        "its records name no more"
    ]


def _too_deep(metrics: Sequence[str], fetched: int, held: int) -> list[str]:
    # Where nothing at all came back it was not the depth that failed.
    return [name for name in metrics if 0 < fetched < min(looks_at(name), held)]
