"""Whatever bytes a file holds and whatever it is called, reading gives documents or skips."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.ingest.chunk import CHUNKERS
from clew.ingest.files import READERS, read
from clew.ingest.readers.source import ReadBudget, Skipped
from clew.text.unicode import nfc
from clew.types import Document

MARKUP = [
    "<p>",
    "</td>",
    "<!--",
    "\n",
    "\r",
    ",",
    '"',
    "{",
    "}",
    "[",
    ":",
    '"text"',
    "\\ud800",
    "---\n",
]
BYTES = st.one_of(
    st.binary(max_size=200),
    st.lists(st.one_of(st.text(max_size=6), st.sampled_from(MARKUP)), max_size=40).map(
        lambda pieces: "".join(pieces).encode("utf-8", "replace")
    ),
    st.text(max_size=80).map(lambda text: text.encode("utf-16", "replace")),
    st.recursive(
        st.none() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["text", "title", "id", "x"]), inner, max_size=4)
        ),
    ).map(lambda value: json.dumps(value).encode()),
)


@pytest.mark.parametrize("suffix", [*READERS, ".xyz"])
@settings(max_examples=settings.default.max_examples // 2)
@given(raw=BYTES)
async def test_any_bytes_under_any_name(suffix: str, raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        path.write_bytes(raw)
        items = [item async for item in read([path], budget=ReadBudget(row_bytes=100))]
    assert items  # nothing goes by in silence
    for item in items:
        if isinstance(item, Skipped):
            assert item.reason and item.name
            continue
        assert item.text.strip() and item.text == nfc(item.text)
        f"{item.text}{item.title}{item.names}".encode()
        json.dumps(dict(item.metadata), allow_nan=False, ensure_ascii=False).encode()
        for chunker in CHUNKERS.values():
            assert chunker(item)


async def test_a_nasty_folder(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("Good text.")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing follows")
    (tmp_path / "broken.docx").write_bytes(b"PK\x03\x04 nothing follows")
    (tmp_path / "rows.jsonl").write_text('{"text": "Row"}\n{oops\n{"text": "Another"}')
    (tmp_path / "-rf; $(x) 'q\".md").write_text("# A hostile name\n\nText")
    (tmp_path / "a folder.txt").mkdir()
    (tmp_path / "a folder.txt" / "UPPER.TXT").write_text("Upper")
    items = [item async for item in read([tmp_path])]
    texts = [item.text for item in items if isinstance(item, Document)]
    assert texts == ["# A hostile name\n\nText", "Upper", "Good text.", "Row", "Another"]
    skipped = [Path(item.name).name for item in items if isinstance(item, Skipped)]
    assert skipped == [
        "broken.docx",
        "broken.pdf",
        "empty.txt",
        "picture.png",
        "picture.txt",
        "rows.jsonl",
    ]
