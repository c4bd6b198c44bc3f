"""Opens knowledge bases with the fake embedder; importable by a child process."""

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.kb_address import DatabaseAddress
from clew.store.protocol import Store
from clew.store.sqlite.store import SqliteStore
from clew.stores.opening import open_located_store
from clew.testing.fakes import HashEmbed


async def open_hashed(settings: Settings, create: bool) -> KnowledgeBase:
    """Open a knowledge base whose vectors are hashed words."""
    if isinstance(settings.kb, DatabaseAddress):
        store: Store = open_located_store(settings, create=create)
    else:
        store = SqliteStore(settings.kb, create=create, patience=settings.wait, durable=False)
        store.memory = settings.memory
    return KnowledgeBase(store, settings, HashEmbed())
