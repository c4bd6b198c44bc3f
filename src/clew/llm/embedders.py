"""Which embedder the settings ask for."""

from pathlib import Path

from clew.config import EmbedSettings
from clew.llm.embed import Embed

ENCODER = "encoder"
"""The folder of a knowledge base, and the beginning of its name, for an encoder learnt for it."""


def own_encoder(settings: EmbedSettings, kb: Path, held: str) -> EmbedSettings:
    """The settings with the knowledge base's own encoder, if the vectors it holds are of that."""
    mine = kb / ENCODER
    if settings.model == "local" and held.startswith(f"{ENCODER}-") and mine.is_dir():
        return settings.model_copy(update={"folder": mine})
    return settings


def can_embed(settings: EmbedSettings) -> bool:
    """Whether there is an embedder: without the extra `local` the local one is not there."""
    if settings.model != "local":
        return True
    from clew.llm.weights import absent_runtime

    return not absent_runtime()


def embedder(settings: EmbedSettings, cache: Path) -> Embed:
    """The local model, or one behind an OpenAI-compatible endpoint."""
    if settings.model == "local":
        from clew.llm.local_embed import LocalEmbed

        return LocalEmbed(cache=cache, folder=settings.folder)
    from clew.llm.endpoint_embed import EndpointEmbed

    return EndpointEmbed(
        model=settings.model,
        base_url=settings.base_url,
        api_key=settings.api_key,
        query_prefix=settings.query_prefix,
        passage_prefix=settings.passage_prefix,
        batch=settings.batch,
        concurrency=settings.concurrency,
    )
