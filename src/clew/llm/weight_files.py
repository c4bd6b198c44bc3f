"""What is done with weight files: hash them, replace them whole, rewrite them with 8 bits."""

import hashlib
import importlib
import importlib.util
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clew.version import pip_install

RECIPE = "r1"  # of the 8-bit rewriting; a change of it must change the embedder's name too


def sha256(path: Path, cache: Path) -> str:
    """Hash a file, or recall its hash while size and time of change are the same."""
    memo = cache / "sha256.json"
    state = path.stat()
    seen = [state.st_size, state.st_mtime_ns]
    known = _read_memo(memo)
    entry = known.get(str(path.resolve()))
    if isinstance(entry, list) and entry[:2] == seen and isinstance(entry[-1], str):
        return entry[-1]
    found = hash_file(path)
    known[str(path.resolve())] = [*seen, found]
    with suppress(OSError), replacing(memo) as unfinished:  # only a shortcut: may be absent
        unfinished.write_text(json.dumps(known), "utf-8")
    return found


def hash_file(path: Path) -> str:
    """Hash a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_memo(memo: Path) -> dict[str, object]:
    try:
        known = json.loads(memo.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def quantise(model: Path, small: Path, cache: Path) -> str:
    """Make `small` unless it is there; return why it could not be made, or nothing."""
    if small.is_file() and _untouched(small, cache):
        return ""
    if not installed("onnx"):
        return f"fp32, because the package onnx is missing: run `{pip_install('local')}`"
    not_onnx = importlib.import_module("google.protobuf.message").Error  # onnx depends on it
    try:
        with replacing(small) as unfinished:
            _rewrite(model, unfinished)
        _seal(small, cache)
    except (OSError, RuntimeError, ValueError, ImportError, not_onnx) as error:
        return f"fp32, because the 8-bit file could not be made ({why(error)})"
    return ""


def _rewrite(model: Path, small: Path) -> None:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load(str(model))
    # Without this mark the quantiser warns through the root logger, which sets that one up.
    mark = graph.metadata_props.add()
    mark.key, mark.value = "onnx.quant.pre_process", "onnxruntime.quant"
    # Given a path instead of the graph, the quantiser would write beside the installed model.
    quantize_dynamic(
        graph,
        str(small),
        weight_type=QuantType.QInt8,
        per_channel=True,
        # 7 bits keep the 16-bit sums of x86 processors without VNNI from overflowing.
        reduce_range=True,
    )


def _seal(small: Path, cache: Path) -> None:
    small.with_suffix(".sha256").write_text(sha256(small, cache), "ascii")


def _untouched(small: Path, cache: Path) -> bool:
    """Say whether the file is as we wrote it; a damaged one is made anew."""
    try:
        return small.with_suffix(".sha256").read_text("ascii") == sha256(small, cache)
    except (OSError, ValueError):
        return False


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a private file to write; it takes the place of `path` whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".unfinished")
    os.close(descriptor)
    unfinished = Path(name)
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def installed(package: str) -> bool:
    """Say whether a package could be imported, without importing it."""
    return importlib.util.find_spec(package) is not None


def why(error: Exception) -> str:
    """Take an error's first line, as part of a sentence."""
    return str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
