"""Creates the reranker the settings select."""

from clew.config import RerankSettings
from clew.llm.rerank import CrossEncoder, EndpointReranker, Reranker


def create_reranker(settings: RerankSettings) -> Reranker | None:
    """Create a local cross-encoder, an endpoint reranker, or None."""
    if settings.folder is not None:
        return CrossEncoder(settings.folder)
    if settings.model:
        return EndpointReranker(settings.model, settings.base_url, settings.api_key)
    return None
