"""A knowledge base as one .npz file: exported, and searched with torch on another machine.

Texts are UTF-8 bytes with offsets, vectors int8 rows with one scale each, and the retrieval arrays
are unchanged: plain arrays, no pickle. `MiniLM` weights are exported in the same way.
"""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.agents.graph_r1_protocol import prefix_title
from clew.errors import ConfigError
from clew.index.view import View
from clew.llm.embed_weights import read_weights
from clew.store.protocol import Snapshot, Store
from clew.text.names import name_key, tokenize
from clew.types import Kind

ELEMENT_KINDS: tuple[Kind, ...] = ("chunk", "entity", "fact")
_BUILD_ONLY_PREFIXES = ("raw_", "near_", "merged", "sense_", "layout")
"""Prefixes of arrays that only building needs."""


async def export_kb(store: Store, path: Path) -> dict[str, int]:
    """Write texts, graph arrays and vectors; return the counts and the file size."""
    if path.suffix != ".npz":
        raise ConfigError(f"{path} must end in .npz")
    embedder = (await store.get("manifest", ["embedder"])).get("embedder", "")
    async with store.snapshot() as now:
        arrays = now.arrays
        if "chunk_keys" not in arrays or not len(arrays["chunk_keys"]):
            raise ConfigError("the knowledge base is empty; add documents with `clew add`")
        if not embedder:
            raise ConfigError("the knowledge base has no vectors; run `clew reembed`")
        out: dict[str, NDArray[Any]] = {}
        for kind, texts in (await _load_texts(now)).items():
            out |= pack_texts(f"{kind}_text", texts)
        for kind in ELEMENT_KINDS:
            rows = arrays[f"{kind}_rows"]
            matrix = np.asarray(store.vectors(embedder, kind).matrix())
            out |= pack_vectors(kind, _select_rows(matrix, rows))
        out |= {
            name: np.asarray(array)
            for name, array in arrays.items()
            if not name.startswith(_BUILD_ONLY_PREFIXES)
        }
    out |= pack_texts("embedder", [embedder])
    _save_whole(path, out)
    counts: dict[str, int] = {kind: len(out[f"{kind}_scale"]) for kind in ELEMENT_KINDS}
    return counts | {"bytes": path.stat().st_size}  # noqa: ASYNC240


def _select_rows(matrix: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float32]:
    if not len(matrix):
        raise ConfigError("the knowledge base has no vectors; run `clew reembed`")
    selected = np.asarray(matrix[np.maximum(rows, 0)], np.float32)
    selected[rows < 0] = 0
    return selected


async def _load_texts(now: Snapshot) -> dict[str, list[str]]:
    keys = {kind: [int(key) for key in now.arrays[f"{kind}_keys"]] for kind in ELEMENT_KINDS}
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
    """Pack texts as UTF-8 bytes with end offsets."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    ends = np.cumsum([len(one) for one in encoded], dtype=np.int64)
    return {f"{name}_bytes": np.frombuffer(b"".join(encoded), np.uint8), f"{name}_ends": ends}


def unpack_texts(held: Any, name: str) -> list[str]:
    """Unpack the texts stored under a name."""
    blob, ends = held[f"{name}_bytes"].tobytes(), held[f"{name}_ends"].tolist()
    return [blob[a:b].decode("utf-8") for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def pack_vectors(name: str, vectors: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Quantise rows to int8, each with its own scale."""
    scale = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-12) / 127
    return {
        f"{name}_vectors": np.rint(vectors / scale).astype(np.int8),
        f"{name}_scale": scale[:, 0].astype(np.float32),
    }


def _save_whole(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays beside the file and swap them in: a kill leaves the old file, or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def unpack_vectors(held: Any, name: str) -> NDArray[np.float32]:
    """Unpack the vectors stored under a name."""
    found: NDArray[np.float32] = held[f"{name}_vectors"].astype(np.float32)
    found *= held[f"{name}_scale"][:, None]
    return found


def export_minilm(graph: Path, tokenizer: Path, path: Path) -> int:
    """Export the local embedder's ONNX weights in float16, with its tokenizer."""
    out: dict[str, NDArray[Any]] = {
        name: array.astype(np.float16) for name, array in read_weights(graph).items()
    }
    out["tokenizer"] = np.frombuffer(tokenizer.read_bytes(), np.uint8)
    _save_whole(path, out)
    return path.stat().st_size


_MAX_NAME_TOKENS = 10


class ExportedKb:
    """A knowledge base loaded from `export_kb`'s file, with vectors on the device."""

    def __init__(self, path: Path, embed: Any, *, device: str = "cpu") -> None:
        """Load the file; `embed` maps queries to unit vectors on the same device."""
        import torch

        with np.load(path, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        self.embed, self.arrays = embed, arrays
        self.texts = {
            name: unpack_texts(arrays, f"{name}_text") for name in (*ELEMENT_KINDS, "title")
        }
        if not self.texts["fact"]:
            raise ConfigError(f"{path} has no facts; export a knowledge base that has a graph")
        self.vectors = {
            kind: torch.from_numpy(unpack_vectors(arrays, kind)).to(device)
            for kind in ELEMENT_KINDS
        }
        self.starts: NDArray[np.int64] = arrays["entity_fact_starts"]
        self.columns: NDArray[np.int64] = arrays["entity_fact_columns"].astype(np.int64)
        starts, chunks = arrays["fact_chunk_starts"], arrays["fact_chunk_columns"]
        self.fact_chunk: list[int] = chunks[starts[:-1]].tolist()
        self.entities_by_name: dict[str, list[int]] = {}
        for at, name in enumerate(self.texts["entity"]):
            self.entities_by_name.setdefault(name_key(name), []).append(at)

    def passage_text(self, at: int) -> str:
        """Return a chunk's text under its title."""
        return prefix_title(self.texts["title"][at], self.texts["chunk"][at])

    def link_entities(self, query: str) -> list[int]:
        """Find entities named in the query; longest names win."""
        t = tokenize(query)
        found: list[int] = []
        first = 0
        while first < len(t):
            for last in range(min(len(t), first + _MAX_NAME_TOKENS), first, -1):
                entities = self.entities_by_name.get(
                    name_key(query[t.starts[first] : t.ends[last - 1]])
                )
                if entities and (last - first > 1 or t.upper[first]):
                    found.extend(entities)
                    first = last - 1
                    break
            first += 1
        return found

    def facts_of(self, entities: Sequence[int]) -> NDArray[np.int64]:
        """Return the facts in which the entities take part."""
        parts = [self.columns[self.starts[one] : self.starts[one + 1]] for one in entities]
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)

    @cached_property
    def view(self) -> View:
        """View of the retrieval arrays, as in the served knowledge base."""
        if "name_hashes" not in self.arrays:
            raise ConfigError(
                "the file was exported by an older version; run `clew train --export` again"
            )
        return View(self.arrays, {})

    @cached_property
    def fact_offsets(self) -> list[int]:
        """Offset of each fact in its chunk; facts not stated verbatim come last."""
        chunks = self.texts["chunk"]
        places = [
            chunks[chunk].find(text)
            for chunk, text in zip(self.fact_chunk, self.texts["fact"], strict=True)
        ]
        return [
            at if at >= 0 else len(chunks[c]) for at, c in zip(places, self.fact_chunk, strict=True)
        ]
