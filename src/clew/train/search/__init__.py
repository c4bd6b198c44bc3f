"""A knowledge base as arrays, so that training needs nothing but them to search it."""
