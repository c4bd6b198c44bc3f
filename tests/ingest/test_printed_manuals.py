"""Manual pages that were printed to a text file, with tab stops, as `col -b` writes them."""

from pathlib import Path

import pytest

from clew.ingest.files import read
from clew.text.structure import find_blocks, split_sections
from clew.types import Document

PAGE = """\
KILN(1)\t\t\t\t User Commands\t\t\t\tKILN(1)

NAME
       kiln - fire pots

OPTIONS
   Heating
       -h, --heat=DEGREES
\t      heat  to  this  temperature; more\thelps nothing and cracks the
\t      glaze

       -k     keep the door shut (see -q,
\t      -w and KEEP)

       --dry  only say what would be done

   Cooling
       -w, --wait
\t      wait until the kiln is cold

EXIT STATUS
       0
\t   fired

       3
\t   the door stood open

potter 2.1\t\t\t  May 2024\t\t\t\tKILN(1)
"""


def write(path: Path, text: str) -> None:
    path.write_text(text)


async def read_page(path: Path, text: str) -> Document:
    write(path, text)
    [found] = [item async for item in read([path])]
    assert isinstance(found, Document), found
    return found


@pytest.fixture
async def page(tmp_path: Path) -> Document:
    return await read_page(tmp_path / "kiln.txt", PAGE)


async def test_a_page_is_called_as_its_source_would_be(page: Document) -> None:
    assert page.title == "kiln(1)"


async def test_sections_and_subsections_are_headings(page: Document) -> None:
    paths = [one.path for one in split_sections(page.text)]
    assert ("OPTIONS", "Heating") in paths
    assert ("OPTIONS", "Cooling") in paths
    assert ("EXIT STATUS",) in paths


async def test_an_option_is_a_term_wherever_its_text_begins(page: Document) -> None:
    told = {
        one.title: " ".join(page.text[one.start : one.end].split())
        for one in find_blocks(page.text)
        if one.kind == "definition"
    }
    assert "cracks the glaze" in told["-h, --heat=DEGREES"]
    assert "keep the door shut" in told["-k"]
    assert "only say what would be done" in told["--dry"]
    assert "the door stood open" in told["3"]


async def test_what_only_lays_out_the_page_is_left_out(page: Document) -> None:
    assert "\t" not in page.text
    assert "KILN(1)" not in page.text
    assert "heat to this temperature; more helps nothing" in page.text


async def test_overstruck_letters_are_one(tmp_path: Path) -> None:
    page = await read_page(tmp_path / "kiln.txt", PAGE.replace("NAME", "N\bNA\bAM\bME\bE"))
    assert page.text.startswith("## NAME\n")


async def test_other_texts_keep_their_tabs(tmp_path: Path) -> None:
    page = await read_page(tmp_path / "pots.txt", "Pots\n\nbowl\t3\njug\t4\n")
    assert "bowl\t3" in page.text
