"""Loads a knowledge base file written by `export_kb`, for search with torch."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.agents.graph_r1 import prefix_title
from clew.errors import ConfigError
from clew.names import name_key, tokenize
from clew.train.search.export import ELEMENT_KINDS, unpack_texts, unpack_vectors
from clew.view import View

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
            raise ConfigError(f"{path} holds no facts; export a knowledge base that has a graph")
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

    def fact_text(self, at: int) -> str:
        """Return a fact's text under the title of its passage."""
        return prefix_title(self.texts["title"][self.fact_chunk[at]], self.texts["fact"][at])

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
            raise ConfigError("the exported file is of an older Clew; `clew train --export` again")
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
