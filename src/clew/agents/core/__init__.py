"""TODO clew.agents.core."""
