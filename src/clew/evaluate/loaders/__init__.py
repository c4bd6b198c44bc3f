"""Loaders that convert published datasets to the folder layout of `clew eval`."""
