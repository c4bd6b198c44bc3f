"""The structure of a text: blocks with their spans, sections, breadcrumbs and units to quote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.text.code_outline import find_code_headings, is_code
from clew.text.places import find_breadcrumbs, find_units, page_at
from clew.text.structure import find_blocks, has_structure, split_sections

GUIDE = """# Guide

Intro text here. This works well.

## Memory

pool_size (integer)
:   Sets the size of the pool. The default is 128MB.

    On large machines a quarter of the memory is good.

Do this:

1. Stop the server.
2. Copy the files.
3. Start it again.

| Name | Type |
|------|------|
| a | int |
| b | text |

Run it:

```
make

make install
```

  --onto <base>
      Where the new commits begin.
- one
- two
goes on
"""


def test_blocks_have_their_kind_and_span() -> None:
    found = [(b.kind, GUIDE[b.start : b.end].split("\n")[0]) for b in find_blocks(GUIDE)]
    assert ("definition", "pool_size (integer)") in found
    assert ("definition", "--onto <base>") in found
    assert ("code", "```") in found
    assert [text for kind, text in found if kind == "row"] == ["| a | int |", "| b | text |"]
    assert [text for kind, text in found if kind == "item"] == [
        "1. Stop the server.",
        "2. Copy the files.",
        "3. Start it again.",
        "- one",
        "- two",
    ]
    assert [text for kind, text in found if kind == "header"] == ["| Name | Type |"]


def test_breadcrumbs_are_the_sections_and_the_term() -> None:
    at = GUIDE.index("128MB")
    assert find_breadcrumbs("a.md", GUIDE, at, "Book") == (
        "Book",
        "Guide",
        "Memory",
        "pool_size (integer)",
    )
    assert find_breadcrumbs("a.py", "# a comment\nx = 1", 15, "def main") == ("def main",)
    assert page_at("one\n\n\ftwo\n\n\fthree", 14, 7) == 9
    assert page_at("one", 1, None) is None


def test_sections_know_their_path() -> None:
    assert [(s.heading, s.outer) for s in split_sections("a\n# A\nb\n## B\n### C\nc")] == [
        ("", 0),
        ("A", 0),
        ("A > B > C", 1),
    ]


@pytest.mark.parametrize("text", ["A sentence. Another one.", "Two\nlines.", "One.\n\nTwo: three."])
def test_prose_has_no_structure(text: str) -> None:
    assert not has_structure(text)
    assert {block.kind for block in find_blocks(text)} == {"paragraph"}


@pytest.mark.parametrize(
    "unit", ["- ", "a\n  b\n", "|", "| a |\n", "```\n", "a\n: b\n", "    ", "1. ", "\n", "# \n"]
)
def test_what_is_repeated_without_end_is_split_in_time(unit: str) -> None:
    text = unit * 10_000
    assert all(0 <= b.start <= b.end <= len(text) for b in find_blocks(text))


PIECES = st.sampled_from(
    [
        "a word",
        "\n",
        "\n\n",
        "    ",
        "- ",
        "1. ",
        "# ",
        "```\n",
        "| a | b |\n",
        ":   ",
        "|---|---|\n",
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_units_lie_within_any_text(text: str) -> None:
    for block in find_blocks(text):
        assert text[block.start : block.end].strip() == text[block.start : block.end]
    for found in find_units(text):
        assert 0 <= found.start <= found.end <= len(text)


def test_the_outline_of_code() -> None:
    source = (
        "import os\n\n\n@cached\nclass Store:\n    def read(self) -> str:\n        return ''\n\n"
        "async def main():\n    pass\n"
    )
    found = list(find_code_headings(source, "a.py"))
    assert [(one.level, one.title) for one in found] == [(1, "Store"), (2, "read"), (1, "main")]
    assert source[found[0].start :].startswith("@cached")
    c = "static int add(int a, int b)\n{\n  if (a) {\n  }\n}\n"
    assert [one.title for one in find_code_headings(c, "a.c")] == ["add"]
    assert is_code("src/a.PY") and not is_code("notes.md")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "It is the\n   duty of the keeper to write both values.\n   He may not leave.",
            "paragraph",
        ),
        ("This\n   sequence number is increasing on each page.", "paragraph"),
        ("Es ist die\n   Pflicht des Wärters, beide Werte zu schreiben.", "paragraph"),
        ("Time to live\n   The number of hops that are left.", "definition"),
        ("-a, --all\n   do not ignore entries", "definition"),
        ("if\n   tests a command and runs another", "definition"),
    ],
)
def test_a_term_does_not_run_on_into_its_body(text: str, kind: str) -> None:
    assert find_blocks(text)[0].kind == kind


def test_a_number_within_a_sentence_begins_no_item() -> None:
    text = "The process returns a status of\n127. If it is found, the status is 126."
    assert [block.kind for block in find_blocks(text)] == ["paragraph"]
    steps = "Do what is said here\n1. Stop it\n2. Start it"
    assert [block.kind for block in find_blocks(steps)] == ["paragraph", "item", "item"]


@pytest.mark.parametrize(
    ("text", "units"),
    [
        (
            "-v, --verbose     Print more. Given twice, print all.\n"
            "-q, --quiet       Print only errors.\n"
            "-o FILE\n                  Write to FILE.\n",
            ["-v, --verbose     Print", "-q, --quiet       Print", "-o FILE\n"],
        ),
        (
            "Descaling: Boil some vinegar. Rinse twice.\nStoring: Wind the cord. Keep it dry.\n",
            ["Descaling: Boil", "Storing: Wind"],
        ),
        (
            "Read this first. To open the lid, press the latch. Lift it. To reset the counter, "
            "hold the star key.",
            ["Read this first.", "To open the lid, ", "To reset the counter, "],
        ),
        ("Name: Hume\nFounded: 1210\n", ["Name: Hume\nFounded: 1210"]),
        ("To open the lid, press the latch. Lift it.", ["To open the lid, press the latch. Lift"]),
        ("Note: Keep the lid closed.\nThe lamp is hot.", ["Note: Keep the lid closed.\nThe"]),
    ],
)
def test_options_labels_and_tasks_are_units_of_their_own(text: str, units: list[str]) -> None:
    found = [text[one.start : one.end] for one in find_units(text)]
    assert len(found) == len(units)
    assert all(one.startswith(begin) for one, begin in zip(found, units, strict=True))


@pytest.mark.parametrize("rule", ["|:-|-:|", "|-|-|", "- | -", "|---|---|"])
def test_one_dash_is_enough_below_the_names_of_columns(rule: str) -> None:
    kinds = [one.kind for one in find_blocks(f"| a | b |\n{rule}\n| 1 | 2 |\n")]
    assert kinds == ["header", "row"]


@pytest.mark.parametrize("line", ["-", "--", "|", "- item"])
def test_dashes_without_bars_are_no_rule_of_a_table(line: str) -> None:
    assert all(one.kind != "header" for one in find_blocks(f"| a | b |\n{line}\n| 1 | 2 |\n"))
