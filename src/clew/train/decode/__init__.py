"""Batched decoders for rollouts (CUDA graphs, or any transformers model) and GGUF import."""
