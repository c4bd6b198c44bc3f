"""Extraction of entities and facts from chunks, by rules or by a model."""
