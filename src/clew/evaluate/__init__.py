"""Measuring recipes on data with gold answers."""
