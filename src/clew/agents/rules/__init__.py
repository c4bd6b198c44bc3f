"""TODO clew.agents.rules."""
