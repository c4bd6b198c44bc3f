"""Drawing tokens: many rows at once on a GPU, any model elsewhere; weights out of GGUF files."""
