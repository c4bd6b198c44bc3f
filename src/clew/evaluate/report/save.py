"""Save a comparison to a folder: tables, HTML page and records."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clew.evaluate.compare import Comparison
from clew.evaluate.report.html import render_page
from clew.evaluate.report.text import to_csv, to_markdown


def save_report(
    comparison: Comparison,
    folder: Path,
    data: Mapping[str, Any],
    about: Sequence[str] = (),
    records: bool = True,
) -> list[Path]:
    """Write the table as JSON, CSV and Markdown, the page, and the records of every recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    title = f"{data.get('dataset', 'comparison')}: recipes compared"
    texts = {
        "table.json": json.dumps(data, ensure_ascii=False, indent=1),
        "table.csv": to_csv(comparison),
        "table.md": f"# {title}\n\n" + to_markdown(comparison, about),
        "report.html": render_page(comparison, title, about),
    }
    paths = []
    for name, text in texts.items():
        path = folder / name
        path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
        paths.append(path)
    if records:
        paths.append(_write_records(comparison, folder / "records.jsonl.gz"))
    return paths


def _write_records(comparison: Comparison, path: Path) -> Path:
    # No timestamp inside, so that the same records give the same bytes.
    with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        for report in comparison.reports:
            for record in report.records:
                line = json.dumps(record.to_dict(), ensure_ascii=False) + "\n"
                file.write(line.encode())
    return path
