"""Speed of build, add ten, delete one and query, per package on the same synthetic corpus."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.corpus import make_documents, make_questions
from bench.peers.installing import PeerEnvironment, ensure_environment
from bench.peers.roster import CLEW, PEERS, PeerPackage
from bench.peers.running import PeerBench, write_jsonl
from clew.recipes.registry import RECIPES

ADD_SIZE = 10
_SMALL_SIZE = 200  # passages for a package that does not finish the requested size


def measure_packages(
    bench: PeerBench, size: int, asked: int, names: Sequence[str], cache: Path
) -> list[Any]:
    """Measure every package; Clew first and last, since the machine's load may change."""
    files = _write_files(bench.scratch, size, asked)
    clew = replace(CLEW, methods=_matching_recipes(names))
    environment = PeerEnvironment(Path(sys.executable), "this tree")
    rows = [_measure_package(bench, clew, environment, size, files)]
    for name in names:
        peer = PEERS[name]
        installed = ensure_environment(peer, cache)
        if installed.fault:
            rows.append({"package": name, "fault": f"cannot be installed: {installed.fault}"})
            continue
        row = _measure_package(bench, peer, installed, size, files)
        if "fault" in row and size > _SMALL_SIZE:
            small = _measure_package(
                bench, peer, installed, _SMALL_SIZE, _write_files(bench.scratch, _SMALL_SIZE, asked)
            )
            row |= {"smaller": small}
        rows.append(row)
        _print_row(row)
    again = _measure_package(
        replace(bench, scratch=bench.scratch / "again"), clew, environment, size, files
    )
    rows.append(again | {"package": "clew, again"})
    return rows


def _matching_recipes(names: Sequence[str]) -> tuple[str, ...]:
    """Return Clew's matching recipes; missing ones are reported."""
    wanted = dict.fromkeys(["clew", *(one for name in names for one in PEERS[name].recipes)])
    missing = [name for name in wanted if name not in RECIPES]
    if missing:
        print(f"recipes that Clew does not have, left out: {', '.join(missing)}")
    return tuple(name for name in wanted if name in RECIPES)


def _write_files(scratch: Path, size: int, asked: int) -> dict[str, str]:
    many = [{"id": d.names[0], "text": d.text} for d in make_documents(size + ADD_SIZE)]
    return {
        "all": write_jsonl(scratch / f"all-{size}.jsonl", many[:size]),
        "ten": write_jsonl(scratch / f"ten-{size}.jsonl", many[size:]),
        "ask": write_jsonl(
            scratch / "ask.jsonl",
            [{"id": at, "question": text} for at, text in enumerate(make_questions(asked))],
        ),
    }


def _measure_package(
    bench: PeerBench, peer: PeerPackage, home: PeerEnvironment, size: int, files: dict[str, str]
) -> dict[str, Any]:
    """Measure one package."""
    bench_at_size = replace(bench, scratch=bench.scratch / str(size))
    row: dict[str, Any] = {"package": peer.package, "version": home.version, "passages": size}
    row["load"] = round(os.getloadavg()[0], 2)
    built = bench_at_size.run(peer, home, "build", documents_file=files["all"])
    if "fault" in built:
        return row | {"fault": built["fault"]}
    row |= {
        "build_s": built["work_s"],
        "build_cpu_s": built["work_cpu_s"],
        "peak_mb": built["peak_mb"],
        "import_s": built["import_s"],
    }
    asked = bench_at_size.run(
        *(peer, home, "query"),
        documents_file=files["all"],
        questions_file=files["ask"],
        methods=peer.methods,
    )
    row["ask"] = asked.get("methods", asked)
    added = bench_at_size.run(peer, home, "add", documents_file=files["ten"])
    row["add_10_s"], row["add_10_cpu_s"] = added.get("work_s"), added.get("work_cpu_s")
    deleted = bench_at_size.run(
        peer, home, "delete", documents_file=files["all"], delete=f"passage-{size // 2}"
    )
    row["delete_1_s"] = deleted.get("work_s", deleted.get("status", deleted.get("fault")))
    return row


def _print_row(row: dict[str, Any]) -> None:
    print(f"… {row['package']}: {row.get('build_s', row.get('fault'))}", flush=True)


def format_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Format the rows as a table."""
    lines = [
        f"{'package':<16}{'version':<11}{'passages':>8}{'build s':>9}{'cpu s':>8}{'peak MB':>9}"
        f"{'add 10 s':>10}{'delete 1 s':>15}  query p50, ms (processor)"
    ]
    for row in [*rows, *(row["smaller"] for row in rows if "smaller" in row)]:
        if "build_s" not in row:
            lines.append(f"{row['package']:<16}{row.get('version', ''):<11}{row['fault'][:300]}")
            continue
        asks = row["ask"]
        queries = "  ".join(
            f"{name} {one['p50_ms']:.0f} ({one['cpu_p50_ms']:.0f})"
            if "p50_ms" in one
            else f"{name}: {one['fault'][:60]}"
            for name, one in asks.items()
            if isinstance(one, dict)
        )
        lines.append(
            f"{row['package']:<16}{row['version']:<11}{row['passages']:>8}{row['build_s']:>9.2f}"
            f"{row['build_cpu_s']:>8.2f}{row['peak_mb']:>9}{row['add_10_s'] or 0:>10.2f}"
            f"{row['delete_1_s']!s:>15}  {queries or asks}"
        )
    return lines


def time_ratios(rows: Sequence[dict[str, Any]], of: str = "build_s") -> dict[str, float]:
    """Return each package's build time relative to Clew's slower run."""
    ours = max((row[of] for row in rows if row["package"].startswith("clew")), default=0.0)
    return {
        row["package"]: round(row[of] / ours, 2)
        for row in rows
        if of in row and not row["package"].startswith("clew") and ours
    }
