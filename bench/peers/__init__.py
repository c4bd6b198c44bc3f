"""Clew against other GraphRAG packages: same corpus, endpoint and embedder, in one run."""
