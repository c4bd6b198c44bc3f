"""Read answers as spans of passages, over one passage or along several."""
