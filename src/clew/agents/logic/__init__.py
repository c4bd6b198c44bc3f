"""Logic forms: typed operators executed by code."""
