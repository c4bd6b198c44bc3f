"""Which embedder the settings ask for."""

from pathlib import Path

from clew.config import EmbedSettings
from clew.llm.embed import Embed


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
