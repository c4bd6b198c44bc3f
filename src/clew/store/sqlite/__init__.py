"""TODO clew.store.sqlite."""
