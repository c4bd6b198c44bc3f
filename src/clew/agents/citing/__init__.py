"""Citations: find the spans that support a sentence, and check by code that they do."""
