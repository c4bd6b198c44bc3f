"""Retrieval steps: each takes what was found so far and returns what is found now."""
