"""The store on disk: the database `kb.sqlite` holds everything that cannot be derived again."""
