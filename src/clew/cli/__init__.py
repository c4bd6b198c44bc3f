"""The command line: thin commands over the engine."""

from clew.cli.app import main

__all__ = ["main"]
