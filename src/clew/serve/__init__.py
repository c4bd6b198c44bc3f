"""HTTP server over the engine: workspaces, keys, jobs, and APIs that other programs speak."""
