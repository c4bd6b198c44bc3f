"""Retrievers for training: a knowledge base exported as arrays, searched with torch."""
