"""TODO clew.index."""
