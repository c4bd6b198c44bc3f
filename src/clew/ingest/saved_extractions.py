"""Keeps what rules extract until it is written, so that a build that is killed goes on from there.

Replies of models are kept by their cache, and vectors in their own files.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.extract.model_extractors import DocumentExtractor
from clew.ingest.remote import decode_extraction, encode_extraction
from clew.store.packed import PACK_FROM, PackedExtractions
from clew.text.unicode import digest
from clew.types import Chunk, Document, Extraction


@dataclass(eq=False, repr=False)
class SavedExtractions:
    """Extracts by `inner` what is not in `file` yet; each document adds a line to it at once.

    Its `repr` is `inner`'s, so that stamps are equal. A line that a kill cut short is extracted
    again.
    """

    inner: DocumentExtractor
    file: Path
    _places: dict[str, int] | None = field(default=None)
    """Where in the file the line of each document begins."""

    def __repr__(self) -> str:
        return repr(self.inner)

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk."""
        if self._places is None:
            self._places = _find_lines(self.file)
        spans = [(chunk.start, chunk.end) for chunk in chunks]
        key = digest(repr(self.inner), document.id, repr((document.metadata, spans)))
        if key in self._places:
            with self.file.open("rb") as lines:
                lines.seek(self._places[key])
                found = map(decode_extraction, json.loads(lines.readline())[1])
                return PackedExtractions(found) if len(chunks) >= PACK_FROM else list(found)
        made = await self.inner(document, chunks)
        line = json.dumps((key, [encode_extraction(one) for one in made])).encode() + b"\n"
        with self.file.open("ab") as lines:
            lines.write(line)
        return made

    def forget(self) -> None:
        """Remove what was kept: all of it is in the knowledge base now."""
        self.file.unlink(missing_ok=True)
        self._places = {}


def _find_lines(file: Path) -> dict[str, int]:
    """Return where each whole line begins, by its key; cut off a line that is not whole."""
    found: dict[str, int] = {}
    if not file.exists():
        return found
    at = 0
    with file.open("r+b") as lines:
        for line in lines:
            row = _read_line(line)
            if row is None:
                lines.truncate(at)
                break
            found[row[0]] = at
            at += len(line)
    return found


def _read_line(line: bytes) -> Any:
    try:
        return json.loads(line) if line.endswith(b"\n") else None
    except ValueError:  # what was written last may be lost with the machine's power
        return None
