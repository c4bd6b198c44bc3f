"""Runs a driver on one job in the package's environment, with a time limit."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers.installing import PeerEnvironment
from bench.peers.roster import PeerPackage

_DRIVERS = Path(__file__).parent / "drivers"
_LOG_TAIL = 400  # characters of a failed driver's log


@dataclass(frozen=True)
class PeerBench:
    """Options shared by all jobs of one run."""

    scratch: Path
    base_url: str
    token_tables: Path
    limit: float = 900.0
    model: str = "gpt-4o-mini"
    embed_model: str = "text-embedding-3-small"
    api_key: str = ""
    dim: int = 384
    top: int = 20
    at_once: int = 32
    usage_url: str = ""
    """URL of the endpoint's usage totals, if any."""

    def run(
        self, peer: PeerPackage, home: PeerEnvironment, action: str, **more: Any
    ) -> dict[str, Any]:
        """Run one action; errors are returned as `fault`."""
        folder = self.scratch / peer.package
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: folder / f"{action}.{name}" for name in ("job", "result", "log")}
        files["result"].unlink(missing_ok=True)
        fields = {
            **{"action": action, "package": peer.package, "folder": str(folder / "state")},
            **{"base_url": self.base_url, "model": self.model, "api_key": self.api_key},
            **{"embed_model": self.embed_model, "dim": self.dim, "at_once": self.at_once},
            **{"usage_url": self.usage_url},
            **{"top": self.top, "result_file": str(files["result"])},
            **{"records_file": str(folder / "records.jsonl"), **more},
        }
        files["job"].write_text(json.dumps(fields, default=str), encoding="utf-8")
        (folder / "state").mkdir(exist_ok=True)
        words = [str(home.python), str(_DRIVERS / peer.driver), str(files["job"])]
        environment = {
            **os.environ,
            "TIKTOKEN_CACHE_DIR": str(self.token_tables),
            "TQDM_DISABLE": "1",
        }
        with files["log"].open("wb") as log:
            driver = subprocess.Popen(
                words, stdout=log, stderr=subprocess.STDOUT, cwd=folder, env=environment
            )
            try:
                code = driver.wait(self.limit)
            except subprocess.TimeoutExpired:
                driver.kill()
                driver.wait()
                return {"fault": f"not done in {self.limit:g} s"}
        if code or not files["result"].exists():
            log_text = files["log"].read_text(encoding="utf-8", errors="replace").strip()
            return {"fault": f"exit {code}: {log_text[-_LOG_TAIL:]}"}
        found: dict[str, Any] = json.loads(files["result"].read_text(encoding="utf-8"))
        return found


@contextmanager
def run_endpoint(*options: str) -> Iterator[str]:
    """Run the shared endpoint in its own process; yields its base URL."""
    words = [sys.executable, "-m", "bench.peers.endpoint", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            if not url:
                raise SystemExit("the endpoint did not start; its output is above")
            yield url
        finally:
            process.terminate()


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> str:
    """Write rows as JSON lines; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)
