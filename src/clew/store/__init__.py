"""Where a knowledge base is kept: the truth in SQL, derived arrays beside it."""
