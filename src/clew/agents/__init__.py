"""Agents: how an answer is made from evidence."""
