"""From a chunk's text to entities and facts, with and without a model."""
