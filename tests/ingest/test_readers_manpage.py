"""Manual pages that define macros, strings and conditions of their own are read as they print."""

from pathlib import Path

import pytest

from clew.ingest.files import read
from clew.ingest.readers.source import Skipped
from clew.text.places import find_breadcrumbs
from clew.types import Document


def write(path: Path, source: str) -> None:
    path.write_text(source)


async def read_page(path: Path, source: str) -> Document | Skipped:
    write(path, source)
    [found] = [item async for item in read([path])]
    return found


async def text_of(path: Path, source: str) -> str:
    found = await read_page(path, source)
    assert isinstance(found, Document), found
    return found.text


async def test_a_page_whose_preamble_appends_to_macros_within_a_condition(tmp_path: Path) -> None:
    text = await text_of(
        tmp_path / "quill.1",
        '\'\\" t\n.TH "QUILL" "1"\n.ie \\n(.g .ds Aq \\(aq\n.el       .ds Aq \'\n'
        ".de URL\n\\fI\\\\$2\\fP <\\\\$1>\\\\$3\n..\n.als MTO URL\n.if \\n[.g] \\{\\\n"
        ".  mso www.tmac\n"
        ".  am URL\n.    ad l\n.  .\n.  am MTO\n.    ad l\n.  .\n.  LINKSTYLE blue R < >\n.\\}\n"
        '.SH "NAME"\nquill \\- draws the users\\*(Aq maps\n.SH BUGS\nSee\n'
        '.URL "https://quill.example" '
        '"the list" "."\n',
    )
    assert text == (
        "## NAME\n\nquill - draws the users' maps\n\n## BUGS\n\n"
        "See the list <https://quill.example>."
    )


async def test_macros_of_the_page_stand_for_their_lines(tmp_path: Path) -> None:
    text = await text_of(
        tmp_path / "pens.5",
        '.Dd May 1\n.Dt PENS 5\n.Sh KINDS\n.de pen \\" name, width\n.Bl -tag\n'
        ".It Width\n\\\\$2 mm\n"
        '.if "\\\\$1"" (no name)\n.ie "\\\\$3"any" any ink\n.el \\\\$3 ink\n.if !"\\\\$2"4" \\{\\\n'
        ".It Sharpened\nweekly\n.\\}\n.El\n..\n.Ss Goose\nA broad one.\n.pen goose 4 black\n"
        '.Ss Crow\nA fine one.\n.pen "" 1 any\n',
    )
    assert text == (
        "## KINDS\n\n### Goose\n\nA broad one.\n\nWidth\n:   4 mm black ink\n\n"
        "### Crow\n\nA fine one.\n\n"
        "Width\n:   1 mm (no name) any ink\n\nSharpened\n:   weekly"
    )


async def test_lines_of_macros_that_nobody_defines_keep_their_text(tmp_path: Path) -> None:
    text = await text_of(
        tmp_path / "quill.1",
        ".TH QUILL 1\n.PD 0\n.SH FILES\nMaps lie in\n.FN /etc/maps ,\nand\n"
        ".quillignore names the others.\n"
        "'draft' is a state.\n.ft CW\n.in +4\n",
    )
    assert text == (
        "## FILES\n\nMaps lie in /etc/maps , and .quillignore names the others. 'draft' is a state."
    )


@pytest.mark.parametrize(("body", "refers"), [(".so man1/pen.1\n", True), (".nh\n", False)])
async def test_a_page_without_text_says_why(tmp_path: Path, body: str, refers: bool) -> None:
    found = await read_page(tmp_path / "quill.1", ".TH QUILL 1\n" + body)
    assert isinstance(found, Skipped)
    assert ("refers to another page" in found.reason) == refers


async def test_macros_that_call_each_other_for_ever_end(tmp_path: Path) -> None:
    calls = ".b x\n" * 50
    text = await text_of(
        tmp_path / "quill.1",
        f".TH QUILL 1\n.de a\n{calls}..\n.de b\n{calls.replace('b', 'a')}..\n.a\n.SH END\nDone.\n",
    )
    assert text.endswith("Done.")


async def test_a_list_in_columns_is_a_table(tmp_path: Path) -> None:
    text = await text_of(
        tmp_path / "loom.1",
        ".Dd May 1, 2024\n.Dt LOOM 1\n.Sh KEYS\nThese keys work:\n"
        '.Bl -column "Key" "Function" -offset indent\n.It Sy "Key" Ta Sy "Function"\n'
        '.It Li "n" Ta "Repeat last search"\n.It Li "H" Ta "Jump to the start"\nof the row\n.El\n'
        "Others do nothing.\n.Bl -tag\n.It Fl a\nAll rows.\n.El\n",
    )
    assert "| Key: n | Function: Repeat last search |" in text
    assert "| Key: H | Function: Jump to the start of the row |" in text
    assert "\n\nOthers do nothing.\n" in text and "-a\n:   All rows." in text


@pytest.mark.parametrize(
    ("table", "labelled"),
    [
        ("l l.\nred\tstop\ngreen\tgo\n", False),
        ("lB lB\nl l.\nLight\tMeaning\nred\tstop\n", True),
        ("l l.\nLight\tMeaning\n_\nred\tstop\n", True),
        ("l l.\n\\fBLight\\fR\t\\fBMeaning\\fR\nred\tstop\n", True),
    ],
)
async def test_the_first_row_names_columns_if_it_is_set_apart(
    tmp_path: Path, table: str, labelled: bool
) -> None:
    text = await text_of(tmp_path / "lamp.1", f".TH LAMP 1\n.SH LIGHTS\n.TS\n{table}.TE\n")
    row = "| Light: red | Meaning: stop |" if labelled else "| red | stop |"
    assert row in text.splitlines()


async def test_a_sign_that_is_meant_literally_is_kept(tmp_path: Path) -> None:
    text = await text_of(
        tmp_path / "dots.1",
        ".Dd May 1, 2020\n.Dt DOTS 1\n.Os\n.Sh DESCRIPTION\nA dot\n.Pq Ql \\&.\nends it.\n",
    )
    assert "A dot (‘.’) ends it." in text


async def test_comments_in_all_forms_are_no_text(tmp_path: Path) -> None:
    text = await text_of(
        tmp_path / "page.3",
        ".TH PAGE 3\n.SH NAME\npage \\- a test\n.SH OPTIONS\n'''.TP\n'''.B \\-\\-secret\n"
        "''' It was removed.\n.\\\" No text.\n.  \\\" Neither.\n'\\\" Nor this.\n\\\" Nor that.\n"
        '.TP\n.\\" none\n.B \\-\\-public\nPrints the public part.\n',
    )
    assert text.endswith("## OPTIONS\n\n--public\n:   Prints the public part.")
    assert "secret" not in text and "removed" not in text


async def test_a_condition_alone_on_its_line_is_for_the_next_one(tmp_path: Path) -> None:
    text = await text_of(
        tmp_path / "kiln.8",
        ".TH KILN 8\n.SH OPTIONS\n.ie '2'1'\n.IP \"1, default\"\n.el\n.IP 1\nThe old kiln.\n"
        ".ie '2'2'\n.IP \"2, default\"\n.el\n.IP 2\nThe new kiln.\n",
    )
    assert text == "## OPTIONS\n\n1\n:   The old kiln.\n\n2, default\n:   The new kiln."


ALIASES = """.Dd May 1, 2020
.Dt QUILL 1
.Sh KEYS
.Bl -tag -width Ds
.It Ic #
Shows the number.
.It Xo
.Tg pots
.Ic show-pots
.Op Fl a
.Xc
.D1 Pq alias: Ic pots
Shows all pots.
.It Xo Ic show-kilns
.Op Fl b
.Xc
.D1 Pq alias: Ic kilns
Shows all kilns.
.El
.Sh OPTIONS
.Bl -tag -width Ds
.It Ic glaze-time
Waits for the glaze.
.El
"""


async def test_sections_stand_behind_code_that_begins_a_definition(tmp_path: Path) -> None:
    text = await text_of(tmp_path / "quill.1", ALIASES)
    assert "show-pots [-a]\n:   ```" in text and "show-kilns [-b]\n:   ```" in text
    assert "Tg" not in text
    for term, section in (("glaze-time", "OPTIONS"), ("show-kilns [-b]", "KEYS"), ("#", "KEYS")):
        crumbs = find_breadcrumbs("quill.1", text, text.index(f"\n{term}\n") + 1)
        assert crumbs == (section, term)
