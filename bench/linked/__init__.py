"""Two small corpora with questions over two linked things, two halves, and what is not said."""
