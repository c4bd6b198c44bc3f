"""Decompose a question into sub-questions, and combine their answers."""
