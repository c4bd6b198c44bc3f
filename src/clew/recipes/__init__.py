"""Named recipes: retrieval chains and agents, with the source of every number."""
