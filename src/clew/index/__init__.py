"""From tables to retrieval: names are resolved to entities, and a generation's arrays derived."""
