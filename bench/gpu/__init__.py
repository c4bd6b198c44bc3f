"""Training on a machine with a GPU and nothing of Clew installed; docs/training.md says how."""
