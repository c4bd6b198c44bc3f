"""Export the graph to files for other tools, or to an HTML page."""

from clew.export.formats import FORMATS, ExportResult, export

__all__ = ["FORMATS", "ExportResult", "export"]
