"""Graphs that already exist: readers of their formats, and the story of taking one in."""
