"""Learning from questions whose answers are known; the result stays with the knowledge base."""
