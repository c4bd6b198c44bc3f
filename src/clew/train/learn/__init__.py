"""From what was played to changed weights: worth, loss, gradient, and the warm start."""
