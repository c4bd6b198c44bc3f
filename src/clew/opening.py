"""Open a knowledge base's folder, update its arrays and choose its embedder."""

from clew.arrays import keeping_trees, up_to_date
from clew.config import Settings
from clew.errors import ArraysMissing
from clew.llm.embed import Embed
from clew.llm.embedders import can_embed, embedder, own_encoder
from clew.store.protocol import Arrays, Change, Store
from clew.store.sqlite import SqliteStore

LEXICAL = "steps+bm25"
"""Recipe used instead of the default when there is no embedder."""


async def opened(settings: Settings, *, create: bool) -> SqliteStore:
    """Open the configured folder; rebuild its arrays if they are missing or outdated."""
    store = SqliteStore(settings.kb, create=create, patience=settings.wait)
    held: Arrays = {}
    try:
        async with store.snapshot() as now:
            held = now.arrays
            stale = now.generation > 0 and not up_to_date(held)
    except ArraysMissing:
        stale = True
    if stale:
        # Written by another version of Clew, or lost: the tables suffice to rebuild them.
        await store.write(Change(afresh=True), keeping_trees(held))
    return store


async def embedding(store: Store, settings: Settings) -> tuple[Embed | None, Settings]:
    """The configured embedder and settings; without one, settings with the lexical recipe."""
    if not can_embed(settings.embed):
        return None, _lexical(settings)
    vectors = (await store.recall("manifest", ["embedder"])).get("embedder", "")
    chosen = own_encoder(settings.embed, settings.kb, vectors)
    return embedder(chosen, settings.cache), settings


def _lexical(settings: Settings) -> Settings:
    """Switch to the lexical recipe unless the user has set one."""
    return settings if settings.own_recipe else settings.model_copy(update={"recipe": LEXICAL})
