"""Search, scoring and ranking of paths through the graph."""
