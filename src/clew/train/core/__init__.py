"""TODO clew.train.core."""
