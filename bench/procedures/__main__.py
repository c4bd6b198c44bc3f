"""Are the steps quoted that a question wants, and none where no page has them?

`python -m bench.procedures [--split dev|test] [--show]`, without a model. Reported per kind of
question: the procedure that is wanted is quoted first and whole (right), another one is, something
else is said; each told (confidence of at least .5) or not. `test` is for reporting only. `--fit`
asks the questions of `dev` that want steps and stores what makes their confidence.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from unittest.mock import patch

import clew
import clew.agents.core.confidence
from bench.machine import print_result
from bench.procedures.pages import Page, ProcedureQuestion, read_pages
from clew.agents.answering.steps import MODEL
from clew.agents.core.confidence import fit_logistic, format_models, load_shipped_models
from clew.agents.base import Answer

TOLD = 0.5
RIDGE = 0.02  # pull of the weights towards 0


def fill(folder: Path, pages: list[Page]) -> Path:
    """Make one knowledge base of all pages."""
    files = folder / "files"
    files.mkdir()
    for number, page in enumerate(pages):
        (files / f"page{number:02}.md").write_text(page.text, encoding="utf-8")
    with clew.open(folder / "kb") as base:
        base.add([files])
    return folder / "kb"


def judge(asked: ProcedureQuestion, answer: Answer, pages: list[Page]) -> str:
    """Return what became of a question."""
    told = "told" if answer.answer and answer.confidence >= TOLD else "not told"
    first = answer.citations[0].quote if answer.citations else ""
    if asked.kind == "short":
        right = asked.value.casefold() in (answer.candidate or first).casefold()
        long = not answer.candidate and any(_has_all(first, one) for one in _all_items(pages))
        return f"{'steps' if long else 'right' if right else 'wrong'}, {told}"
    other = any(_has_all(first, one) for one in _all_items(pages) if one != asked.items)
    if asked.items and _has_all(first, asked.items) and not (answer.candidate or other):
        return f"right, {told}"
    return f"{'other steps' if other else 'named' if answer.candidate else 'else'}, {told}"


def _all_items(pages: list[Page]) -> list[tuple[str, ...]]:
    return [items for page in pages for items in page.procedures.values()]


def _has_all(text: str, items: tuple[str, ...]) -> bool:
    """Whether a text has all items in order."""
    at = 0
    for item in items:
        at = text.find(item, at)
        if at < 0:
            return False
    return True


def ask_all(
    pages: list[Page], kinds: tuple[str, ...]
) -> Iterator[tuple[ProcedureQuestion, Answer, float]]:
    """Yield each question of some kinds with its answer and its processor time in ms."""
    with tempfile.TemporaryDirectory() as made, clew.open(fill(Path(made), pages)) as base:
        base.ask("How is it done?")  # loads what is needed
        for one in (question for page in pages for question in page.questions):
            if one.kind in kinds:
                began = process_time()
                answer = base.ask(one.question)
                yield one, answer, 1000 * (process_time() - began)


def fit() -> None:
    """Fit the confidence of quoted steps on `dev`, and store it."""
    pages = read_pages("dev")
    rows, right = [], []
    with patch("clew.agents.answering.steps.LEAST", 0.0):
        for one, answer, _ in ask_all(pages, ("steps", "none")):
            if answer.kind == "steps":
                rows.append(answer.signals)
                right.append(judge(one, answer, pages).startswith("right"))
    model = fit_logistic(rows, right, ridge=RIDGE)
    stored = Path(clew.agents.core.confidence.__file__).with_name("confidence.json")
    models = {**load_shipped_models(), MODEL: model}
    stored.write_text(format_models(models) + "\n", encoding="utf-8")
    sizes = {"quoted": len(rows), "right": sum(right)}
    print_result("procedures", {"bias": model.bias, **model.weights}, sizes)


def main() -> None:
    """Ask, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--show", action="store_true", help="print every question")
    parser.add_argument("--fit", action="store_true", help="store the confidence")
    given = parser.parse_args()
    if given.fit:
        fit()
        return
    pages = read_pages(given.split)
    counts: dict[str, Counter[str]] = {"steps": Counter(), "none": Counter(), "short": Counter()}
    spent = []
    for one, answer, ms in ask_all(pages, tuple(counts)):
        spent.append(ms)
        became = judge(one, answer, pages)
        counts[one.kind][became] += 1
        if given.show:
            said = answer.answer[:90].replace("\n", " ")
            print(f"{one.kind} [{became}] {one.question} | {said} {answer.confidence}", flush=True)
    figures = {kind: dict(sorted(one.items())) for kind, one in counts.items()}
    for kind, outcomes in figures.items():
        print(f"{kind:6} {outcomes}")
    ms = round(sum(spent) / len(spent))
    print_result("procedures", {**figures, "ms": ms}, {"asked": len(spent)})


if __name__ == "__main__":
    main()
