"""The graph as files that other tools read, and as one page to look at."""

from clew.export.story import FORMATS, Exported, export

__all__ = ["FORMATS", "Exported", "export"]
