"""Community trees over entities or passages, with names and summaries."""
