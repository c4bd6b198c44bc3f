"""Training on a GPU machine without Clew's dependencies; see docs/training.md."""
