"""Answers questions about tables by code over their rows."""
