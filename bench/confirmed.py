"""Fit the confidence of a yes or no that a sentence proves, on questions made of the texts.

Sentences of several knowledge bases are asked as questions, which are so; and each subject is asked
with what another sentence of its page says of something else, which the page does not say of it.

    python -m bench.confirmed KB… --out confidence.json
"""

import argparse
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clew
from clew.agents.core.confidence import (
    LogisticModel,
    fit_logistic,
    format_models,
    load_shipped_models,
    measure_calibration_error,
)
from clew.text.sentences import sentence_spans

SENTENCE = re.compile(
    r"(?P<subject>[A-Z][^,;:()]{2,40}?) (?P<verb>was|is|were|are|has|had|can|will) "
    r"(?P<rest>(?:not |never )?[a-z][^;:?()]{10,90}?)[,.]"
)
PRONOUNS = frozenset("It He She They This There These That Those We You".split())
SIGNALS = ("close", "firm", "denied")
KEPT = (
    "named",
    "told",
    "understood",
)  # hardly differ here: they keep the weights of what is computed
Row = dict[str, Any]
RIDGE = 1.0
# Anything that finds passages of a knowledge base, whatever it is about.
SEEDS = "city river war king film species school law company book north water number church".split()


def make_questions(texts: list[tuple[str, str]], seed: int, most: int) -> list[tuple[str, str]]:
    """Return questions with what is right: yes, no, or nothing."""
    found = []
    for title, text in texts:
        parts = list(find_parts(title, text))
        for at, (subject, verb, rest) in enumerate(parts):
            denied = re.match(r"(?:not|never)\s+", rest)
            bare = rest[denied.end() :] if denied else rest
            found.append((f"{verb.title()} {subject} {bare}?", "no" if denied else "yes"))
            other = parts[(at + 1) % len(parts)]
            if other[0] != subject and not denied:
                found.append((f"{other[1].title()} {subject} {other[2]}?", ""))
    random.Random(seed).shuffle(found)
    return found[:most]


def find_parts(title: str, text: str) -> Iterator[tuple[str, str, str]]:
    """Yield subject, verb and the rest of plain sentences; a pronoun is the title of its page."""
    for start, end in sentence_spans(text):
        found = SENTENCE.match(text[start:end])
        if found is None:
            continue
        subject = found["subject"]
        if subject.split()[0] in PRONOUNS:
            subject = title if subject in ("It", "He", "She") else ""
        if subject:
            opening, rest = subject.split(" ", 1) if " " in subject else (subject, "")
            plain = (
                opening.lower() if opening in ("The", "A", "An", "His", "Her", "Its") else opening
            )
            yield f"{plain} {rest}".strip(), found["verb"], found["rest"]


def ask_all(path: Path, most: int) -> list[Row]:
    """Ask the questions of one knowledge base; keep each yes or no with its signals."""
    rows = []
    with clew.open(path) as kb:
        found = {p.id: p for word in SEEDS for p in kb.search(word).evidence.chunks}
        texts = [(one.title, one.text) for one in found.values()]
        for question, right in make_questions(texts, 7, most):
            answer = kb.ask(question)
            if "close" in answer.signals:
                rows.append(
                    {
                        "set": path.name,
                        "question": question,
                        "right": answer.candidate == right,
                        "signals": {k: answer.signals.get(k, 0.0) for k in (*SIGNALS, *KEPT)},
                    }
                )
    return rows


def main() -> None:
    """Ask, fit on all sets, and say how calibrated each is by a fit on the others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kbs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--most", type=int, default=150)
    given = parser.parse_args()
    rows = [row for path in given.kbs for row in ask_all(path, given.most)]
    for name in dict.fromkeys(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        rest = [row for row in rows if row["set"] != name]
        held = fit(rest or own)
        values, right = [held(row["signals"]) for row in own], [row["right"] for row in own]
        share, error = sum(right) / len(own), measure_calibration_error(values, right)
        print(f"{name}: {len(own)} answered, {share:.2f} right, ECE {error:.3f} by the others")
        print("\n".join(row["question"] for row in own if not row["right"]))
    models = {**load_shipped_models(), "confirmed": fit(rows)}
    given.out.write_text(format_models(models) + "\n", encoding="utf-8")


def fit(rows: list[Row]) -> LogisticModel:
    """Fit the signals from nothing, beside those that keep their weights."""
    kept = {name: load_shipped_models()["computed"].weights[name] for name in KEPT}
    start = LogisticModel({**dict.fromkeys(SIGNALS, 0.0), **kept}, -sum(kept.values()))
    right = [row["right"] for row in rows]
    fitted = fit_logistic([row["signals"] for row in rows], right, start, RIDGE)
    disputed = load_shipped_models()["confirmed"].weights["disputed"]  # too seldom to fit
    return LogisticModel({**fitted.weights, "disputed": disputed}, fitted.bias)


if __name__ == "__main__":
    main()
