"""Creates the embedder the settings select."""

from pathlib import Path

from clew.config import EmbedSettings
from clew.llm.embed import Embed

ENCODER = "encoder"
"""Folder and name prefix of an encoder that was tuned for one knowledge base."""


def own_encoder(settings: EmbedSettings, kb: Path, held: str) -> EmbedSettings:
    """Settings with the knowledge base's tuned encoder, if its stored vectors come from that."""
    encoder = kb / ENCODER
    if settings.model == "local" and held.startswith(f"{ENCODER}-") and encoder.is_dir():
        return settings.model_copy(update={"folder": encoder})
    return settings


def can_embed(settings: EmbedSettings) -> bool:
    """Whether an embedder is available: the local one needs the extra `local`."""
    if settings.model != "local":
        return True
    from clew.llm.weights import absent_runtime

    return not absent_runtime()


def embedder(settings: EmbedSettings, cache: Path) -> Embed:
    """Create the local embedder, or one at an OpenAI-compatible endpoint."""
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
