"""Extraction and pruning of the subgraph that a question needs."""
