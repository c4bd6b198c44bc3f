"""Scores of the reader on questions with known answers: F1, exact match, no answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.reader.examples import Example
from clew.evaluate.metrics.answers import exact_match, f1
from clew.reader.span_reader import ReadSpan, find_spans
from clew.reader.windows import Window, WindowMaker

ReadFunction = Callable[[Example], "ReadSpan | None"]


@dataclass(frozen=True, slots=True)
class Scored:
    """What was found for one question."""

    text: str
    score: float
    golds: tuple[str, ...]


def read_with_torch(
    model: Any, maker: WindowMaker, examples: Sequence[Example], device: str, rows: int = 32
) -> list[Scored]:
    """Read every example as one window of all its passages, or several of a long passage."""
    windows: list[tuple[int, Window]] = []
    for number, example in enumerate(examples):
        texts = [one.text for one in example.passages]
        titles = [one.title for one in example.passages]
        if len(texts) == 1:
            windows += [(number, one) for one in maker.separate(example.question, texts, titles)]
        else:
            windows.append((number, maker.together(example.question, texts, titles)))
    best: list[ReadSpan | None] = [None] * len(examples)
    windows.sort(key=lambda one: len(one[1].ids))
    for first in range(0, len(windows), rows):
        part = windows[first : first + rows]
        logits = _run([window for _, window in part], model, device)
        for (number, window), row in zip(part, logits, strict=True):
            texts = [one.text for one in examples[number].passages]
            found = find_spans(window, row[: len(window.ids)], texts, 1)
            known = best[number]
            if found and (known is None or found[0].score > known.score):
                best[number] = found[0]
    return [
        Scored(span.text if span else "", span.score if span else -1e9, example.golds)
        for span, example in zip(best, examples, strict=True)
    ]


def _run(windows: Sequence[Window], model: Any, device: str) -> Any:
    width = max(len(window.ids) for window in windows)
    ids = np.zeros((len(windows), width), np.int64)
    types, mask = np.zeros_like(ids), np.zeros(ids.shape, bool)
    for row, window in enumerate(windows):
        ids[row, : len(window.ids)] = window.ids
        types[row, : len(window.ids)] = window.types
        mask[row, : len(window.ids)] = True
    model.eval()
    import torch  # only here: the reader of the package is scored without it

    with torch.inference_mode():
        tensors = (torch.from_numpy(one).to(device) for one in (ids, types, mask))
        return model(*tensors).float().cpu().numpy()


def summarise(results: Sequence[Scored], threshold: float = 0.0) -> dict[str, float]:
    """F1 and EM of answerable questions, accuracy of refusals, both at a threshold and forced."""
    answerable = [one for one in results if one.golds]
    others = [one for one in results if not one.golds]
    out = {"questions": float(len(results))}
    if answerable:
        out["f1_forced"] = _mean([f1(one.text, one.golds) for one in answerable])
        out["em_forced"] = _mean([exact_match(one.text, one.golds) for one in answerable])
        out["f1_has"] = _mean([_score_at(one, threshold) for one in answerable])
    if others:
        out["no_answer"] = _mean([_score_at(one, threshold) for one in others])
        out["overall"] = _mean([_score_at(one, threshold) for one in results])
        out["best_overall"], out["best_at"] = _best_threshold(results)
    return {key: round(value, 2) for key, value in out.items()}


def _score_at(one: Scored, threshold: float) -> float:
    named = one.score > threshold
    if not one.golds:
        return float(not named)
    return f1(one.text, one.golds) if named else 0.0


def _best_threshold(results: Sequence[Scored]) -> tuple[float, float]:
    """The highest overall score of any threshold, in per cent, and that threshold."""
    ordered = sorted(results, key=lambda one: -one.score)
    total = float(sum(not one.golds for one in results))  # everything refused
    best, at = total, float("inf")
    for one in ordered:
        total += f1(one.text, one.golds) if one.golds else -1.0
        if total > best:
            best, at = total, one.score
    return 100 * best / len(results), at


def _mean(values: Sequence[float]) -> float:
    return 100 * float(np.mean(values))


def format_table(rows: dict[str, dict[str, float]]) -> str:
    """A plain text table, one line per name."""
    columns = list(dict.fromkeys(key for row in rows.values() for key in row))
    width = max(map(len, rows)) + 2
    lines = ["".ljust(width) + "".join(key.rjust(13) for key in columns)]
    for name, row in rows.items():
        cells = (f"{row[key]:.2f}" if key in row else "" for key in columns)
        lines.append(name.ljust(width) + "".join(cell.rjust(13) for cell in cells))
    return "\n".join(lines)
