"""Talking to models: chat and embeddings, and the habits wrapped around them."""
