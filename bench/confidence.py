"""Fits the confidence that ships, and reports how well it is calibrated.

`python -m bench.confidence candidates --data DIR --kbs DIR --sets 2wiki:150:400 --rows FILE` reads
training questions and appends every candidate, right or wrong; `fit-rank --rows FILE` fits the
weights that rank candidates. `bench.answer_sets --rows FILE` then answers training questions, also
in other wordings, with invented names and with their answers hidden; `fit-answers` fits the
confidence of short answers to those rows, and `fit-quotes` that of quotes to the rows of
`bench.documents.rows`. `fit-judged-rank`, `fit-judged-answers`, `fit-judged-quotes` and
`fit-decided` do so for answers that the scorer judged, also with the rows of `bench.note_answers`,
and `fit-says-yes` for whether a sentence says yes (rows of `bench.note_answers --statements`).
`fit-written` fits that of written answers on which the reader was asked (rows of `--recipe
steps-judged`, so that none is left out); `fit-contested` that of spans where a model wrote
something else (rows of `--recipe steps-read`); `fit-subject` what it counts that an answer is said
of another thing (rows of `--wordings plain,sibling`); `fit-named` and `fit-named-written` what it
counts that no passage has a name asked about (rows of `--wordings plain,stranger,hidden,sibling`
with a model, computed or seconded, and written alone). All write to `--out`, and print how well
weights fitted on the other sets do on each set. `report` prints risk and coverage by set.
"""

import argparse
import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from bench.answer_sets import RIGHT, SHARES, Asked, open_set, read_questions
from bench.machine import read_jsonl, require_path
from clew.agents.answering.backing import BACKED
from clew.agents.core.confidence import (
    DEFAULT_THRESHOLD,
    JUDGED,
    OTHER_SUBJECT,
    LogisticModel,
    fit_logistic,
    format_models,
    load_shipped_models,
    measure_calibration_error,
    risk_coverage,
)
from clew.agents.core.scratchpad import Notebook, RecordingRetriever
from clew.agents.reading.answer import QuestionReader, RankedCandidate
from clew.agents.reading.decide import DECIDED, SAYS_YES
from clew.engine import KnowledgeBase
from clew.evaluate.metrics.answers import f1
from clew.recipes.registry import resolve_recipe
from clew.retrieve.question import tidy_question

Rows = Sequence[Mapping[str, Any]]
RANK_RIDGE = 3.0  # pull towards the weights there are
JUDGED_RIDGE = 60.0  # of the scorer's weight among thousands of candidates
ANSWER_RIDGE = 0.3
MOST_NAMED = 8.0  # how much more a missing name may count
# What a short answer is judged by; the other signals said nothing more on sets left out.
ANSWER_SIGNALS = ("cosine", "elsewhere", "settled", "told", "untold")
# Nearly alike on data sets: they are pulled towards the weights they have.
KEPT_SIGNALS = ("named", "undecided", "understood", "unfit")
COMPUTED_SIGNALS = ("own", "polar", "told")
# What a short answer, a quote, and a yes or no are judged by that the scorer compared.
JUDGED_ANSWER_SIGNALS = (JUDGED, "lead", "sentence")
DECIDED_SIGNALS = (DECIDED, "clear", "denied")
# Too seldom in the rows to fit: what is said of something else, a yes with either of the others.
FOREIGN_SIGNALS = ("foreign", "unsaid step", OTHER_SUBJECT)
SET_SIGNALS = ("apart", "disputed")
WRITTEN_RIDGE = 2.0
# What a written answer is judged by; the rest said nothing more on the training questions.
WRITTEN_SIGNALS = (
    *("against", "agreed", "cited", "computed", "direct", "named"),
    *("understood", "unfit"),  # nearly alike on data sets: they keep the weights they have
    *("kept", "unread", BACKED),
)
# What a span is judged by that a model contradicts.
CONTESTED_SIGNALS = ("alone", "lead", "moved", BACKED)
SUPPORTING = (
    *("own", "direct", "lead", "entailed", "covered", "named", "cited", "understood", BACKED),
    *("told", "near", "cosine", "open", "sentence", "settled", JUDGED, DECIDED, "clear"),
)
OPPOSING = (
    *("lacking", "rarest", "undefined", "inexact", "valueless", "undecided", "astray"),
    *("untold", "unfit", "elsewhere", "strayed"),
)
QUOTE_RIDGE = 3.0
# What quotes are judged by.
QUOTE_SIGNALS = (
    *("cosine", "covered", "named", "near", "open", "understood"),
    *("lacking", "rarest", "undefined", "inexact", "valueless", "undecided"),
)
# A quote counts as right if the answer is anywhere in it, and the scorer seldom finds a question of
# yes or no undecided: there a wrong answer counts more often than a right one withheld.
WRONG_QUOTE, WRONG_DECISION = 2, 1.5
PASSAGES = 8  # that are read for a question


async def find_candidates(
    kb: KnowledgeBase, question: str, rank: LogisticModel
) -> list[RankedCandidate]:
    """Return every candidate that is read for a question, each judged by the scorer."""
    retrieve = resolve_recipe("clew", kb.recipes).retrieve
    async with kb.store.snapshot() as snapshot:
        text = tidy_question(question)
        ctx = await kb.context(snapshot, text, retrieve.name)
        retriever = RecordingRetriever(retrieve, Notebook(), PASSAGES)
        reader = QuestionReader(retriever, rank, judge_all=True)
        return await reader(ctx, text)


async def label_candidates(kb: KnowledgeBase, one: Asked, rank: LogisticModel) -> list[Any]:
    """Return every candidate's F1 and what speaks for it."""
    found = await find_candidates(kb, one.text, rank)
    return [[f1(c.candidate.text, one.golds) if one.golds else 0.0, c.signals] for c in found]


async def collect_candidates(given: argparse.Namespace) -> None:
    """Append the candidates of training questions to a file, a line for each question."""
    models = load_shipped_models()
    for spec in given.sets.split(","):
        name, first, last = spec.split(":")
        kb = await open_set(given, name)
        rank = models[f"{JUDGED} rank" if kb.scorer else "rank"]
        try:
            with given.rows.open("a", encoding="utf-8") as file:
                for wording in given.wordings.split(","):
                    folder = given.data / name
                    for one in read_questions(folder, int(first), int(last), wording):
                        found = await label_candidates(kb, one, rank)
                        row = {"set": spec, "wording": wording, "id": one.id, "candidates": found}
                        file.write(json.dumps(row) + "\n")
        finally:
            await kb.close()
        print(f"{spec}: read", flush=True)


def fit_rank(rows: Rows, prior: LogisticModel) -> LogisticModel:
    """Fit the weights that rank candidates."""
    labelled = [(signals, score >= RIGHT) for row in rows for score, signals in row["candidates"]]
    signals, right = [one for one, _ in labelled], [right for _, right in labelled]
    return fit_logistic(signals, right, prior, RANK_RIDGE)


def fit_judged_rank(rows: Rows, _: LogisticModel) -> LogisticModel:
    """Fit what the scorer adds to the weights that rank candidates."""
    labelled = [(signals, score >= RIGHT) for row in rows for score, signals in row["candidates"]]
    return add_judged(load_shipped_models()["rank"], labelled)


def measure_rank(rows: Rows, model: LogisticModel) -> str:
    """Say what F1 the candidates have that a model puts first, and how good the best are."""
    asked = [row["candidates"] for row in rows if row["candidates"]]
    first = [max(some, key=lambda one: model(one[1]))[0] for some in asked]
    best = [max(score for score, _ in some) for some in asked]
    return f"F1 {100 * float(np.mean(first)):5.1f} of {100 * float(np.mean(best)):5.1f}"


def fit_supporting(
    rows: Rows,
    prior: LogisticModel,
    ridge: float,
    names: Sequence[str] | None = None,
    counts: Sequence[float] | None = None,
) -> LogisticModel:
    """Fit the confidence of answers.

    What supports an answer may not lower it, nor may what speaks against it raise it.
    """
    right, left_out = [bool(row["right"]) for row in rows], set[str]()
    while True:
        signals = [_keep(row["signals"], names, left_out) for row in rows]
        kept = _keep(prior.weights, names, left_out)
        fitted = fit_logistic(signals, right, LogisticModel(kept, prior.bias), ridge, counts)
        wrong = {name for name in SUPPORTING if fitted.weights.get(name, 0.0) < 0}
        wrong |= {name for name in OPPOSING if fitted.weights.get(name, 0.0) > 0}
        if not wrong:
            return fitted
        left_out |= wrong


def _keep(
    signals: Mapping[str, float], names: Sequence[str] | None, left_out: Set[str]
) -> dict[str, float]:
    """Return the signals of these names, all where none are given, without those left out."""
    chosen = signals.keys() if names is None else names
    return {name: signals.get(name, 0.0) for name in chosen if name not in left_out}


def fit_answers(rows: Rows, prior: LogisticModel) -> LogisticModel:
    """Fit the confidence of answers that were read without a model; it starts from nothing."""
    return fit_from_nothing(rows, prior, ANSWER_SIGNALS)


def fit_computed(rows: Rows, prior: LogisticModel) -> LogisticModel:
    """Fit the confidence of what code computed from values that were read."""
    return fit_from_nothing(rows, prior, COMPUTED_SIGNALS)


def fit_from_nothing(
    rows: Rows, prior: LogisticModel, names: Sequence[str], counts: Sequence[float] | None = None
) -> LogisticModel:
    """Fit these signals from nothing, beside those that keep what weights they have."""
    kept = {name: prior.weights.get(name, 0.0) for name in KEPT_SIGNALS}
    start = LogisticModel({**dict.fromkeys(names, 0.0), **kept}, -sum(kept.values()))
    return fit_supporting(rows, start, ANSWER_RIDGE, (*names, *KEPT_SIGNALS), counts)


def balance(rows: Rows, wrong: float = 1) -> list[float]:
    """Return how many times each row counts, so that no set outweighs the others by its size.

    A set counts as the root of its size; wrong answers `wrong` times as often as right ones.
    """
    sizes = {name: len(some) for name, some in group_by_set(rows).items()}
    shares = [sizes[name_set(row)] ** -0.5 for row in rows]
    scale = len(rows) / sum(shares)
    return [
        scale * share * row.get("count", 1.0) * (1 if row["right"] else wrong)
        for share, row in zip(shares, rows, strict=True)
    ]


def fit_quotes(rows: Rows, prior: LogisticModel) -> LogisticModel:
    """Fit the confidence of quotes that name no short answer."""
    return fit_supporting(rows, prior, QUOTE_RIDGE, QUOTE_SIGNALS)


def fit_judged_answers(rows: Rows, _: LogisticModel) -> LogisticModel:
    """Fit the confidence of short answers that the scorer judged."""
    models = load_shipped_models()
    fitted = fit_from_nothing(rows, models["answer"], JUDGED_ANSWER_SIGNALS, balance(rows))
    kept = {name: models[f"{JUDGED} answer"].weights[name] for name in FOREIGN_SIGNALS}
    return LogisticModel({**fitted.weights, **kept}, fitted.bias)


def fit_judged_quotes(rows: Rows, _: LogisticModel) -> LogisticModel:
    """Fit the confidence of quotes that the scorer judged, from that of quotes without."""
    prior, counts = load_shipped_models()["quote"], balance(rows, WRONG_QUOTE)
    return fit_supporting(rows, prior, ANSWER_RIDGE, (JUDGED, *QUOTE_SIGNALS), counts)


def add_judged(
    model: LogisticModel, labelled: Sequence[tuple[Mapping[str, float], bool]]
) -> LogisticModel:
    """Fit the weight of the scorer's opinion beside a model that stays as it is."""
    return add_signal(model, labelled, JUDGED, JUDGED_RIDGE)


def add_signal(
    model: LogisticModel,
    labelled: Sequence[tuple[Mapping[str, float], bool]],
    name: str,
    ridge: float,
) -> LogisticModel:
    """Fit the weight of one signal beside a model that stays as it is."""
    bare = LogisticModel({**model.weights, name: 0.0}, model.bias)
    known = [{"known": _logit(bare(one)), name: one.get(name, 0.0)} for one, _ in labelled]
    start = LogisticModel({"known": 1.0, name: 0.0})
    fitted = fit_logistic(known, [right for _, right in labelled], start, ridge)
    return LogisticModel({**model.weights, name: fitted.weights[name]}, model.bias)


def fit_subject(rows: Rows, prior: LogisticModel) -> LogisticModel:
    """Fit what it counts that an answer is said of another thing than the one named."""
    labelled = [(row["signals"], bool(row["right"])) for row in rows]
    return add_signal(prior, labelled, OTHER_SUBJECT, ANSWER_RIDGE)


def fit_named(rows: Rows, prior: LogisticModel) -> LogisticModel:
    """Fit what it counts that names are mentioned nowhere; where all are, nothing changes."""
    missing = np.array([1 - row["signals"].get("named", 0.0) for row in rows])
    known = np.array([_logit(prior(row["signals"])) for row in rows])
    right, counts = np.array([bool(row["right"]) for row in rows]), np.array(balance(rows))

    def loss(weight: float) -> float:
        logits = known - weight * missing
        losses = counts * (np.logaddexp(0, logits) - right * logits)
        return float(losses.sum() + ANSWER_RIDGE * weight**2 / 2)

    more = round(float(min(np.arange(0, MOST_NAMED, 0.1), key=loss)), 1)
    weights = {**prior.weights, "named": round(prior.weights["named"] + more, 4)}
    return LogisticModel(weights, round(prior.bias - more, 4))


def _logit(chance: float) -> float:
    kept = min(1 - 1e-6, max(1e-6, chance))
    return float(np.log(kept / (1 - kept)))


def fit_decided(rows: Rows, _: LogisticModel) -> LogisticModel:
    """Fit the confidence of a yes or no by the sentence that the scorer finds to decide."""
    models = load_shipped_models()
    counts = balance(rows, WRONG_DECISION)
    fitted = fit_from_nothing(rows, models["computed"], DECIDED_SIGNALS, counts)
    kept = {name: models["decided"].weights[name] for name in SET_SIGNALS}
    return LogisticModel({**fitted.weights, **kept}, fitted.bias)


def fit_says_yes(rows: Rows, _: LogisticModel) -> LogisticModel:
    """Fit whether a sentence that decides a question says yes; it starts from nothing."""
    return fit_logistic([row["signals"] for row in rows], [bool(row["right"]) for row in rows])


def fit_written(rows: Rows, prior: LogisticModel) -> LogisticModel:
    """Fit the confidence of answers that a model wrote."""
    fitted = fit_supporting(rows, prior, WRITTEN_RIDGE, WRITTEN_SIGNALS)
    return keep_weight(fitted, prior, OTHER_SUBJECT)


def keep_weight(fitted: LogisticModel, prior: LogisticModel, name: str) -> LogisticModel:
    """Return what was fitted with a weight as it was, of a signal too seldom in the rows."""
    return LogisticModel({**fitted.weights, name: prior.weights[name]}, fitted.bias)


def fit_contested(rows: Rows, prior: LogisticModel) -> LogisticModel:
    """Fit the confidence of spans where a model wrote something else; it starts from nothing."""
    signals = [{name: row["signals"].get(name, 0.0) for name in CONTESTED_SIGNALS} for row in rows]
    fitted = fit_logistic(signals, [bool(row["right"]) for row in rows])
    return keep_weight(fitted, prior, OTHER_SUBJECT)


def measure_answers(rows: Rows, model: LogisticModel) -> str:
    """Say how well calibrated a model is on some answers, and what it lets through."""
    values, right = [model(row["signals"]) for row in rows], [bool(row["right"]) for row in rows]
    kept = [one for one, value in zip(right, values, strict=True) if value >= DEFAULT_THRESHOLD]
    precision = float(np.mean(kept)) if kept else 0.0
    chances = [value if one else 1 - value for one, value in zip(right, values, strict=True)]
    loss = -float(np.mean(np.log(np.maximum(chances, 1e-6))))
    return (
        f"loss {loss:.3f}, ECE {measure_calibration_error(values, right):.3f}, "
        f"precision {precision:.2f} at {len(kept) / len(rows):.2f}"
    )


def group_by_set(rows: Rows) -> dict[str, list[Mapping[str, Any]]]:
    """Return the rows of each data set, whatever part of it they are from."""
    grouped = defaultdict(list)
    for row in rows:
        grouped[name_set(row)].append(row)
    return grouped


def name_set(row: Mapping[str, Any]) -> str:
    """Return the data set that a row is from."""
    return str(row["set"]).split(":")[0]


def fit_and_compare(
    rows: Rows,
    prior: LogisticModel,
    fit: Callable[[Rows, LogisticModel], LogisticModel],
    measure: Callable[[Rows, LogisticModel], str],
) -> LogisticModel:
    """Fit on all rows; print how the old weights, all rows and the other sets' rows do by set."""
    fitted = fit(rows, prior)
    for name, some in group_by_set(rows).items():
        rest = [row for row in rows if name_set(row) != name]
        print(
            f"{name} ({len(some)}): before {measure(some, prior)}; fitted {measure(some, fitted)}"
        )
        if rest:
            print(f"  fitted on the other sets {measure(some, fit(rest, prior))}")
    return fitted


FITTED = {
    "fit-answers": ("answer", fit_answers),
    "fit-judged-answers": (f"{JUDGED} answer", fit_judged_answers),
    "fit-computed": ("computed", fit_computed),
    "fit-decided": ("decided", fit_decided),
    "fit-says-yes": (SAYS_YES, fit_says_yes),
    "fit-quotes": ("quote", fit_quotes),
    "fit-judged-quotes": (f"{JUDGED} quote", fit_judged_quotes),
    "fit-written": ("seconded", fit_written),
    "fit-contested": ("contested", fit_contested),
    "fit-subject": (f"{JUDGED} answer", fit_subject),
    "fit-named": ("seconded", fit_named),
    "fit-named-written": ("written", fit_named),
}


def is_of_kind(row: Mapping[str, Any], kind: str) -> bool:
    """Whether an answer is one that a model of confidence judges."""
    signals = row["signals"]
    if kind == SAYS_YES or "denies" in signals:
        return kind == SAYS_YES and "denies" in signals
    if "kind" in row:  # rows of a collection before November have none
        return bool(signals) and row["kind"] == kind
    if not signals or bool(row["short"]) == kind.endswith("quote"):
        return False
    if kind.endswith(("answer", "quote")) and (JUDGED in signals) != kind.startswith(JUDGED):
        return False
    if kind in ("computed", "decided") or kind.endswith("answer"):
        computed = bool(signals.get("computed", 0.0))
        decided = DECIDED in signals
        return computed == (not kind.endswith("answer")) and decided == (kind == "decided")
    return kind != "contested" or bool(signals.get("contested"))


def refit(given: argparse.Namespace) -> None:
    """Fit the model of what is asked for, and write it with the others."""
    models = dict(load_shipped_models())
    rows = read_jsonl(given.rows)
    if given.what in ("fit-rank", "fit-judged-rank"):
        kind = given.what.removeprefix("fit-").replace("-", " ")
        fit_order = fit_judged_rank if kind.startswith(JUDGED) else fit_rank
        models[kind] = fit_and_compare(rows, models[kind], fit_order, measure_rank)
    else:
        kind, fit = FITTED[given.what]
        short = [row for row in rows if is_of_kind(row, kind)]
        if not short:
            raise SystemExit(f"{given.rows} has no answer to fit the confidence of {kind} to")
        models[kind] = fit_and_compare(short, models[kind], fit, measure_answers)
    given.out.write_text(format_models(models) + "\n", encoding="utf-8")


def report(given: argparse.Namespace) -> None:
    """Print a table of precision at growing coverage, and the calibration error, by set."""
    rows = defaultdict(list)
    for row in read_jsonl(given.rows):
        rows[f"{row['set']}, {row['wording']}"].append(row)
    heads = " | ".join(f"best {share:.0%}" for share in SHARES)
    print(f"| set | n | ECE | {heads} |")
    print("|" + "---|" * (3 + len(SHARES)))
    for name, some in rows.items():
        values, right = [r["confidence"] for r in some], [r["right"] for r in some]
        curve = " | ".join(f"{value:.2f}" for value in risk_coverage(values, right, SHARES))
        error = measure_calibration_error(values, right)
        print(f"| {name} | {len(some)} | {error:.3f} | {curve} |")


def main() -> None:
    """Parse the arguments and collect, fit or report."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = ("candidates", "fit-rank", "fit-judged-rank", *FITTED, "report")
    parser.add_argument("what", choices=commands)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--kbs", type=Path)
    parser.add_argument("--sets", default="2wiki:150:400,squad2:208:632")
    parser.add_argument("--wordings", default="plain")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rows", type=Path, required=True)
    given = parser.parse_args()
    if given.what == "candidates":
        require_path(given.data, "--data")
        asyncio.run(collect_candidates(given))
        return
    require_path(given.rows, "--rows")
    if given.what != "report" and given.out is None:
        parser.error(f"{given.what} needs --out, the file of weights to write")
    (report if given.what == "report" else refit)(given)


if __name__ == "__main__":
    main()
