"""A small bundled corpus for `clew demo`."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.text.unicode import clean, digest
from clew.types import Document

QUESTION = "In which town was the engineer of the Marrow Bridge born?"


async def load_documents() -> AsyncIterator[Document]:
    """Yield the bundled documents: one Markdown file each, its first line the title."""
    for path in sorted(files("clew.demo_corpus").iterdir(), key=lambda path: path.name):
        if path.name.endswith(".md"):
            head, _, body = clean(path.read_text(encoding="utf-8")).partition("\n")
            title, text = head.lstrip("# ").strip(), body.strip()
            yield Document(digest(title, text), text, title, (path.name,))


@asynccontextmanager
async def open_demo(settings: Settings, *, kept: bool) -> AsyncIterator[KnowledgeBase]:
    """Open a knowledge base in the configured folder, or in a temporary one."""
    with tempfile.TemporaryDirectory(prefix="clew-demo-") as folder:
        used = settings if kept else settings.model_copy(update={"kb": Path(folder) / "kb"})
        base = await KnowledgeBase.open(used, create=True)
        try:
            yield base
        finally:
            await base.close()
