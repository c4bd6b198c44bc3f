"""File readers by suffix."""

from clew.ingest.readers.docx import read_docx
from clew.ingest.readers.html import read_html
from clew.ingest.readers.json_rows import read_json, read_json_lines
from clew.ingest.readers.pdf import read_pdf
from clew.ingest.readers.plain import read_markdown, read_plain_text, read_rst, read_unknown
from clew.ingest.readers.source import DocumentReader
from clew.ingest.readers.table import read_table

READERS: dict[str, DocumentReader] = {
    "": read_plain_text,
    ".txt": read_plain_text,
    ".text": read_plain_text,
    ".rst": read_rst,
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
DEFAULT_READER: DocumentReader = read_unknown

ROW_FORMATS = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv"})
"""Formats with many documents per file."""

PARSED_FORMATS = frozenset({".html", ".htm", ".xhtml", ".pdf", ".docx"})
"""Formats whose parser a hostile file can slow down: read one at a time, with a timeout."""
