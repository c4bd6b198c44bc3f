"""The sections of source code and settings, in citations and as what is quoted."""

from pathlib import Path

import pytest

import clew
from clew.ingest.chunk import BySentences
from clew.text.code_outline import find_code_sections
from clew.text.places import find_breadcrumbs
from clew.types import Document

KILN = '''"""Tools for a pottery."""
CONES = 12


class Kiln:
    """A kiln for stoneware."""

    def fire(self, cone: int) -> None:
        """Raise the temperature by sixty degrees per hour until the cone bends."""
        self.cone = cone

    def cool(self) -> None:
        """Wait twelve hours before the door may be opened."""
        self.hours = 12

    class Shelf:
        width = 40


SHELVES = [Kiln.Shelf() for _ in range(CONES)]


def glaze(pot: str) -> str:
    """Dip a pot into the bucket for three seconds."""

    def drip() -> None:
        """Class of drips that fall."""

    return pot
'''


def paths(text: str, name: str) -> list[str]:
    return [section.heading for section in find_code_sections(text, name)]


def test_sections_of_python_nest_and_end() -> None:
    assert paths(KILN, "kiln.py") == [
        "",
        "Kiln",
        "Kiln > fire",
        "Kiln > cool",
        "Kiln > Shelf",
        "",
        "glaze",
        "glaze > drip",
        "glaze",
    ]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "a.go",
            "package a\n\ntype Loom struct {\n\tn int\n}\n\n// Beat it.\nfunc (l *Loom) Beat() {\n"
            "\tgo func() {\n\t}()\n}\n\nconst Max = 3\n",
            ["", "Loom", "Loom.Beat", ""],
        ),
        (
            "a.rs",
            "#[derive(Debug)]\npub struct Loom<T> {\n    n: T,\n}\n\nimpl<T> Loom<T> {\n    "
            "fn new() {}\n}\nimpl fmt::Display for Loom {\n"
            "    pub(crate) async fn show(&self) {}\n}\n",
            ["Loom", "Loom > new", "Loom > show"],
        ),
        (
            "a.ts",
            "export class Hive extends Box {\n  n = 1;\n\n  add(f: Frame): void {\n    if (f) {\n"
            "    }\n    f.each(function () {\n    });\n  }\n}\n\n"
            'export const smoke = async (h) => {\n};\n\ntest("x", () => {\n});\n',
            ["Hive", "Hive > add", "smoke", ""],
        ),
        (
            "A.java",
            "class Ferry {\n    int seats = 2;\n\n    @Override\n    public int board(List<P> p)\n"
            "    {\n        while (true) {\n        }\n    }\n}\n",
            ["Ferry", "Ferry > board"],
        ),
        ("a.toml", "x = 1\n[a]\ny = [\n1]\n[[a.b]] # c\nz = 2\n", ["", "a", "a.b"]),
        ("a.yml", "a:\n  b: 1\n  c:\n    d: 2\nlist:\n  - x: 1\ne: 3\n", ["a", "a > c", "list"]),
        ("a.sql", "CREATE TABLE IF NOT EXISTS pots (\n  id int\n);\n", ["pots"]),
    ],
)
def test_sections_of_other_languages(name: str, text: str, expected: list[str]) -> None:
    assert paths(text, name) == expected


def test_a_passage_that_begins_within_a_class_has_its_sections() -> None:
    document = Document("k", KILN, "", ("kiln.py",), {"format": "code"})
    crumbs = {}
    for chunk in BySentences(size=60)(document):
        for word in ("sixty", "twelve", "width", "SHELVES", "bucket"):
            if word in chunk.text:
                at = chunk.text.index(word)
                crumbs[word] = find_breadcrumbs("kiln.py", chunk.text, at, chunk.heading)
    assert crumbs == {
        "sixty": ("Kiln", "fire"),
        "twelve": ("Kiln", "cool"),
        "width": ("Kiln", "Shelf"),
        "SHELVES": (),
        "bucket": ("glaze",),
    }


def test_a_citation_names_the_function(tmp_path: Path) -> None:
    (tmp_path / "kiln.py").write_text(KILN)
    with clew.open(tmp_path / "kb") as base:
        base.add(tmp_path / "kiln.py")
        answer = base.ask("How long must one wait before the door may be opened?")
    assert answer.citations[0].heading == "Kiln > cool"
    assert "sixty" not in answer.citations[0].quote
