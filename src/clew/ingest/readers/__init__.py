"""File readers by suffix."""

from clew.ingest.readers.docx import read_docx
from clew.ingest.readers.html import read_html
from clew.ingest.readers.json_rows import read_json, read_json_lines
from clew.ingest.readers.pdf import read_pdf
from clew.ingest.readers.plain import read_markdown, read_other, read_plain, read_rest
from clew.ingest.readers.source import Reader
from clew.ingest.readers.table import read_table

READERS: dict[str, Reader] = {
    "": read_plain,
    ".txt": read_plain,
    ".text": read_plain,
    ".rst": read_rest,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".csv": read_table,
    ".tsv": read_table,
    ".pdf": read_pdf,
    ".docx": read_docx,
}
OTHERWISE: Reader = read_other

ROWS = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv"})
"""Formats with many documents per file."""

PARSED = frozenset({".html", ".htm", ".xhtml", ".pdf", ".docx"})
"""Formats whose parser a hostile file can slow down: read one at a time, with a timeout."""
