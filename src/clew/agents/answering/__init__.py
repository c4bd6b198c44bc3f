"""Write an answer from the evidence: with a model, or by quoting."""
