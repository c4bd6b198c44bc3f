"""Entity resolution: which names are one entity, and which name is several."""
