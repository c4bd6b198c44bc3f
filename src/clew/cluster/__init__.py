"""Work for other processes and machines: a queue in PostgreSQL with workers, and Ray."""
