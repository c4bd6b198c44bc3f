"""Creates the embedder and the reranker that the settings select."""

import warnings
from pathlib import Path

from clew.config import EmbedSettings, RerankSettings, Settings
from clew.errors import ConfigError
from clew.llm.embed import Embedder
from clew.llm.rerank import CrossEncoder, EndpointReranker, Reranker

_BY_WORDS = "Until then search and answers go by words alone."
TUNED_ENCODER = "encoder"
"""Folder and name prefix of an encoder that was tuned for one knowledge base."""


def use_tuned_encoder(settings: EmbedSettings, kb: Path, held: str) -> EmbedSettings:
    """Settings with the knowledge base's tuned encoder, if its stored vectors come from that."""
    encoder = kb / TUNED_ENCODER
    if settings.model == "local" and held.startswith(f"{TUNED_ENCODER}-") and encoder.is_dir():
        return settings.model_copy(update={"folder": encoder})
    return settings


def can_embed(settings: EmbedSettings) -> bool:
    """Whether an embedder is available: the local one needs the extra `local`."""
    if settings.model != "local":
        return True
    from clew.llm.embed_weights import missing_packages

    return not missing_packages()


def find_embedder(settings: Settings, held: str) -> Embedder | None:
    """The configured embedder, tuned if the vectors held are; None if none is available.

    A package that is installed and does not start is warned of: search goes on by words alone.
    """
    if not can_embed(settings.embed):
        _warn_of_broken_packages()
        return None
    chosen = use_tuned_encoder(settings.embed, settings.folder, held)
    return create_embedder(chosen, settings.cache, held)


def _warn_of_broken_packages() -> None:
    from clew.llm.embed_weights import explain_packages, find_broken_packages

    if find_broken_packages():
        warnings.warn(f"{explain_packages()}. {_BY_WORDS}", RuntimeWarning, stacklevel=2)


def create_embedder(settings: EmbedSettings, cache: Path, held: str = "") -> Embedder:
    """Create the local embedder, or one at an OpenAI-compatible endpoint.

    `held` is the name of the embedder whose vectors are stored: unless the settings ask for a GPU,
    the local one has its precision, so that a knowledge base can be read on any machine.
    """
    if settings.model == "local":
        from clew.llm.embed_local import LocalEmbedder

        gpu = uses_gpu(settings)
        full = "/fp32" in held or (gpu and "/int8" not in held) or settings.device == "cuda"
        return LocalEmbedder(
            cache=cache,
            folder=settings.folder,
            precision="fp32" if full else "int8",
            gpu=gpu,
            passage_prefix=settings.passage_prefix,
            query_prefix=settings.query_prefix,
        )
    from clew.llm.embed_endpoint import EndpointEmbedder

    return EndpointEmbedder(
        model=settings.model,
        base_url=settings.base_url,
        api_key=settings.api_key,
        query_prefix=settings.query_prefix,
        passage_prefix=settings.passage_prefix,
        batch=settings.batch,
        concurrency=settings.concurrency,
        timeout=settings.timeout,
    )


def uses_gpu(settings: EmbedSettings) -> bool:
    """Whether the local embedder runs on a GPU; raise if there is none and one is asked for."""
    from clew.llm.embed_local import has_gpu

    if settings.device == "cpu":
        return False
    if found := has_gpu():
        return found
    if settings.device == "cuda":
        raise ConfigError(
            '`device = "cuda"` under [embed] needs the package onnxruntime-gpu in place of '
            'onnxruntime, and CUDA; or choose `device = "auto"`.'
        )
    return False


def create_reranker(settings: RerankSettings) -> Reranker | None:
    """Create a local cross-encoder, an endpoint reranker, or None."""
    if settings.folder is not None:
        return CrossEncoder(settings.folder)
    if settings.model:
        return EndpointReranker(settings.model, settings.base_url, settings.api_key)
    return None
