"""TODO clew.entities."""
