"""What `clew add --dry-run` says a build costs, against what the build then costs.

`python -m bench.estimate FOLDER… [--model] [--processor]`. Each folder is estimated and then built,
with the embedder of the settings. With `--model` the stub endpoint of `clew.testing` extracts, with
a latency of its own, and calls and tokens are compared as well. Each figure is given as estimate,
reality and the first over the second. With `--processor` seconds are those of the processor, which
another program that works at the time does not change.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from bench.machine import print_result, require_path
from clew.config import ModelSettings, Price, Settings, load_settings
from clew.engine import KnowledgeBase
from clew.ingest import cost
from clew.llm.factory import create_embedder
from clew.store.sqlite.store import SqliteStore
from clew.testing.stub_endpoint import StubEndpoint

Clock = Callable[[], float]
LATENCY = 0.4  # seconds that the stub takes to answer
PRICE = Price(prompt=1.0, completion=2.0)


def _open(folder: Path, models: ModelSettings) -> KnowledgeBase:
    found = load_settings()
    settings = Settings(kb=folder, models=models)
    embed = create_embedder(found.embed, found.cache)
    return KnowledgeBase(SqliteStore(folder, create=True), settings, embed)


async def _compare(corpus: Path, models: ModelSettings, clock: Clock) -> dict[str, Any]:
    """Estimate and build one folder."""
    with tempfile.TemporaryDirectory() as folder:
        base = _open(Path(folder) / "plan", models)
        began = perf_counter()
        plan = await base.plan([corpus], probe=bool(models.model))
        took = perf_counter() - began
        await base.close()
        base = _open(Path(folder) / "kb", models)
        began = clock()
        added = await base.add([corpus])
        seconds = clock() - began
        await base.close()  # with it goes the log of what was written
        files = [file for file in (Path(folder) / "kb").rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in files)
        real = {"seconds": seconds, "megabytes": size / 1e6}
    said = {"seconds": plan.seconds or 0.0, "megabytes": plan.bytes / 1e6}
    if models.model:
        for name in ("calls", "prompt_tokens", "completion_tokens", "money"):
            said[name], real[name] = getattr(plan, name), getattr(added.usage, name)
    ratios = {name: round(said[name] / real[name], 2) for name in real if real[name]}
    figures = {"said": said, "real": real, "ratio": ratios}
    return {"corpus": corpus.name, "documents": plan.documents, "estimate_took": took} | figures


async def _compare_all(corpora: list[Path], model: bool, clock: Clock) -> list[dict[str, Any]]:
    if not model:
        return [await _compare(corpus, ModelSettings(), clock) for corpus in corpora]
    async with StubEndpoint(latency=LATENCY) as stub:
        models = ModelSettings(model="stub", base_url=stub.base_url, prices={"stub": PRICE})
        return [await _compare(corpus, models, clock) for corpus in corpora]


def main() -> None:
    """Measure every folder and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.estimate", description=__doc__)
    parser.add_argument("corpora", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--processor", action="store_true")
    given = parser.parse_args()
    for corpus in given.corpora:
        require_path(corpus, "FOLDER")
    clock = process_time if given.processor else perf_counter
    cost.perf_counter = clock  # type: ignore[attr-defined]
    rows = asyncio.run(_compare_all(given.corpora, given.model, clock))
    for row in rows:
        print(f"{row['corpus']}: {row['documents']} documents, {row['estimate_took']:.0f} s for it")
        for name, ratio in row["ratio"].items():
            print(f"  {name:18}{row['said'][name]:>12.2f}{row['real'][name]:>12.2f}{ratio:>7.2f}×")
    worst = max(abs(ratio - 1) for row in rows for ratio in row["ratio"].values())
    print(f"largest error: {worst:.0%}")
    print_result("estimate", {"rows": rows, "largest_error": worst}, {"corpora": len(rows)})


if __name__ == "__main__":
    main()
