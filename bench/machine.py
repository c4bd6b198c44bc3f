"""The closing JSON object of every benchmark: figures, machine and sizes."""

import importlib
import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np


def require_path(path: Path, option: str) -> Path:
    """Return the path, or exit with a message: datasets are not part of the repository."""
    if not path.exists():
        raise SystemExit(f"{path} is not there; name where the data lies with {option}")
    return path


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines; a missing file has none."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def load_library(module: str, package: str = "") -> Any:
    """Import a library that only a benchmark needs, or exit with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SystemExit(
            f"this benchmark needs {module}: run `pip install {package or module}`"
        ) from error


def print_result(name: str, figures: dict[str, Any], sizes: dict[str, Any]) -> None:
    """Print the closing JSON object."""
    machine = {
        "cpus": os.cpu_count(),
        "arch": platform.machine(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }
    closing = {"bench": name, "figures": figures, "machine": machine, "sizes": sizes}
    print(json.dumps(closing, default=float))


def percentiles_ms(seconds: list[float]) -> dict[str, float]:
    """Return p50 and p95 in milliseconds."""
    return {
        "p50_ms": round(float(np.percentile(seconds, 50)) * 1000, 2),
        "p95_ms": round(float(np.percentile(seconds, 95)) * 1000, 2),
    }
