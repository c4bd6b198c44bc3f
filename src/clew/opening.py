"""Open a knowledge base's folder, update its arrays and choose its embedder."""

from clew.arrays import derive_keeping_trees, has_current_layout
from clew.config import Settings
from clew.errors import ArraysMissing
from clew.llm.embed import Embedder
from clew.llm.embedders import can_embed, create_embedder, use_tuned_encoder
from clew.store.protocol import Arrays, Change, Store
from clew.store.sqlite import SqliteStore

LEXICAL_RECIPE = "steps+bm25"
"""Recipe used instead of the default when there is no embedder."""


async def open_store(settings: Settings, *, create: bool) -> SqliteStore:
    """Open the configured folder; rebuild its arrays if they are missing or outdated."""
    store = SqliteStore(settings.kb, create=create, patience=settings.wait)
    held: Arrays = {}
    try:
        async with store.snapshot() as now:
            held = now.arrays
            stale = now.generation > 0 and not has_current_layout(held)
    except ArraysMissing:
        stale = True
    if stale:
        # Written by another version of Clew, or lost: the tables suffice to rebuild them.
        await store.write(Change(rebuild=True), derive_keeping_trees(held))
    return store


async def choose_embedder(store: Store, settings: Settings) -> tuple[Embedder | None, Settings]:
    """The configured embedder and settings; without one, settings with the lexical recipe."""
    if not can_embed(settings.embed):
        return None, _use_lexical_recipe(settings)
    vectors = (await store.get("manifest", ["embedder"])).get("embedder", "")
    chosen = use_tuned_encoder(settings.embed, settings.kb, vectors)
    return create_embedder(chosen, settings.cache), settings


def _use_lexical_recipe(settings: Settings) -> Settings:
    """Switch to the lexical recipe unless the user has set one."""
    return (
        settings if settings.own_recipe else settings.model_copy(update={"recipe": LEXICAL_RECIPE})
    )
