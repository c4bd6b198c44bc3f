"""Where knowledge bases are: open a store wherever it is, and copy one to another."""
