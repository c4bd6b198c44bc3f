"""A small reader that finds answers as spans of passages, on the local CPU."""
