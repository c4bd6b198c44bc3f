"""Questions over real documents: is the answering span found, quoted, and named?

`python -m bench.documents --corpus NAME|all --split dev|held [--recipe R,R] [--kb-root DIR]
[--subset PAGES] [--mode open|reject] [--misses]`. The files come from Debian packages; when they
are missing, the command that installs them is printed. A knowledge base of each corpus is built
once under `--kb-root`, and again with `--rebuild`. Without a model unless one is configured.

Reported by corpus and by kind of question: the share with the gold span in the text that was
read from the file (read), in the first five passages (found) and in a quote or the named answer
(quoted), with a wrong answer named (wrong headline), refused, the share of unanswerable questions
refused, the share of a list's items that the answer has (items), and processor time. The held half
is for reporting only.
"""

import argparse
import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, get_args

from bench.documents.corpora import CORPORA, PACKAGE_FILES, PAGES, copy_files, select_files
from bench.documents.scoring import (
    DocumentQuestion,
    Score,
    compare_twins,
    is_read,
    load_questions,
    score_answer,
    squeeze,
    strip_labels,
    summarize,
)
from bench.machine import print_result
from clew.agents.base import Mode
from clew.config import Settings
from clew.engine import KnowledgeBase

QUESTIONS = Path(__file__).parent / "questions"
DEPTH = 5  # passages in which the gold span is looked for
COLUMNS = (
    "read",
    "found",
    "quoted",
    "wrong headline",
    "refused",
    "unanswerable refused",
    "items",
    "ms",
    "n",
)


async def build_corpus(name: str, given: argparse.Namespace) -> KnowledgeBase:
    """Open the knowledge base of a corpus; build it if it, or the choice of files, is new."""
    everything = load_questions(QUESTIONS, name)
    gold = [question.file for question in everything if question.file]
    files = select_files(CORPORA[name], gold, given.files, given.subset)
    folder, place = given.kb_root / "docs-files" / name, given.kb_root / f"docs-{name}"
    changed = copy_files(files, folder, given.files)
    if place.exists() and (changed or given.rebuild):
        shutil.rmtree(place)
    new = not place.exists()
    kb = await KnowledgeBase.open(Settings(kb=place), create=True)
    if new:
        began, busy = perf_counter(), process_time()
        added = await kb.add([folder])
        spent = f"{process_time() - busy:.0f} s of processor, {perf_counter() - began:.0f} s"
        print(f"{name}: {added.added} documents, {spent}", flush=True)
        for skipped in added.skipped:
            print(f"  skipped: {skipped}")
    return kb


async def find_unread(kb: KnowledgeBase, asked: Sequence[DocumentQuestion]) -> set[str]:
    """Return the questions whose gold span the reader lost: nothing after it can find them."""
    sources = await kb.store.sources()
    async with kb.store.snapshot() as snapshot:
        documents = await snapshot.documents([source.document for source in sources.values()])
    texts: dict[str, str] = {}
    for file in {question.file.removesuffix(".gz") for question in asked if question.file}:
        ids = {source.document for name, source in sources.items() if file in name}
        text = "\n".join(documents[one].text for one in sorted(ids))
        texts[file] = f"{squeeze(text)} {squeeze(strip_labels(text))}"
    return {
        question.id
        for question in asked
        if question.file and not is_read(question, texts[question.file.removesuffix(".gz")])
    }


async def ask_question(
    kb: KnowledgeBase, question: DocumentQuestion, recipe: str, mode: Mode, *, read: bool = True
) -> Score:
    """Search and ask once; the time is that of asking."""
    found = await kb.search(question.question, recipe=recipe, k=DEPTH)
    began = process_time()
    answer = await kb.ask(question.question, recipe=recipe, mode=mode)
    spent = 1000 * (process_time() - began)
    return score_answer(question, found.evidence.chunks, answer, spent, read)


async def measure_recipe(
    kb: KnowledgeBase, asked: Sequence[DocumentQuestion], recipe: str, mode: Mode
) -> list[Score]:
    """Ask all questions; the first is asked before, so that loading is not counted."""
    await ask_question(kb, asked[0], recipe, mode)
    unread = await find_unread(kb, asked)
    return [await ask_question(kb, q, recipe, mode, read=q.id not in unread) for q in asked]


def format_table(rows: dict[str, dict[str, Any]]) -> str:
    """Format measures, a line each."""
    lines = [f"  {'':26}" + "".join(f"{column:>21}" for column in COLUMNS)]
    for name, row in rows.items():
        cells = "".join(f"{row.get(column, '–'):>21}" for column in COLUMNS)
        lines.append(f"  {name:26}{cells}")
    return "\n".join(lines)


def report_recipe(scores: Sequence[Score]) -> dict[str, Any]:
    """Measures of all questions, by corpus and by kind, and of the twins."""
    corpora = dict.fromkeys(score.question.corpus for score in scores)
    kinds = sorted({score.question.kind for score in scores})
    return {
        "all": summarize(scores),
        "corpora": {n: summarize(s for s in scores if s.question.corpus == n) for n in corpora},
        "kinds": {k: summarize(s for s in scores if s.question.kind == k) for k in kinds},
        "twins": compare_twins(scores),
    }


def print_report(recipe: str, report: dict[str, Any]) -> None:
    """Print the tables of one recipe."""
    print(f"\n{recipe}")
    print(format_table({**report["corpora"], **report["kinds"], "all": report["all"]}))
    twins = report["twins"]
    pairs = {"twins, original": twins["original"], "twins, reworded": twins["reworded"]}
    print(format_table(pairs), f"\n  quoted alike in both wordings: {twins['same']}", flush=True)


def print_misses(recipe: str, scores: Sequence[Score]) -> None:
    """Print what went wrong, to read; never for the held half."""
    for score in scores:
        question = score.question
        marks = [name for name in ("read", "found", "quoted") if getattr(score, name) is False]
        marks += ["wrong headline"] if score.wrong_headline else []
        if marks:
            print(f"{recipe} {question.id} {question.kind}: {', '.join(marks)}")
            print(f"   {question.question}\n   gold: {question.quote}\n   named: {score.headline}")
            print("   said: " + score.answer.replace("\n", "\n         "))


async def main() -> None:
    """Parse the arguments, build what is missing, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.documents", description=__doc__)
    parser.add_argument("--corpus", default="all", help=f"all, or {', '.join(CORPORA)}")
    parser.add_argument("--split", choices=["dev", "held"], default="dev")
    parser.add_argument("--recipe", default="clew", help="names of recipes, with commas")
    parser.add_argument("--mode", choices=get_args(Mode), default="open")
    parser.add_argument("--kb-root", type=Path, default=Path(".bench/documents"))
    parser.add_argument("--files", type=Path, default=PACKAGE_FILES, help="where packages install")
    parser.add_argument("--subset", type=int, default=PAGES, help="files of a corpus")
    parser.add_argument("--rebuild", action="store_true", help="build the knowledge bases again")
    parser.add_argument("--misses", action="store_true", help="list what went wrong (dev only)")
    given = parser.parse_args()
    names = list(CORPORA) if given.corpus == "all" else given.corpus.split(",")
    recipes = given.recipe.split(",")
    scores: dict[str, list[Score]] = {recipe: [] for recipe in recipes}
    for name in names:
        kb = await build_corpus(name, given)
        try:
            everything = load_questions(QUESTIONS, name)
            asked = [question for question in everything if question.split == given.split]
            for recipe in recipes:
                scores[recipe] += await measure_recipe(kb, asked, recipe, given.mode)
        finally:
            await kb.close()
    reports = {recipe: report_recipe(some) for recipe, some in scores.items()}
    for recipe, report in reports.items():
        print_report(recipe, report)
        if given.misses and given.split == "dev":
            print_misses(recipe, scores[recipe])
    print_result("documents", reports, {"split": given.split, "mode": given.mode})


if __name__ == "__main__":
    asyncio.run(main())
