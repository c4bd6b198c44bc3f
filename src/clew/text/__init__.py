"""TODO clew.text."""
