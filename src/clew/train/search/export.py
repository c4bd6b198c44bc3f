"""A knowledge base as one small file that trains on a machine without Clew's store or embedder.

Texts are UTF-8 runs with offsets, vectors 8-bit rows with a scale each, and the arrays retrieval
walks on as they are: plain arrays, no pickle. `MiniLM` weights can stand beside it in the same way.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError
from clew.llm.onnx_weights import read_weights
from clew.store.protocol import Snapshot, Store
from clew.types import Kind

KINDS: tuple[Kind, ...] = ("chunk", "entity", "fact")
_LEFT_OUT = ("raw_", "near_", "merged", "sense_", "layout")
"""Of the arrays retrieval walks on, those that only building needs."""


async def export_kb(store: Store, path: Path) -> dict[str, int]:
    """Write the knowledge base's texts, graph and vectors; say how many of each and how large."""
    if path.suffix != ".npz":
        raise ConfigError(f"{path} should end in .npz: it is an archive of arrays")
    embedder = (await store.recall("manifest", ["embedder"])).get("embedder", "")
    async with store.snapshot() as now:
        arrays = now.arrays
        if "chunk_keys" not in arrays or not len(arrays["chunk_keys"]):
            raise ConfigError("the knowledge base is empty; `clew add` documents to it first")
        if not embedder:
            raise ConfigError("the knowledge base has no vectors; `clew reembed` makes them")
        held: dict[str, NDArray[Any]] = {}
        for kind, texts in (await _texts(now)).items():
            held |= pack_texts(f"{kind}_text", texts)
        for kind in KINDS:
            rows = arrays[f"{kind}_rows"]
            matrix = np.asarray(store.vectors(embedder, kind).matrix())
            held |= pack_vectors(kind, _rows(matrix, rows))
        held |= {
            name: np.asarray(array)
            for name, array in arrays.items()
            if not name.startswith(_LEFT_OUT)
        }
    held |= pack_texts("embedder", [embedder])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **held)  # type: ignore[arg-type]
    counts: dict[str, int] = {kind: len(held[f"{kind}_scale"]) for kind in KINDS}
    return counts | {"bytes": _size(path)}


def _size(path: Path) -> int:
    return path.stat().st_size


def _rows(matrix: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float32]:
    if not len(matrix):
        raise ConfigError("the knowledge base has no vectors; `clew reembed` makes them")
    found = np.asarray(matrix[np.maximum(rows, 0)], np.float32)
    found[rows < 0] = 0
    return found


async def _texts(now: Snapshot) -> dict[str, list[str]]:
    keys = {kind: [int(key) for key in now.arrays[f"{kind}_keys"]] for kind in KINDS}
    chunks = await now.chunks(keys["chunk"])
    entities = await now.entities(keys["entity"])
    facts = await now.facts(keys["fact"])
    return {
        "chunk": [chunks[key].text for key in keys["chunk"]],
        "title": [chunks[key].title for key in keys["chunk"]],
        "entity": [entities[key].name for key in keys["entity"]],
        "fact": [facts[key].text for key in keys["fact"]],
    }


def pack_texts(name: str, texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Texts as bytes and the offset at which each ends."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    ends = np.cumsum([len(one) for one in encoded], dtype=np.int64)
    return {f"{name}_bytes": np.frombuffer(b"".join(encoded), np.uint8), f"{name}_ends": ends}


def unpack_texts(held: Any, name: str) -> list[str]:
    """The texts packed under a name."""
    blob, ends = held[f"{name}_bytes"].tobytes(), held[f"{name}_ends"].tolist()
    return [blob[a:b].decode("utf-8") for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def pack_vectors(name: str, vectors: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Rows in 8 bits, each with its own scale."""
    scale = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-12) / 127
    return {
        f"{name}_vectors": np.rint(vectors / scale).astype(np.int8),
        f"{name}_scale": scale[:, 0].astype(np.float32),
    }


def unpack_vectors(held: Any, name: str) -> NDArray[np.float32]:
    """The rows packed under a name."""
    found: NDArray[np.float32] = held[f"{name}_vectors"].astype(np.float32)
    found *= held[f"{name}_scale"][:, None]
    return found


def export_minilm(graph: Path, tokenizer: Path, path: Path) -> int:
    """The local embedder's weights from its ONNX file, in 16 bits, with its tokenizer."""
    held: dict[str, NDArray[Any]] = {
        name: array.astype(np.float16) for name, array in read_weights(graph).items()
    }
    held["tokenizer"] = np.frombuffer(tokenizer.read_bytes(), np.uint8)
    np.savez_compressed(path, **held)  # type: ignore[arg-type]
    return path.stat().st_size
