"""Import of existing graphs: readers for graph file formats, and the import pipeline."""
