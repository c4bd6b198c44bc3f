"""Passages of a manual are ranked by what their best unit says, not by words here and there."""

from pathlib import Path

import clew


def test_the_passage_that_says_it_in_one_piece_comes_first(tmp_path: Path) -> None:
    scattered = "\n\n".join(
        f"## Chapter {number}\n\nThe remote server keeps a log. {filler}"
        for number, filler in enumerate(
            (
                "A branch of the tree may be cut.",
                "Overwrite protection is a switch on the disk.",
                "The option screen is blue, and a branch office is remote.",
                "Overwrite the label. Use the option key. A remote is lost.",
            )
        )
    )
    whole = (
        "## Pushing\n\n--with-lease\n:   This option lets you overwrite a remote branch only if"
        " nobody changed it.\n\n--quiet\n:   Say nothing.\n"
    )
    (tmp_path / "tool.md").write_text(f"# Tool\n\n{scattered}\n\n{whole}", encoding="utf-8")
    with clew.open(tmp_path / "kb") as kb:
        kb.add(tmp_path / "tool.md")
        found = kb.search("Which option can overwrite a remote branch?", k=1)
    assert "--with-lease" in found.evidence.chunks[0].text
