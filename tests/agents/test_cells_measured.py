"""A row of a table in a document tells what "how fast" asks for, not the column that is named."""

from pathlib import Path

import clew

SHEET = """# Belt trials

| Size | Rollers | Speed | Temperature |
|---|---|---|---|
| narrow | 14 | 2.1 m/s | 38 °C |
| wide | 22 | 3.4 m/s | 51 °C |
"""


def test_how_fast_is_told_by_the_speed_and_not_by_the_noun_that_is_named(tmp_path: Path) -> None:
    file = tmp_path / "belts.md"
    file.write_text(SHEET, encoding="utf-8")
    with clew.open(tmp_path / "kb") as base:
        base.add([file])
        fast = base.ask("How fast did the wide rollers turn?")
        hot = base.ask("How hot did the narrow rollers get?")
        many = base.ask("How many rollers does the wide belt have?")
    assert "3.4" in fast.candidate
    assert "38" in hot.candidate
    assert "22" in many.candidate
