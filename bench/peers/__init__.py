"""Clew beside other GraphRAG packages: same corpus, same endpoint, same embedder, one run."""
