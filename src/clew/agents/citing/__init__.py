"""TODO clew.agents.citing."""
