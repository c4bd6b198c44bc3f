"""What a question names by a code is found where it is defined, not where it is spoken of."""

from pathlib import Path

import pytest

from clew.config import Settings
from clew.retrieve.defined_terms import find_named_terms
from clew.testing.hashed_kb import open_hashed
from clew.text.definitions import defines_term

OPTIONS = """# quill-draw(1)

## OPTIONS

--onto <newbase>
:   Starting point of the new lines. May be any valid point, and not just an existing branch name.

--keep
:   Leaves the lines of the earlier map where they are, whatever the new one says of them.
"""
TALK = "# Drawing {n}\n\nYou may use --onto in map {n} to draw new lines on any point of it.\n"
FILLER = "# Sailing {n}\n\nBoat {n} goes out at dawn, and comes home with herring in the evening.\n"


async def test_the_definition_comes_before_what_only_names_the_option(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "options.md").write_text(OPTIONS)
    for n in range(6):
        (folder / f"talk{n}.md").write_text(TALK.format(n=n))
        (folder / f"filler{n}.md").write_text(FILLER.format(n=n))
    kb = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await kb.add([folder])
    found = await kb.search("What does --onto do to new lines on a map?", k=3)
    await kb.close()
    assert "options.md" in found.evidence.chunks[0].doc


@pytest.mark.parametrize(
    ("text", "defines"),
    [
        ("--onto <newbase>\n:   Starting point.", True),
        ("- `--onto` is where it starts", True),
        ("| Option: --onto | Meaning: where it starts |", True),
        ("- --onto\n- --keep", False),
        ("Use --onto: it helps", False),
        ("--onto-all\n:   Everything.", False),
    ],
)
def test_a_definition_says_what_its_term_means(text: str, defines: bool) -> None:
    assert defines_term("--onto", text) is defines


def test_the_terms_of_a_question() -> None:
    assert list(find_named_terms("What does work_mem do beside `fsync`?")) == ["work_mem", "fsync"]
    assert list(find_named_terms("What is a stanza?")) == ["stanza"]
    assert not find_named_terms("Who wrote the manual of the old town hall?")
