"""Policy updates: advantages, loss, gradients, and the supervised warm start."""
