"""What a question names, and which elements of the graph that is."""
