"""DOCX: document order, headings and tables, and archives that are broken or hostile."""

import io
import zipfile
from pathlib import Path

import pytest

from clew.ingest.files import read
from clew.ingest.readers.source import ReadBudget, Skipped
from clew.types import Document

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def p(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def docx(body: str, **parts: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "word/document.xml", f"<w:document {W}><w:body>{body}</w:body></w:document>"
        )
        for name, xml in parts.items():
            archive.writestr(f"word/{name}.xml", xml)
    return out.getvalue()


async def read_one(
    tmp_path: Path, raw: bytes, budget: ReadBudget | None = None
) -> Document | Skipped:
    path = tmp_path / "a.docx"
    path.write_bytes(raw)
    items = [item async for item in read([path], budget=budget or ReadBudget())]
    assert len(items) == 1
    return items[0]


async def text(tmp_path: Path, body: str, **parts: str) -> str:
    found = await read_one(tmp_path, docx(body, **parts))
    assert isinstance(found, Document)
    return found.text


async def test_a_document_as_word_writes_it(tmp_path: Path) -> None:
    writer = pytest.importorskip("docx").Document()
    writer.add_heading("The report", 0)
    writer.add_heading("Queens", 1)
    writer.add_paragraph("Teutberga died in 875.").add_run(" She was a queen.")
    table = writer.add_table(2, 2)
    for cell, value in zip(table._cells, ["Name", "Year", "Ann", "1900"], strict=True):
        cell.text = value
    writer.add_heading("Kings", 2)
    writer.add_paragraph("After the table.")
    out = io.BytesIO()
    writer.save(out)
    found = await read_one(tmp_path, out.getvalue())
    assert isinstance(found, Document)
    assert found.title == "The report"
    assert found.text == (
        "# The report\n\n# Queens\n\nTeutberga died in 875. She was a queen.\n\n"
        "| Name: Ann | Year: 1900 |\n\n## Kings\n\nAfter the table."
    )


async def test_steps_of_a_numbered_style_are_numbered(tmp_path: Path) -> None:
    styles = (
        f'<w:styles {W}><w:style w:styleId="Lnum"><w:name w:val="List Number"/></w:style>'
        '<w:style w:styleId="My"><w:name w:val="My"/><w:basedOn w:val="Lnum"/></w:style></w:styles>'
    )
    step = '<w:pStyle w:val="{}"/>'.format
    body = p("Stop.", step("Lnum")) + p("Start.", step("My")) + p("Text.") + p("Go.", step("My"))
    found = await text(tmp_path, body, styles=styles)
    assert found == "1. Stop.\n\n2. Start.\n\nText.\n\n1. Go."


def numbered(number: int, level: int = 0) -> str:
    return f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'


def level(at: int, style: str, shown: str, start: int = 1) -> str:
    return (
        f'<w:lvl w:ilvl="{at}"><w:start w:val="{start}"/><w:numFmt w:val="{style}"/>'
        f'<w:lvlText w:val="{shown}"/></w:lvl>'
    )


NUMBERING = (
    f'<w:numbering {W}><w:abstractNum w:abstractNumId="7">{level(0, "decimal", "%1.")}'
    f"{level(1, 'lowerLetter', '%2)')}{level(2, 'bullet', 'o')}</w:abstractNum>"
    f'<w:abstractNum w:abstractNumId="8">{level(0, "upperRoman", "%1.", 4)}'
    f"{level(1, 'decimal', '%1.%2')}</w:abstractNum>"
    '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="7"/><w:lvlOverride w:ilvl="0">'
    '<w:startOverride w:val="1"/></w:lvlOverride></w:num>'
    '<w:num w:numId="3"><w:abstractNumId w:val="8"/></w:num></w:numbering>'
)


async def test_lists_are_numbered_as_word_shows_them(tmp_path: Path) -> None:
    body = (
        p("Stop.", numbered(1))
        + p("Wait.", numbered(1))
        + p("An hour.", numbered(1, 1))
        + p("Two.", numbered(1, 1))
        + p("Or more.", numbered(1, 2))
        + p("In between.")
        + p("Go on.", numbered(1))
        + p("Anew.", numbered(2))
        + p("No list.", numbered(0))
        + p("Fourth.", numbered(3))
        + p("Part.", numbered(3, 1))
    )
    assert await text(tmp_path, body, numbering=NUMBERING) == "\n\n".join(
        (
            *("1. Stop.", "2. Wait.", "    a) An hour.", "    b) Two.", "        - Or more."),
            *("In between.", "3. Go on.", "1. Anew.", "No list.", "IV. Fourth.", "IV.1 Part."),
        )
    )


async def test_styles_that_number_headings_and_nest_bullets(tmp_path: Path) -> None:
    styles = (
        f'<w:styles {W}><w:style w:styleId="H"><w:name w:val="heading 1"/><w:pPr>{numbered(1)}'
        '</w:pPr></w:style><w:style w:styleId="B"><w:name w:val="List Bullet 2"/></w:style>'
        "</w:styles>"
    )
    body = p("Rent", '<w:pStyle w:val="H"/>') + p("Cash.", '<w:pStyle w:val="B"/>')
    found = await text(tmp_path, body, styles=styles, numbering=NUMBERING)
    assert found == "# 1. Rent\n\n    - Cash."


async def test_styles_with_translated_ids_are_headings(tmp_path: Path) -> None:
    styles = (
        f'<w:styles {W}><w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>'
        '<w:style w:styleId="Mein"><w:name w:val="Mein"/><w:basedOn w:val="berschrift2"/></w:style>'
        "</w:styles>"
    )
    body = p("Über", '<w:pStyle w:val="berschrift2"/>') + p("Mein", '<w:pStyle w:val="Mein"/>')
    body += p("Level", '<w:outlineLvl w:val="2"/>') + p("Item", "<w:numPr/>")
    assert await text(tmp_path, body, styles=styles) == "## Über\n\n## Mein\n\n### Level\n\n- Item"


async def test_what_word_shows_is_read_once(tmp_path: Path) -> None:
    body = (
        "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/>"
        "<w:t>c</w:t></w:r><w:ins><w:r><w:t> new</w:t></w:r></w:ins><w:del><w:r><w:delText>old"
        "</w:delText></w:r></w:del><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom></w:p>"
        '<w:p xmlns:mc="m"><w:r><mc:AlternateContent><mc:Choice><w:txbxContent>'
        f"{p('box')}</w:txbxContent></mc:Choice><mc:Fallback>{p('box')}</mc:Fallback>"
        "</mc:AlternateContent><w:t>around</w:t></w:r></w:p>"
    )
    notes = f"<w:footnotes {W}><w:footnote>{p('A note.')}</w:footnote></w:footnotes>"
    assert await text(tmp_path, body, footnotes=notes) == "a\tb\nc new\n\nbox\n\naround\n\nA note."


async def test_tables_in_tables_stay_in_their_cell(tmp_path: Path) -> None:
    inner = f"<w:tbl><w:tr><w:tc>{p('x')}</w:tc><w:tc>{p('y')}</w:tc></w:tr></w:tbl>"
    outer = f"<w:tbl><w:tr><w:tc>{p('a')}{inner}</w:tc><w:tc>{p('b')}</w:tc></w:tr></w:tbl>"
    assert await text(tmp_path, outer) == "| a x, y | b |"


async def test_the_property_is_the_title_of_a_text_without_headings(tmp_path: Path) -> None:
    out = io.BytesIO(docx(p("Text")))
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("docProps/core.xml", "<c><title>From the file</title><x>no</x></c>")
    found = await read_one(tmp_path, out.getvalue())
    assert isinstance(found, Document) and found.title == "From the file"


def archive_without_document() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("other.txt", "text")
    return out.getvalue()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "is empty"),
        (b"not a zip", "is not a DOCX"),
        (b"\xd0\xcf\x11\xe0" + bytes(600), "encrypted"),
        (archive_without_document(), "not a Word document"),
        (docx(p("Text"))[:-40], "is not a DOCX"),
        (docx("<w:p>"), "broken"),
        (docx("</w:tr>"), "broken"),
        (docx("<w:tc></w:tc>"), "broken"),
        (docx(""), "has no text"),
    ],
)
async def test_broken_files_are_one_skip(tmp_path: Path, raw: bytes, reason: str) -> None:
    found = await read_one(tmp_path, raw)
    assert isinstance(found, Skipped) and reason in found.reason


async def test_a_damaged_archive_is_skipped(tmp_path: Path) -> None:
    raw = bytearray(docx(p("Text " * 500)))
    raw[60:70] = b"\xff" * 10
    assert isinstance(await read_one(tmp_path, bytes(raw)), Skipped)


@pytest.mark.parametrize("packing", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED])
async def test_damage_in_any_packing_is_a_skip(tmp_path: Path, packing: int) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        archive.writestr("word/document.xml", f"<w:document {W}>{p('Text ' * 500)}</w:document>")
    raw = bytearray(out.getvalue())
    for at in range(30, 120, 3):
        damaged = raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :]
        assert isinstance(await read_one(tmp_path, bytes(damaged)), Skipped | Document)


async def test_a_part_whose_name_is_no_text_is_a_skip(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("wörd.xml", "text")  # so its name is marked as UTF-8
    raw = out.getvalue().replace("ö".encode(), b"\xff\xff")
    found = await read_one(tmp_path, raw)
    assert isinstance(found, Skipped) and "can be read" in found.reason


async def test_entities_are_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]>'
        archive.writestr("word/document.xml", f"{bomb}<w:document {W}>{p('&a;')}</w:document>")
    found = await read_one(tmp_path, out.getvalue())
    assert isinstance(found, Skipped) and "entities" in found.reason


async def test_a_zip_bomb_is_refused_before_it_unpacks(tmp_path: Path) -> None:
    raw = docx(p("x" * 30_000_000))
    assert len(raw) < 100_000
    found = await read_one(tmp_path, raw)
    assert isinstance(found, Skipped) and "zip bomb" in found.reason
    small = await read_one(tmp_path, docx(p("x" * 100_000)), ReadBudget(file_bytes=50_000))
    assert isinstance(small, Skipped) and "zip bomb" in small.reason


async def test_deep_nesting_costs_nothing(tmp_path: Path) -> None:
    depth = 50_000
    assert await text(tmp_path, "<w:sdt>" * depth + p("deep") + "</w:sdt>" * depth) == "deep"


async def test_tables_in_tables_in_tables_cost_no_more_than_their_text(tmp_path: Path) -> None:
    depth = 20_000
    cells = "".join(f"<w:tbl><w:tr><w:tc>{p(f'cell {n}')}" for n in range(depth))
    found = await text(tmp_path, cells + "</w:tc></w:tr></w:tbl>" * depth)
    assert found.split() == " ".join(f"cell {n}" for n in range(depth)).split()


async def test_a_note_stands_in_the_section_that_refers_to_it(tmp_path: Path) -> None:
    named = '<w:style w:styleId="H"><w:name w:val="heading 1"/></w:style>'
    styles = f"<w:styles {W}>{named}</w:styles>"
    heading = '<w:pStyle w:val="H"/>'
    refers = '<w:p><w:r><w:t>Tea is paid.</w:t><w:footnoteReference w:id="2"/></w:r></w:p>'
    body = p("Meals", heading) + refers + p("Soup is not.") + p("Trips", heading) + p("By train.")
    notes = (
        f'<w:footnotes {W}><w:footnote w:id="2">{p("Not wine.")}</w:footnote>'
        f'<w:footnote w:id="3">{p("Nowhere referred to.")}</w:footnote></w:footnotes>'
    )
    assert await text(tmp_path, body, styles=styles, footnotes=notes) == (
        "# Meals\n\nTea is paid.[^1]\n\nSoup is not.\n\n[^1]: Not wine.\n\n# Trips\n\nBy train.\n\n"
        "Nowhere referred to."
    )


async def test_hidden_text_and_descriptions_of_images(tmp_path: Path) -> None:
    hidden = "<w:r><w:rPr><w:vanish{}/></w:rPr><w:t>{}</w:t></w:r>".format
    paragraph_mark = "<w:pPr><w:rPr><w:vanish/></w:rPr></w:pPr>"
    image = '<wp:docPr xmlns:wp="wp" name="Picture 1" descr="Two men at a vat."/>'
    body = (
        f"<w:p>{paragraph_mark}{hidden('', 'No.')}{hidden(' w:val=' + repr('0'), 'Yes.')}"
        f"<w:r><w:drawing>{image}</w:drawing></w:r></w:p>"
    )
    assert await text(tmp_path, body) == "Yes. (image: Two men at a vat)"
