"""Reads Jupyter notebooks: Markdown cells as they are, code cells and their text output fenced."""

import json
import re
from collections.abc import Iterator
from typing import Any

from clew.errors import InputError
from clew.ingest.readers.decode import decode
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document, read_bytes
from clew.ingest.readers.table_text import label_rows
from clew.ingest.readers.text import file_title, heading_title
from clew.types import Document

_COLOURS = re.compile("\x1b\\[[0-9;]*m")
# An object that is shown as a picture, and in text only by its type: `<Figure …>`.
_REPRESENTED = re.compile(r"\s*+\[?+(?:<[^<>\n]++>,?+\s*+)++\]?+\s*+\Z")
_MAX_OUTPUT_CHARS = 2_000  # of one cell: longer output is a log or a data dump


def read_notebook(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a notebook as one document; its title is its first heading."""
    raw, _ = decode(read_bytes(source, budget))
    try:
        notebook = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not a notebook: {' '.join(str(error).split())[:100]}") from error
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise InputError("is not a notebook: it has no cells")
    language = _language(notebook)
    blocks = [text for cell in notebook["cells"] for text in _cell_blocks(cell, language)]
    text = "\n\n".join(blocks)
    if not text.strip():
        raise InputError("has no text")
    title = heading_title(text)
    title = file_title(source.name, text) if title is None else title
    yield make_document(text, title, source.name, {"format": "notebook"})


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    info = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) and name.isalnum() else ""


def _cell_blocks(cell: Any, language: str) -> Iterator[str]:
    if not isinstance(cell, dict):
        return
    text = _join_text(cell.get("source")).strip("\n")
    if cell.get("cell_type") == "code":
        if text.strip():
            yield _fence(text, language)
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else ():
            shown = _output_text(output).strip("\n")
            if shown.strip() and len(shown) <= _MAX_OUTPUT_CHARS and not _REPRESENTED.match(shown):
                yield _fence(shown, "")
    elif text.strip():
        yield label_rows(text)


def _output_text(output: Any) -> str:
    if not isinstance(output, dict):
        return ""
    data = output.get("data")
    if isinstance(data, dict):
        return _join_text(data.get("text/plain"))
    if output.get("output_type") == "error":  # without the lines that led there
        said = (_join_text(output.get("ename")), _join_text(output.get("evalue")))
        return _COLOURS.sub("", ": ".join(filter(None, said)))
    return _COLOURS.sub("", _join_text(output.get("text")))


def _join_text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def _fence(text: str, language: str) -> str:
    mark = "~~~" if "```" in text else "```"
    return f"{mark}{language}\n{text}\n{mark}"
