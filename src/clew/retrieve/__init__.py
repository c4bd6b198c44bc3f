"""Retrieval steps: each turns what was found so far into what is found now."""
