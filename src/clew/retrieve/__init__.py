"""Retrieval: one step per file, joined by chains."""
