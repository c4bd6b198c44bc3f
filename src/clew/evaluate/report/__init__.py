"""Reports of a comparison: tables, plots and an HTML page."""
