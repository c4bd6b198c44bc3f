"""Startup cost: installing, importing, opening a knowledge base.

`python -m bench.start [--kb DIR] [--install]`; `--install` makes a fresh environment (slow).
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.machine import print_result

ROUNDS = 5
OPEN = """
import asyncio, sys, time
from pathlib import Path
from clew.config import Settings
from clew.engine import KnowledgeBase
began = time.perf_counter()
async def main():
    base = await KnowledgeBase.open(Settings(kb=Path(sys.argv[1])), embed=False)
    async with base.store.snapshot() as now:
        await base._current(now)
    print(time.perf_counter() - began)
asyncio.run(main())
"""
IMPORT = "import time; began = time.perf_counter(); import clew; print(time.perf_counter() - began)"
IMPORT_API = IMPORT.replace("import clew;", "import clew.api;")


def _median_seconds(code: str, *words: str) -> float:
    took = []
    for _ in range(ROUNDS):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )
        took.append(float(done.stdout))
    return round(median(took), 4)


def _installed_megabytes() -> float:
    """Return the size of the core install in a new environment, without pip."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip"]
        site = next(Path(folder).glob("lib/python*/site-packages"))
        before = _folder_bytes(site)
        subprocess.run([*pip, "install", "--quiet", "."], check=True)
        return round((_folder_bytes(site) - before) / 1e6, 1)


def _folder_bytes(folder: Path) -> int:
    return sum(
        os.lstat(os.path.join(at, name)).st_size
        for at, _, names in os.walk(folder)
        for name in names
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.start", description=__doc__)
    parser.add_argument("--kb", type=Path)
    parser.add_argument("--install", action="store_true")
    given = parser.parse_args()
    figures = {
        "import_clew_s": _median_seconds(IMPORT),
        "import_engine_s": _median_seconds(IMPORT_API),
    }
    if given.kb:
        figures["open_s"] = _median_seconds(OPEN, str(given.kb))
    if given.install:
        figures["core_install_mb"] = _installed_megabytes()
    for name, value in figures.items():
        print(f"{name:>18}  {value}")
    print_result("start", figures, {"kb": str(given.kb or "")})


if __name__ == "__main__":
    main()
