"""From files to a knowledge base: readers, chunkers, and the build story."""
