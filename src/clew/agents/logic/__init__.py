"""Logic forms: typed operators that code carries out."""
