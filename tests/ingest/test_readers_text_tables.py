"""Tables that are drawn in plain text are read by rows with their headers; diagrams stay."""

from pathlib import Path

import pytest

from clew.ingest.files import read
from clew.ingest.readers.text_terms import mark_text_terms
from clew.types import Document

GRID = """   +------+-------------+
   | Code | Meaning     |
   +------+-------------+
   | 11   | clock stops |
   |      | at night    |
   | 23   | no ink      |
   +------+-------------+"""
COLUMNS = """Berth    Depth   Fee
---------------------------
north    4 m     12 crowns
south    2 m     9 crowns"""
DIAGRAM = """+-+-+-+-+
| A | B |
+-+-+-+-+"""
RULER = """ 0                   1
 0 1 2 3 4 5 6 7 8 9 0 1 2 3
+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
|   Kind    |     Length    |
+-+-+-+-+-+-+-+-+-+-+-+-+-+-+"""
ARROWS = """  +--------+        +-------+
  | Sluice | -----> | Wheel |
  +--------+        +-------+"""
BOX = """╭──────┬─────────────╮
│ Code │ Meaning     │
╞══════╪═════════════╡
│ 11   │ clock stops │
│      │ at night    │
├──────┼─────────────┤
│ 23   │ no ink      │
╰──────┴─────────────╯"""
HEAVY = """    ┏━━━━━━┳━━━━━━━━━━━━━┓
    ┃ Code ┃ Meaning     ┃
    ┣━━━━━━╋━━━━━━━━━━━━━┫
    ┃ 11   ┃ clock stops ┃
    ┃ 23   ┃ no ink      ┃
    ┗━━━━━━┻━━━━━━━━━━━━━┛"""
OPEN_BOX = """ Code │ Meaning
──────┼─────────
 11   │ stops
 23   │ no ink"""
CROSSED = OPEN_BOX.replace("│", "|").replace("┼", "+").replace("─", "-")
PIPES = """| Code | Meaning |
|------|:-------:|
| 11   | stops   |
| 23   | no ink  |"""
TREE = """mill
├── wheel
│   └── paddles
└── stones"""
LONG_RULE = "Berth   Depth\n" + "-" * 3000 + "."


@pytest.mark.parametrize(
    ("drawn", "read_as"),
    [
        (GRID, "| Code: 11 | Meaning: clock stops at night |\n| Code: 23 | Meaning: no ink |"),
        (
            COLUMNS,
            "| Berth: north | Depth: 4 m | Fee: 12 crowns |\n"
            "| Berth: south | Depth: 2 m | Fee: 9 crowns |",
        ),
        (BOX, "| Code: 11 | Meaning: clock stops at night |\n| Code: 23 | Meaning: no ink |"),
        (HEAVY, "| Code: 11 | Meaning: clock stops |\n| Code: 23 | Meaning: no ink |"),
        (OPEN_BOX, "| Code: 11 | Meaning: stops |\n| Code: 23 | Meaning: no ink |"),
        (CROSSED, "| Code: 11 | Meaning: stops |\n| Code: 23 | Meaning: no ink |"),
        (PIPES, "| Code: 11 | Meaning: stops |\n| Code: 23 | Meaning: no ink |"),
        (TREE, TREE),
        (f"It begins so:\n{RULER}", f"It begins so:\n```\n{RULER}\n```"),
        *((one, f"```\n{one}\n```") for one in (DIAGRAM, RULER, ARROWS)),
        (LONG_RULE, LONG_RULE),
    ],
)
async def test_drawn_tables_are_rows(tmp_path: Path, drawn: str, read_as: str) -> None:
    write(tmp_path / "a.txt", f"It says this.\n\n{drawn}\n\nMore of it.\n")
    [found] = [item async for item in read([tmp_path / "a.txt"])]
    assert isinstance(found, Document)
    assert found.text.rstrip() == f"It says this.\n\n{read_as}\n\nMore of it."


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


BARRED = """    Widget       | Code
   ------------------------
    'ALPHA'      | alf
    'BRAVO'      | brv"""
RFC = """1. Scope

   This memo describes the pump.  It is the
   duty of the keeper to read it.

2. Terms

   valve
      A part of the pump.

3. Security

   None.
"""


async def test_columns_parted_by_bars_are_cells(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", f"It says this.\n\n{BARRED}\n\nMore of it.\n")
    [found] = [item async for item in read([tmp_path / "a.txt"])]
    assert isinstance(found, Document)
    assert "| Widget: 'ALPHA' | Code: alf |\n| Widget: 'BRAVO' | Code: brv |" in found.text


async def test_the_margin_of_all_sections_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", RFC)
    [found] = [item async for item in read([tmp_path / "a.txt"])]
    assert isinstance(found, Document)
    assert "pump.  It is the\nduty of the keeper" in found.text
    assert "\nvalve\n   A part of the pump.\n" in found.text


async def test_words_that_a_formatter_cut_are_joined(tmp_path: Path) -> None:
    cut = "It is kept in‐\n   side the shed, machine‐\n   made, and is machine‐made all over.\n"
    write(tmp_path / "a.txt", cut)
    [found] = [item async for item in read([tmp_path / "a.txt"])]
    assert isinstance(found, Document)
    assert found.text.split()[:9] == "It is kept inside the shed, machine-made, and is".split()


TERMS = """   %t    a tab
         as wide as eight

         or as set

   %n    the end of a line
   --long-one
         which is a long one
   %%    a sign for itself"""
READ_TERMS = """   %t
   :   a tab
       as wide as eight

       or as set

   %n
   :   the end of a line

   --long-one
         which is a long one

   %%
   :   a sign for itself"""


HANGING = """   Sentry:  A sensor at the edge of an orchard that
      reports the frost.

   Rime window:  The hours before sunrise."""
READ_HANGING = """   Sentry
   :   A sensor at the edge of an orchard that
       reports the frost.

   Rime window
   :   The hours before sunrise."""


ABOVE = """   open VALVE
          Opens the valve in two steps.

          It waits between them.

   close VALVE
          Closes the valve.

      close 12

   --dry-run
          Says what would be done."""
READ_ABOVE = """   open VALVE
   :   Opens the valve in two steps.

       It waits between them.

   close VALVE
   :   Closes the valve.

       close 12

   --dry-run
   :   Says what would be done."""
SECTIONS = """NAME
       pump moves water

OPTIONS
       the pump has two of them

NOTES
       the pump is blue"""


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        (TERMS, READ_TERMS),
        (ABOVE, READ_ABOVE),
        (ABOVE.partition("\n\n   --dry")[0], None),
        (SECTIONS, None),
        (HANGING, READ_HANGING),
        (HANGING.partition("\n\n")[0], None),
        ("From:  Ann Moe\nSubject:  The frost\n\nDate:  last May", None),
        ("ax   1 2\nbx   3 4\ncx   5 6", "ax   1 2\nbx   3 4\ncx   5 6"),
        ("It is  one of them\nand so  is another\none that  comes", None),
        ("a    one of    them\nb    two of    them\nc    all of    them", None),
    ],
)
def test_a_term_has_the_text_beside_it(written: str, read_as: str | None) -> None:
    found = mark_text_terms(f"Signs:\n\n{written}\n\nMore.")
    assert found == f"Signs:\n\n{read_as or written}\n\nMore."
