"""Adapters over frozen embeddings: what they are, how they are learnt, how they are kept."""
