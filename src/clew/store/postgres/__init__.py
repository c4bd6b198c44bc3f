"""A knowledge base in a schema of a PostgreSQL database, shared by several machines."""
