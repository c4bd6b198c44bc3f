"""Storage of a knowledge base: SQLite tables as source of truth, and derived array files."""
