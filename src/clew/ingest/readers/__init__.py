"""TODO clew.ingest.readers."""
