"""Named methods, as values."""
