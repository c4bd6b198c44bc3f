"""Which names are one thing, and which one name is several: pure functions over columns."""
