"""Export the graph to files for other tools, or to an HTML page."""

from clew.export.story import FORMATS, Exported, export

__all__ = ["FORMATS", "Exported", "export"]
