"""Build, search, change and recall as a knowledge base grows, over a synthetic world.

`python -m bench.scale --passages N [--kb DIR] [--build-only] [--recipe R,R…] [--questions N]
[--exact N] [--seconds S] [--memory 2GB]`. The folder is built in steps and can be continued by
running the command again: `--seconds` ends a run early. `--exact N` compares with the exact results
of N questions only, which take most of the time where there are a million passages. `--memory`
bounds what the build and the changes use. With `--recipe ""` only opening and changes are measured.
Texts are embedded by one random vector per word, which costs next to nothing, so that what is
measured is the rest. Times are of the processor unless they say "wall"; on a shared machine set
OPENBLAS_NUM_THREADS=1, or waiting threads are counted, too.
"""

import argparse
import asyncio
import importlib
import json
import resource
import shutil
from collections.abc import AsyncIterator, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from bench.machine import percentiles_ms, print_result
from bench.scale_corpus import WorldQuestion, make_passages, make_world_questions, passage_name
from clew.config import IndexSettings, Settings
from clew.engine import KnowledgeBase, open_store
from clew.llm.embed import EmbedRole, Vectors
from clew.text.unicode import hash64, split_words
from clew.types import Document

STEP = 10_000  # passages added by one write
DIMENSIONS = 384
QUESTIONS = 60
RECIPES = ("naive", "bm25", "clew", "hipporag2", "lightrag", "graph-r1")
CACHE = Path.home() / ".cache/clew/bench"


class WordVectors:
    """Embeds a text as the sum of one random vector per word."""

    name = "word-vectors"
    dim = DIMENSIONS

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Return unit vectors."""
        if role == "query":
            return np.stack([_query_vector(text) for text in texts])
        return np.stack([_text_vector(text) for text in texts])


def _text_vector(text: str) -> Any:
    words = split_words(text) or [text]  # signs alone are one word
    found = sum((_word_vector(word) for word in words), np.zeros(DIMENSIONS))
    return (found / max(float(np.linalg.norm(found)), 1e-9)).astype(np.float32)


_query_vector = cache(_text_vector)  # a question is asked several times


@cache
def _word_vector(word: str) -> Any:
    return np.random.default_rng(hash64(word)).standard_normal(DIMENSIONS).astype(np.float32)


async def stream_documents(documents: Sequence[Document]) -> AsyncIterator[Document]:
    """Yield documents as a reader does."""
    for document in documents:
        yield document


async def open_base(
    folder: Path, *, exact: bool = False, memory: str | None = None
) -> KnowledgeBase:
    """Open the folder with the word vectors."""
    index = IndexSettings(exact=exact)
    given = {"kb": folder, "extractor": "offline", "index": index, "memory": memory}
    settings = Settings.model_validate(given)
    return KnowledgeBase(await open_store(settings, create=True), settings, WordVectors())


def processor_seconds() -> float:
    """Processor time of this process and of children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + used.ru_utime + used.ru_stime


async def build(folder: Path, passages: int, seconds: float, memory: str | None) -> bool:
    """Add passages until there are enough; False if the time was up before."""
    began = perf_counter()
    base = await open_base(folder, memory=memory)
    have = (await base.store.counts()).documents
    while have < passages:
        if perf_counter() - began > seconds:
            return False
        used, count = processor_seconds(), min(STEP, passages - have)
        await base.take(stream_documents(list(make_passages(count, have))))
        have += count
        milliseconds = 1000 * (processor_seconds() - used) / count
        note_step(folder, have, milliseconds)
    await base.close()
    return True


def steps_file(folder: Path) -> Path:
    """Where the time and memory of each step of a build are noted, over several runs."""
    return folder.with_name(folder.name + ".steps.jsonl")


def note_step(folder: Path, have: int, milliseconds: float) -> None:
    """Note and print what one step of the build took; memory is that of this run."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own, child = (round(one.ru_maxrss / 1e6, 2) for one in usage)
    step = {"passages": have, "ms each": round(milliseconds, 2), "GB": own, "GB of a child": child}
    with steps_file(folder).open("a", encoding="utf-8") as file:
        file.write(json.dumps(step) + "\n")
    print(step, flush=True)


def summarize_build(folder: Path) -> dict[str, float]:
    """Time of the last step beside the first, and the most memory of any."""
    if not steps_file(folder).exists():
        return {}
    steps = [json.loads(line) for line in steps_file(folder).read_text("utf-8").splitlines()]
    first, last = steps[0]["ms each"], steps[-1]["ms each"]
    return {
        "ms each, first step": first,
        "ms each, last step": last,
        "last / first": round(last / first, 2),
        "peak GB": max(step["GB"] for step in steps),
        "peak GB of a child": max(step["GB of a child"] for step in steps),
    }


async def measure_first_search(folder: Path, recipe: str) -> dict[str, float]:
    """Time to open the folder and to search once, in a process that knows words and recipes."""
    question = "In which town was Ada Lindberg born?"
    await WordVectors()([question], role="query")
    importlib.import_module("clew.recipes.configure")
    began, used = perf_counter(), process_time()
    base = await open_base(folder)
    opened = perf_counter()
    await base.search(question, recipe=recipe)
    found = {
        "open ms (wall)": opened - began,
        "first ms (wall)": perf_counter() - opened,
        "open and first ms": process_time() - used,
    }
    await base.close()
    return {name: round(1000 * value, 1) for name, value in found.items()}


async def measure_search(
    base: KnowledgeBase, recipe: str, questions: Sequence[WorldQuestion]
) -> tuple[dict[str, Any], list[list[str]]]:
    """Time per question without embedding, and the share of gold passages among the best ten."""
    for question in questions:
        await base.search(question.text, recipe=recipe)
    times, recalls, ranked = [], [], []
    for question in questions:
        began = process_time()
        results = await base.search(question.text, recipe=recipe)
        times.append(process_time() - began)
        docs = [chunk.doc for chunk in results.evidence.chunks]
        recalls.append(np.mean([name in docs for name in question.gold]))
        ranked.append(docs)
    return percentiles_ms(times) | {"@10": round(float(np.mean(recalls)), 3)}, ranked


def _compare(found: Sequence[Sequence[str]], exact: Sequence[Sequence[str]]) -> float:
    """Share of the exact results that were found, too."""
    shares = [len({*a} & {*b}) / max(1, len(b)) for a, b in zip(found, exact, strict=True)]
    return round(float(np.mean(shares)), 3)


async def measure_changes(
    folder: Path, passages: int, recipes: Sequence[str], memory: str | None
) -> dict[str, Any]:
    """Add ten passages and remove one, each as one write to a copy of the folder.

    After the second write the first search with each recipe is timed, too.
    """
    copy = folder.with_name(folder.name + ".copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    base = await open_base(copy, memory=memory)
    found: dict[str, Any] = {}
    for what in ("add ten", "add ten again", "remove one"):
        wall, used = perf_counter(), processor_seconds()
        if what == "remove one":
            await base.remove([passage_name(passages // 2)])
        else:
            first = passages + 10 * (what == "add ten again")
            await base.take(stream_documents(list(make_passages(10, first))))
        found[f"{what} s"] = round(processor_seconds() - used, 2)
        found[f"{what} s (wall)"] = round(perf_counter() - wall, 2)
        for recipe in recipes if what == "add ten again" else ():
            used = process_time()
            await base.search("In which town was Ada Lindberg born?", recipe=recipe)
            found[f"then {recipe} s"] = round(process_time() - used, 2)
    await base.close()
    shutil.rmtree(copy)
    return found


async def measure(
    folder: Path,
    questions: Sequence[WorldQuestion],
    recipes: Sequence[str],
    *,
    change: bool,
    exact_questions: int,
    memory: str | None,
) -> None:
    """Print everything about a folder that is built."""
    figures: dict[str, Any] = {"build": summarize_build(folder)}
    print("build", figures["build"], flush=True)
    for recipe in dict.fromkeys(("naive", *recipes)):
        ever = await measure_first_search(folder, recipe)  # may make what is kept for later ones
        again = await measure_first_search(folder, recipe)
        figures[f"open, {recipe}"] = again | {"first ever ms": ever["open and first ms"]}
        print("open and first search", recipe, figures[f"open, {recipe}"], flush=True)
    bases = [await open_base(folder), await open_base(folder, exact=True)]
    for recipe in recipes:
        near, near_ranked = await measure_search(bases[0], recipe, questions)
        some = questions[:exact_questions]
        if some:
            exact, exact_ranked = await measure_search(bases[1], recipe, some)
            near["of exact"] = _compare(near_ranked[: len(some)], exact_ranked)
            near |= {f"exact {name}": value for name, value in exact.items()}
        figures[recipe] = near
        print(recipe, figures[recipe], flush=True)
    if change:
        held = (await bases[0].store.counts()).documents
        figures["changes"] = await measure_changes(folder, held, recipes, memory)
        print("changes", figures["changes"], flush=True)
    counts = await bases[0].store.counts()
    print_result(
        "scale",
        figures,
        {"passages": counts.documents, "facts": counts.facts, "MB": counts.bytes / 1e6},
    )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=10_000)
    parser.add_argument("--kb", type=Path)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--exact", type=int, default=QUESTIONS)
    parser.add_argument("--recipe", default=",".join(RECIPES))
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--memory", help="what a write may use, as 2GB")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--no-changes", action="store_true")
    given = parser.parse_args()
    folder = given.kb or CACHE / f"world-{given.passages}"
    built = asyncio.run(build(folder, given.passages, given.seconds, given.memory))
    if not built:
        print("not finished: run the same command again")
    elif not given.build_only:
        recipes = given.recipe.split(",") if given.recipe else []
        questions = list(make_world_questions(given.questions, given.passages))
        how = {
            "change": not given.no_changes,
            "exact_questions": given.exact,
            "memory": given.memory,
        }
        asyncio.run(measure(folder, questions, recipes, **how))


if __name__ == "__main__":
    main()
