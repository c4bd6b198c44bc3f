"""Clients for chat, embedding and reranking models, with caching, limits and retries."""
