"""A small corpus written for Clew, to see the whole thread in one command."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.text import clean, digest
from clew.types import Document

QUESTION = "In which town was the engineer of the Marrow Bridge born?"


async def documents() -> AsyncIterator[Document]:
    """The bundled documents: one Markdown file each, the first line its title."""
    for path in sorted(files("clew.demo_corpus").iterdir(), key=lambda path: path.name):
        if path.name.endswith(".md"):
            head, _, body = clean(path.read_text(encoding="utf-8")).partition("\n")
            title, text = head.lstrip("# ").strip(), body.strip()
            yield Document(digest(title, text), text, title, (path.name,))


@asynccontextmanager
async def opened(settings: Settings, *, kept: bool) -> AsyncIterator[KnowledgeBase]:
    """A knowledge base in the named folder, or in one that goes when the demo ends."""
    with tempfile.TemporaryDirectory(prefix="clew-demo-") as folder:
        where = settings if kept else settings.model_copy(update={"kb": Path(folder) / "kb"})
        base = await KnowledgeBase.open(where, create=True)
        try:
            yield base
        finally:
            await base.close()
