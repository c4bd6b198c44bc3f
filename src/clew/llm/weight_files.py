"""Hashing, atomic writing and 8-bit quantisation of weight files."""

import hashlib
import importlib
import importlib.util
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clew.version import pip_install_command

QUANTISATION_VERSION = "r1"  # a change of the quantisation must change the embedder's name too


def cached_sha256(path: Path, cache: Path) -> str:
    """Hash a file; cached while its size and modification time are unchanged."""
    cache_file = cache / "sha256.json"
    state = path.stat()
    signature = [state.st_size, state.st_mtime_ns]
    hashes = _read_hash_cache(cache_file)
    entry = hashes.get(str(path.resolve()))
    if isinstance(entry, list) and entry[:2] == signature and isinstance(entry[-1], str):
        return entry[-1]
    digest = hash_file(path)
    hashes[str(path.resolve())] = [*signature, digest]
    with suppress(OSError), atomic_write(cache_file) as unfinished:  # only a cache: may be absent
        unfinished.write_text(json.dumps(hashes), "utf-8")
    return digest


def hash_file(path: Path) -> str:
    """Hash a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_hash_cache(cache_file: Path) -> dict[str, object]:
    try:
        hashes = json.loads(cache_file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return hashes if isinstance(hashes, dict) else {}


def quantise(model: Path, small: Path, cache: Path) -> str:
    """Create the quantised file `small` if missing; return why it failed, or ""."""
    if small.is_file() and _is_unchanged(small, cache):
        return ""
    if not is_installed("onnx"):
        return f"fp32, because the package onnx is missing: run `{pip_install_command('local')}`"
    not_onnx = importlib.import_module("google.protobuf.message").Error  # onnx depends on it
    try:
        with atomic_write(small) as unfinished:
            _write_quantised(model, unfinished)
        _write_checksum(small, cache)
    except (OSError, RuntimeError, ValueError, ImportError, not_onnx) as error:
        return f"fp32, because the 8-bit file could not be made ({describe_error(error)})"
    return ""


def _write_quantised(model: Path, small: Path) -> None:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load(str(model))
    # Without this mark the quantiser warns through the root logger and thereby configures it.
    mark = graph.metadata_props.add()
    mark.key, mark.value = "onnx.quant.pre_process", "onnxruntime.quant"
    # Given a path instead of the graph, the quantiser would write next to the installed model.
    quantize_dynamic(
        graph,
        str(small),
        weight_type=QuantType.QInt8,
        per_channel=True,
        # 7 bits keep the 16-bit sums of x86 CPUs without VNNI from overflowing.
        reduce_range=True,
    )


def _write_checksum(small: Path, cache: Path) -> None:
    small.with_suffix(".sha256").write_text(cached_sha256(small, cache), "ascii")


def _is_unchanged(small: Path, cache: Path) -> bool:
    """Whether the file matches its checksum; a damaged one is created again."""
    try:
        return small.with_suffix(".sha256").read_text("ascii") == cached_sha256(small, cache)
    except (OSError, ValueError):
        return False


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary file that atomically replaces `path` on success."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".unfinished")
    os.close(descriptor)
    unfinished = Path(name)
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def is_installed(package: str) -> bool:
    """Whether a package is installed, without importing it."""
    return importlib.util.find_spec(package) is not None


def describe_error(error: Exception) -> str:
    """The first line of an error message, without the final period."""
    return str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
