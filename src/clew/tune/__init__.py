"""Tuning of a knowledge base's retrieval from questions with known answers."""
