"""PDF pages as they are joined: running lines, headings that open a page, contents, tables."""

import io
from pathlib import Path

import pytest

from clew.ingest.files import read
from clew.text.places import find_breadcrumbs, page_at
from clew.text.structure import find_blocks
from clew.types import Document

pypdf = pytest.importorskip("pypdf")
pytest.importorskip("pypdfium2")

Line = tuple[float, float, float, str]  # left, height, size (below 0: another font), text


def write_pdf(pages: list[list[Line]], bookmarks: list[tuple[int, str]] = ()) -> bytes:
    """Write a PDF whose lines stand where they are said to."""
    from pypdf.generic import ContentStream, DictionaryObject, NameObject

    writer = pypdf.PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    other = DictionaryObject({**font, NameObject("/BaseFont"): NameObject("/Courier")})
    fonts = DictionaryObject({NameObject("/F1"): font, NameObject("/F2"): other})
    for lines in pages:
        page = writer.add_blank_page(612, 792)
        stream = ContentStream(None, writer)
        stream.set_data(
            b"".join(
                b"BT /F%d %g Tf %g %g Td (%s) Tj ET\n"
                % (
                    1 + (size < 0),
                    abs(size),
                    left,
                    height,
                    text.replace("(", r"\(").replace(")", r"\)").encode(),
                )
                for left, height, size, text in lines
            )
        )
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        page.replace_contents(stream)
    for page_number, title in bookmarks:
        writer.add_outline_item(title=title, page_number=page_number)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def stack(*lines: str, size: float = 11) -> list[Line]:
    """Lines below each other."""
    return [(72, 720 - 16 * at, size, line) for at, line in enumerate(lines)]


async def read_text(tmp_path: Path, raw: bytes) -> Document:
    path = tmp_path / "book.pdf"
    path.write_bytes(raw)
    [found] = [item async for item in read([path])]
    assert isinstance(found, Document)
    return found


async def test_a_heading_that_opens_a_page_is_the_section_of_what_follows(tmp_path: Path) -> None:
    pages = [
        stack("3 Pumps", "Pumps lift water from the well to the tank."),
        stack("4 Valves", "Valves close the pipe when the tank is full."),
    ]
    found = await read_text(tmp_path, write_pdf(pages, [(0, "3 Pumps"), (1, "4 Valves")]))
    at = found.text.index("Valves close")
    assert find_breadcrumbs("book.pdf", found.text, at) == ("4 Valves",)
    assert page_at(found.text, at, 1) == 2
    assert [block.title for block in find_blocks(found.text) if block.kind == "heading"] == [
        "3 Pumps",
        "4 Valves",
    ]


@pytest.mark.parametrize("size", [11, 20])
async def test_names_with_numbers_on_every_page_are_no_running_headers(
    tmp_path: Path, size: float
) -> None:
    pages = [
        [
            (72, 720, size, f"Model {4711 + at}"),
            (72, 690, 11, f"It holds {at + 2} litres of {what} and comes with a lid."),
            (72, 60, 9, f"Kettle works, page {at + 1} of 5"),
        ]
        for at, what in enumerate(("water", "soup", "milk", "tea", "oil"))
    ]
    found = await read_text(tmp_path, write_pdf(pages))
    assert [f"Model {n}" in found.text for n in range(4711, 4716)] == [True] * 5
    assert "Kettle works" not in found.text
    assert ("## Model 4713" in found.text) == (size > 11)


async def test_a_sentence_that_some_pages_end_with_stays(tmp_path: Path) -> None:
    warning = "Pull the plug before you open the cover."
    pages = [
        stack("Handbook", f"Step {word} is done by {who}.", *([warning] if at < 3 else []), "7 May")
        for at, (word, who) in enumerate(
            zip("one two three four five six".split(), "Ann Bo Cy Di Ed Flo".split(), strict=True)
        )
    ]
    found = await read_text(tmp_path, write_pdf(pages))
    assert found.text.count(warning) == 3
    assert "Handbook" not in found.text and "7 May" not in found.text


async def test_bookmarks_are_headings_and_chapter_lines_are_none(tmp_path: Path) -> None:
    pages = [
        stack("2 Reading", "2.1 ASN.1 syntax", "The reader is case sensitive."),
        stack("Chapter 2: Reading 12", "Comments begin with two hyphens."),
    ]
    marks = [(0, "2 Reading"), (0, "ASN.1 syntax")]
    found = await read_text(tmp_path, write_pdf(pages, marks))
    assert "## 2 Reading\n" in found.text and "## 2.1 ASN.1 syntax\n" in found.text
    assert "Chapter 2" not in found.text and "two hyphens" in found.text


async def test_contents_and_indexes_are_left_out(tmp_path: Path) -> None:
    leader = " ." * 60
    contents = [f"{n} {word}{leader} {n + 4}" for n, word in enumerate("Aims Tools Use".split(), 1)]
    index = ["Index", "A", f"axle{leader} 3, 5", f"awl{leader} 7", "B", f"bolt{leader} 2"]
    pages = [stack("Contents", *contents), stack("The axle turns on a bolt."), stack(*index)]
    found = await read_text(tmp_path, write_pdf(pages))
    assert found.text.strip() == "The axle turns on a bolt."


async def test_rows_of_a_table_have_its_header(tmp_path: Path) -> None:
    rows = [("Valve", "Setting", "Torque"), ("V-1", "half open", "14 Nm"), ("V-2", "shut", "22 Nm")]
    cells = [
        (72.0 + 120 * column, 640 - 16 * at, 11, text)
        for at, row in enumerate(rows)
        for column, text in enumerate(row)
    ]
    page = [*stack("The valves are set by hand in spring."), *cells]
    prose = stack("The keeper reads the gauge.", "He writes 14 values down.", "Then he goes home.")
    found = await read_text(tmp_path, write_pdf([page, prose]))
    assert "| Valve: V-1 | Setting: half open | Torque: 14 Nm |" in found.text
    assert "| Valve: V-2 | Setting: shut | Torque: 22 Nm |" in found.text
    assert found.text.count("|") == 8 and "in spring.\n|" in found.text


async def test_a_comment_in_printed_code_is_no_heading_of_later_pages(tmp_path: Path) -> None:
    first = stack(
        "2 Unified system", "The file begins with two lines:", "# made by the cache tool.",
        "# DO NOT EDIT!", "text/plain:*.txt", "Programs read it at start.",
    )  # fmt: skip
    later = stack("The cache is read before other files.", "It has a header of six numbers.")
    document = await read_text(tmp_path, write_pdf([first, later], [(0, "2 Unified system")]))
    at = document.text.index("header of six")
    assert find_breadcrumbs("book.pdf", document.text, at) == ("2 Unified system",)
    assert "# DO NOT EDIT!" in document.text


def _place(rows: list[tuple[str, ...]]) -> list[Line]:
    return [
        (72.0 + 150 * column, 640 - 16 * at, 11, text)
        for at, row in enumerate(rows)
        for column, text in enumerate(row)
    ]


async def test_rows_without_a_header_keep_their_cells(tmp_path: Path) -> None:
    sheet = [("Weight", "6 kg"), ("Greatest height", "40 m"), ("Price", "180 euros")]
    parts = [("V-1", "shut", "14 Nm"), ("V-2", "half open", "22 Nm"), ("V-3", "open", "9 Nm")]
    prose = [("The keeper reads", "and then he goes"), ("the gauge at dawn", "home to write 14"),
             ("before he leaves", "values in a book")]  # fmt: skip
    pages = [[*stack("The pump."), *_place(rows)] for rows in (sheet, parts, prose)]
    found = await read_text(tmp_path, write_pdf(pages))
    assert "| Weight: 6 kg |\n| Greatest height: 40 m |\n| Price: 180 euros |" in found.text
    assert "| V-1 | shut | 14 Nm |\n| V-2 | half open | 22 Nm |" in found.text
    assert found.text.count("|") == 6 + 12  # text in two columns is no table


def _define(*terms: tuple[str, str, str]) -> list[Line]:
    """Terms in another font, alone or before the wide gap of a line, with bodies below."""
    lines: list[Line] = [(72, 740, 11, "These are all of the variables that the shell knows.")]
    for number, (term, first, second) in enumerate(terms):
        height = 720 - 48 * number
        lines.append((72, height, -11, term))
        lines.append((130, height - (16 if len(term) > 8 else 0), 11, first))
        lines.append((130, height - 32, 11, second))
    return lines


async def test_terms_are_found_by_where_they_stand(tmp_path: Path) -> None:
    long = [(f"variable_{n}", "Says how long it is", "to be kept.") for n in range(3)]
    pages = [_define(*long, ("UID", "The numeric id of", "the user.")), stack("No more is said.")]
    document = await read_text(tmp_path, write_pdf(pages))
    blocks = [b for b in find_blocks(document.text) if b.kind == "definition"]
    assert [b.title for b in blocks] == ["variable_0", "variable_1", "variable_2", "UID"]
    body = document.text[blocks[-1].start : blocks[-1].end]
    assert body == "UID\n:   The numeric id of\n    the user."


async def test_one_indent_in_another_font_is_no_list_of_terms(tmp_path: Path) -> None:
    pages = [_define(("variable_0", "Says how long it is", "to be kept."))]
    document = await read_text(tmp_path, write_pdf(pages))
    assert "variable_0\nSays how long it is\nto be kept." in document.text


async def test_a_term_at_the_end_of_a_page_stands_above_its_body(tmp_path: Path) -> None:
    long = [(f"variable_{n}", "Says how long it is", "to be kept.") for n in range(3)]
    first = [*_define(*long), (72.0, 500.0, -11.0, "last_variable")]
    second: list[Line] = [(130, 720, 11, "Is told on the next"), (130, 704, 11, "page.")]
    document = await read_text(tmp_path, write_pdf([first, second]))
    blocks = [b for b in find_blocks(document.text) if b.kind == "definition"]
    assert [b.title for b in blocks][-1] == "last_variable"
    assert document.text.endswith("last_variable\n:   Is told on the next\n    page.")


async def test_a_word_whose_font_changes_at_a_capital_is_two(tmp_path: Path) -> None:
    lines: list[Line] = [
        (72, 720, 11, "KDE"),
        (94.7, 720, -11, "The KDE desktop is made for JavaScript and others."),
    ]
    found = await read_text(tmp_path, write_pdf([lines]))
    assert found.text == "KDE The KDE desktop is made for JavaScript and others."
