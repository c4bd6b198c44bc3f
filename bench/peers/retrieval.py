"""Retrieval results of each package for every question of a dataset, as JSON lines."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers.endpoint import passage_text
from bench.peers.installing import ensure_environment
from bench.peers.roster import PEERS
from bench.peers.running import PeerBench, write_jsonl
from clew.evaluate.datasets import load_dataset


def collect_records(
    bench: PeerBench, folder: Path, names: Sequence[str], limit: int, cache: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return one row per package, method and question, and one summary per package."""
    dataset = load_dataset(folder)
    if dataset.corpus is None:
        raise SystemExit(f"{folder} has no corpus.jsonl: there is nothing to build from")
    asked = dataset.questions[:limit] if limit else dataset.questions
    files = {
        "documents_file": write_jsonl(bench.scratch / "corpus.jsonl", _read_corpus(dataset.corpus)),
        "questions_file": write_jsonl(
            bench.scratch / "questions.jsonl",
            [{"id": one.id, "question": one.text} for one in asked],
        ),
    }
    rows: list[dict[str, Any]] = []
    summaries = []
    for name in names:
        peer, home = PEERS[name], ensure_environment(PEERS[name], cache)
        summary: dict[str, Any] = {"package": name, "version": home.version}
        if home.fault:
            summaries.append(summary | {"fault": f"cannot be installed: {home.fault}"})
            continue
        # A finished build is reused: the scratch folder may be kept.
        result_file = bench.scratch / name / "build.result"
        built = (
            json.loads(result_file.read_text())
            if result_file.exists()
            else bench.run(peer, home, "build", **files)
        )
        if "fault" in built:
            summaries.append(summary | {"fault": built["fault"]})
            continue
        output = bench.scratch / name / "records.jsonl"
        output.unlink(missing_ok=True)
        found = bench.run(peer, home, "query", methods=peer.methods, **files)
        summaries.append(summary | {"build_s": built["work_s"], "ask": found.get("methods", found)})
        if output.exists():
            rows += [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    return rows, summaries


def _read_corpus(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        read = [json.loads(line) for line in file if line.strip()]
    return [
        {"id": str(row.get("id", number)), "text": passage_text(row)}
        for number, row in enumerate(read)
    ]
