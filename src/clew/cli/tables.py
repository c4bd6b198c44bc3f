"""Tables that keep their columns whole, however narrow the terminal or pipe is."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table
from rich.text import Text


def whole_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table whose cells are never cut; a cell in `**` is bold, as Markdown writes it."""
    table = Table(box=None, pad_edge=False)
    shown = [[_cell(cell) for cell in row] for row in rows]
    for at, title in enumerate(titles):
        wide = max([len(title), *(Text.from_markup(row[at]).cell_len for row in shown)])
        table.add_column(escape(title), no_wrap=True, min_width=wide)
    for row in shown:
        table.add_row(*row)
    return table


def _cell(cell: str) -> str:
    if cell.startswith("**") and cell.endswith("**") and len(cell) > 4:
        return f"[bold]{escape(cell[2:-2])}[/bold]"
    return escape(cell.strip("`"))
