"""Explain, merge, split and review the entities of a knowledge base, by hand or by a model."""
