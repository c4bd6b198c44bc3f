"""The demo's documents: an invented valley, written for this project."""
