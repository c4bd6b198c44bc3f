"""PDF: pages, titles, and files that are broken, locked, scanned or hostile."""

import io
import shutil
import sys
import zlib
from pathlib import Path

import pytest

from clew.ingest.chunk import ByTokens
from clew.ingest.files import find_files, read, read_source_items
from clew.ingest.readers.pages import (
    SizedLine,
    find_large_lines,
    find_large_title,
    strip_running_lines,
)
from clew.ingest.readers.source import DEFAULT_BUDGET, ReadBudget, Skipped, SourceFile
from clew.types import Document
from clew.version import pip_install_command

pypdf = pytest.importorskip("pypdf")


def pdf(pages: list[str], title: str = "", pack: bool = False) -> bytes:
    """Write a PDF by hand: one font, one line of text per page."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>"
        % (len(pages), b" ".join(b"%d 0 R" % (5 + 2 * n) for n in range(len(pages)))),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Title (%s) /Author (Ann) >>" % title.encode("latin-1"),
    ]
    for number, text in enumerate(pages):
        stream = b"BT /F1 12 Tf 72 720 Td (%s) Tj ET" % text.encode("cp1252") if text else b""
        packed = zlib.compress(stream) if pack else stream
        coded = b"/Filter /FlateDecode " if pack else b""
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (6 + 2 * number),
            b"<< %s/Length %d >>\nstream\n%s\nendstream" % (coded, len(packed), packed),
        ]
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R /Info 4 0 R >>\n" % (len(objects) + 1)
    return bytes(out + b"startxref\n%d\n%%%%EOF" % table)


async def read_one(
    tmp_path: Path, raw: bytes, budget: ReadBudget = DEFAULT_BUDGET
) -> Document | Skipped:
    path = tmp_path / "a.pdf"
    path.write_bytes(raw)
    items = [item async for item in read([path], budget=budget)]
    assert len(items) == 1 and path.as_posix() in (
        getattr(items[0], "names", ()) or (items[0].name,)
    )
    return items[0]


async def reason(tmp_path: Path, raw: bytes, budget: ReadBudget = DEFAULT_BUDGET) -> str:
    found = await read_one(tmp_path, raw, budget)
    assert isinstance(found, Skipped)
    return found.reason


@pytest.mark.parametrize("pack", [False, True])
async def test_pages_and_title(tmp_path: Path, pack: bool) -> None:
    raw = pdf(["The first page.", "", "Café on page three."], "A report", pack)
    found = await read_one(tmp_path, raw)
    assert isinstance(found, Document)
    assert found.text == "The first page.\n\n\f\n\n\fCafé on page three."
    assert found.title == "A report"
    assert dict(found.metadata) == {"format": "pdf", "pages": 3, "author": "Ann"}
    assert found.page_starts == (0, 18, 21)
    assert found.text[found.page_starts[2] :] == "Café on page three."
    assert [(c.text, c.page) for c in ByTokens(size=4, overlap=0)(found)] == [
        ("The first page.", 1),
        ("Café on page three", 3),
        (".", 3),
    ]


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (r"\(anonymous\)", ""),
        ("Microsoft Word - draft7.doc", ""),
        ("about:blank", ""),
        ("https://example.org/print?id=4", ""),
        ("  ", ""),
        ("About: a life", "About: a life"),
    ],
)
async def test_a_file_or_an_address_is_no_title(tmp_path: Path, said: str, title: str) -> None:
    found = await read_one(tmp_path, pdf(["Text"], said))
    assert isinstance(found, Document) and found.title == title


async def test_a_scan_asks_for_the_program_that_reads_it(tmp_path: Path) -> None:
    advice = "run OCR first" if shutil.which("tesseract") else "install tesseract"
    assert (await reason(tmp_path, pdf(["", ""]))).startswith(f"has no text layer; {advice}")


async def test_a_locked_pdf_says_so_and_an_openly_locked_one_is_read(tmp_path: Path) -> None:
    for password, readable in (("secret", False), ("", True)):
        writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf(["Hidden text"])))
        writer.encrypt(password, "owner", algorithm="RC4-128")
        out = io.BytesIO()
        writer.write(out)
        found = await read_one(tmp_path, out.getvalue())
        assert isinstance(found, Document) == readable
        if isinstance(found, Skipped):
            assert found.reason == "is encrypted; remove its password first"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not a pdf at all",
        b"%PDF-1.4\n",
        bytes(range(256)) * 10,
        b"%PDF-1.4\ntrailer << /Root 1 0 R >>\nstartxref\n5\n%%EOF",
        pdf(["Text"]).replace(b"/Kids [5 0 R]", b"/Kids [2 0 R]"),
        pdf(["Text"]).replace(b"/Type /Pages", b"/Type /Catal"),
        pdf(["Text"]).replace(b"/Kids [5", b"/Kids (5"),
        pdf(["Text"], pack=True).replace(b"stream\nx", b"stream\ny"),
    ],
)
async def test_broken_files_are_one_skip(tmp_path: Path, raw: bytes) -> None:
    assert await reason(tmp_path, raw)


async def test_a_truncated_file_is_read_or_skipped_but_never_fails(tmp_path: Path) -> None:
    pages = ["The first page.", "The second page."]
    raw = pdf(pages)
    read_whole = 0
    for size in (*range(0, len(raw), 97), len(raw)):
        found = await read_one(tmp_path, raw[:size])
        if isinstance(found, Skipped):
            assert found.reason
        else:
            assert found.text and all(page in pages for page in found.text.split("\n\n\f"))
            read_whole += found.text == "\n\n\f".join(pages)
    assert isinstance(found, Document) and read_whole


async def test_page_and_time_budgets(tmp_path: Path) -> None:
    raw = pdf(["Text"] * 3)
    assert "3 pages, over the limit of 2" in await reason(tmp_path, raw, ReadBudget(pages=2))
    assert "takes longer than 0 s" in await reason(tmp_path, raw, ReadBudget(seconds=0))
    many = await reason(tmp_path, pdf(["x" * 900] * 20, pack=True), ReadBudget(file_bytes=9_000))
    assert many == "unpacks to more than 0.009 MB"


def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)  # of this process, so it must read itself
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(["Text"]))
    (source,) = find_files([path])
    assert isinstance(source, SourceFile)
    skipped, *_ = read_source_items(source, DEFAULT_BUDGET)
    assert isinstance(skipped, Skipped) and pip_install_command("pdf") in skipped.reason


def test_lines_in_a_larger_font_are_headings() -> None:
    body = [SizedLine(n // 10, 10.0, f"Line {n} of the text goes on as usual.") for n in range(60)]
    large = [
        SizedLine(0, 20.0, "Pumps"),
        SizedLine(1, 14.0, "1.1 Valves"),
        SizedLine(1, 14.0, "1 Introduction . . . . . . . 3"),
        SizedLine(2, 14.0, "A sentence in large print ends here."),
        *(SizedLine(page, 14.0, "Manual of pumps") for page in range(3)),
    ]
    assert find_large_lines([*body, *large]) == [(0, 1, "Pumps"), (1, 2, "1.1 Valves")]
    assert find_large_lines([]) == []
    assert find_large_lines([SizedLine(0, 10.0, "All alike")]) == []


def test_a_heading_of_two_lines_and_the_largest_line_of_a_page() -> None:
    body = [SizedLine(n // 10, 10.0, f"Line {n} of the text goes on as usual.") for n in range(60)]
    title = [SizedLine(0, 24.0, "The Handbook"), SizedLine(0, 24.0, "of Pumps")]
    large = [
        SizedLine(1, 14.0, "1.1 Valves that are put into the"),
        SizedLine(1, 14.0, "system"),
        SizedLine(1, 14.0, "1.2 Seals"),
        SizedLine(2, 18.0, "Tools"),
        SizedLine(2, 18.0, "Oils"),
    ]
    lines = [*title, SizedLine(0, 14.0, "Ann Reed"), *body[:10], *large, *body[10:]]
    assert [text for _, _, text in find_large_lines(lines)] == [
        *("The Handbook of Pumps", "Ann Reed", "1.1 Valves that are put into the system"),
        *("1.2 Seals", "Tools", "Oils"),
    ]
    assert find_large_title(lines) == "The Handbook of Pumps"
    assert find_large_title(body) == find_large_title([]) == ""
    assert find_large_title(title) == ""  # of one page there is nothing to compare with


async def test_what_is_no_pdf_is_told_in_plain_words(tmp_path: Path) -> None:
    assert "is no PDF" in await reason(tmp_path, bytes(range(256)) * 8)


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        ("Annals of Peat, vol. 12 201", "Annals of Peat, vol. 12 202", False),
        ("Annals of Peat, vol. 12 201", "Annals of Peat, vol. 13 202", True),
        ("Rule 201", "Rule 202", True),
    ],
)
def test_a_header_of_two_pages_counts_them(first: str, second: str, left: bool) -> None:
    pages = [f"{first}\nThe bog is deep.", f"{second}\nThe moss is wet."]
    found = strip_running_lines(pages)
    assert found == (pages if left else ["The bog is deep.", "The moss is wet."])
