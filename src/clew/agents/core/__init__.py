"""Shared by all agents: result types, plans, the notebook of a run, and fixed messages."""
