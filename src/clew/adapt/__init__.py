"""Adapters over frozen embeddings: their arrays, fitting and storage."""
