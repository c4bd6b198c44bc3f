"""The knowledge tree: communities, keywords, facts, attributes."""
