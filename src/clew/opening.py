"""Opening a knowledge base's folder: its files brought up to date, and the embedder they want."""

from clew.arrays import keeping_trees, up_to_date
from clew.config import Settings
from clew.errors import ArraysMissing
from clew.llm.embed import Embed
from clew.llm.embedders import can_embed, embedder, own_encoder
from clew.store.protocol import Arrays, Change, Store
from clew.store.sqlite import SqliteStore

LEXICAL = "steps+bm25"
"""What answers in place of the usual recipe where there is no embedder."""


async def opened(settings: Settings, *, create: bool) -> SqliteStore:
    """The folder the settings name, its arrays made anew where they are lost or old."""
    store = SqliteStore(settings.kb, create=create, patience=settings.wait)
    held: Arrays = {}
    try:
        async with store.snapshot() as now:
            held = now.arrays
            stale = now.generation > 0 and not up_to_date(held)
    except ArraysMissing:
        stale = True
    if stale:
        # Made by another version of Clew, or lost: the truth is fine, and all it takes.
        await store.write(Change(afresh=True), keeping_trees(held))
    return store


async def embedding(store: Store, settings: Settings) -> tuple[Embed | None, Settings]:
    """The embedder the settings name, and the settings as they are where none can be had."""
    if not can_embed(settings.embed):
        return None, _lexical(settings)
    vectors = (await store.recall("manifest", ["embedder"])).get("embedder", "")
    chosen = own_encoder(settings.embed, settings.kb, vectors)
    return embedder(chosen, settings.cache), settings


def _lexical(settings: Settings) -> Settings:
    """A recipe of the user's own choice is left."""
    return settings if settings.own_recipe else settings.model_copy(update={"recipe": LEXICAL})
