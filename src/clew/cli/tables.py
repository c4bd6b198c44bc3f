"""Text tables that keep full columns however narrow the terminal or pipe is."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

_COLUMN_GAP = "  "


def format_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Text:
    """Format a table as wide as needed: no column is dropped and no cell truncated.

    A cell in `**` is bold, as in Markdown.
    """
    shown = [[_format_cell(cell) for cell in row] for row in rows]
    heads = [Text(title, style="bold") for title in titles]
    widths = [
        max(cell_len(cell.plain) for cell in column) for column in zip(heads, *shown, strict=True)
    ]
    return Text("\n", no_wrap=True, overflow="ignore").join(
        _format_line(line, widths) for line in (heads, *shown)
    )


def _format_line(cells: Sequence[Text], widths: Sequence[int]) -> Text:
    line = Text()
    for cell, width in zip(cells, widths, strict=True):
        line.append_text(cell).append(" " * (width - cell_len(cell.plain)) + _COLUMN_GAP)
    line.rstrip()
    return line


def _format_cell(cell: str) -> Text:
    if cell.startswith("**") and cell.endswith("**") and len(cell) > 4:
        return Text(cell[2:-2], style="bold")
    return Text(cell.strip("`"))
