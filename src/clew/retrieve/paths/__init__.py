"""Paths through the graph: found, scored, ranked, put into words."""
