"""Links a question to entities: the names it contains and its keywords."""
