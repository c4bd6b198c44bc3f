"""Episodes, rollouts and trajectories: all of training that changes no weights."""
