"""Questions over real documents from Debian packages, and the command that measures on them."""
