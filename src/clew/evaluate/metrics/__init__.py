"""Metrics of passages and answers against the gold."""
