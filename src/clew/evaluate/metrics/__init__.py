"""TODO clew.evaluate.metrics."""
