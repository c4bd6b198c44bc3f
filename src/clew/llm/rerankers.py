"""Which reranker the settings ask for."""

from clew.config import RerankSettings
from clew.llm.rerank import CrossEncoder, EndpointRerank, Rerank


def reranker(settings: RerankSettings) -> Rerank | None:
    """A cross-encoder in a folder, one behind an endpoint, or none."""
    if settings.folder is not None:
        return CrossEncoder(settings.folder)
    if settings.model:
        return EndpointRerank(settings.model, settings.base_url, settings.api_key)
    return None
