"""Retrieval by what was grown over the graph: communities, summaries, reports."""
