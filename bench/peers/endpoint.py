"""The shared endpoint of all packages: scripted chat for their prompts, and one embedder.

    python -m bench.peers.endpoint [--latency-ms 50] [--embed local] [--openie FILE --corpus FILE]

prints its base URL and serves until it is stopped.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.peers.replies import Facts, PeerReplies, normalize_space
from clew.config import load_settings
from clew.extract.openie import load_recording
from clew.llm.factory import create_embedder
from clew.testing.stub_endpoint import StubEndpoint
from clew.testing.stub_responses import WORD, hash_vector

DIM = 384


def load_passage_facts(openie: Path, corpus: Path) -> dict[str, Facts]:
    """Map each passage to a real model's extraction, shared by all packages."""
    recorded_rows = load_recording(openie)
    found: dict[str, Facts] = {}
    with corpus.open(encoding="utf-8") as file:
        for number, line in enumerate(file):
            row = json.loads(line)
            extraction = recorded_rows.rows.get(str(row.get("id", number)))
            if extraction is None:
                continue
            facts = (list(extraction.entities), [tuple(triple) for triple in extraction.triples])
            for text in {row["text"], passage_text(row)}:
                found[normalize_space(text)] = facts  # type: ignore[assignment]
    return found


def passage_text(row: dict[str, Any]) -> str:
    """Return a corpus row as every package gets it: title and text."""
    title = str(row.get("title") or "")
    return f"{title}\n{row['text']}" if title else str(row["text"])


_MIN_WORD_LENGTH = 4  # shorter words are ignored


def hash_texts(texts: Sequence[str]) -> list[Any]:
    """Embed the distinct longer words, so that passages of the same template differ.

    Several packages drop similarities below 0.2, and sums over all words would all be below it.
    """
    words = (
        {w for w in WORD.findall(text) if len(w) >= _MIN_WORD_LENGTH} for text in map(str, texts)
    )
    return [hash_vector(" ".join(sorted(found)), DIM) for found in words]


class SharedLocalEmbedder:
    """The local embedder behind the stub, shared by all packages over HTTP."""

    def __init__(self) -> None:
        settings = load_settings()
        self._embed = create_embedder(settings.embed, settings.cache)
        self._pool = ThreadPoolExecutor(1)

    def __call__(self, texts: Sequence[str]) -> Any:
        """Embed in a thread with its own event loop, since the stub calls this synchronously."""
        return self._pool.submit(asyncio.run, self._embed_all(list(texts))).result()

    async def _embed_all(self, texts: list[str]) -> Any:
        return await self._embed(texts)


async def serve(given: argparse.Namespace) -> None:
    """Serve until killed."""
    known = load_passage_facts(given.openie, given.corpus) if given.openie else {}
    stub = StubEndpoint(PeerReplies(known), latency=given.latency_ms / 1000, keep_bodies=0)
    stub.embed = SharedLocalEmbedder() if given.embed == "local" else hash_texts
    await stub.start(port=given.port)
    sys.stdout.write(stub.base_url + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.endpoint", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--embed", choices=("hash", "local"), default="hash")
    parser.add_argument("--openie", type=Path)
    parser.add_argument("--corpus", type=Path)
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
