"""`python -m clew`."""

from clew.cli.app import main

main()
