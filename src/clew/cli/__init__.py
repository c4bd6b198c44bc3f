"""Command-line interface: thin commands over the engine."""
