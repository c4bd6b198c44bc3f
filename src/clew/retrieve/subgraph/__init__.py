"""Extraction and pruning of the subgraph around the question's entities."""
