"""TODO clew.evaluate.loaders."""
