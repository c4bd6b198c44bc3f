"""Opens knowledge bases with the fake embedder; importable by a child process."""

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed


async def open_hashed(settings: Settings, create: bool) -> KnowledgeBase:
    """Open a knowledge base whose vectors are hashed words."""
    store = SqliteStore(settings.kb, create=create, patience=settings.wait, durable=False)
    return KnowledgeBase(store, settings, HashEmbed())
