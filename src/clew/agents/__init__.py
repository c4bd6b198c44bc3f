"""Agents: methods that answer a question from retrieved evidence."""
