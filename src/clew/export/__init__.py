"""Export the graph to files for other tools, or to an HTML page."""
