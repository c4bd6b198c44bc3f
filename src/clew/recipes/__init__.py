"""TODO clew.recipes."""
