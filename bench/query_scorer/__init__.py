"""Trains the model that tells which query or path of relations a question asks for."""
