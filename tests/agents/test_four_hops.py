"""Answers over four documents are read to their end, without a model."""

from pathlib import Path

import pytest

import clew

NOTES = {
    "book": "# The Copper Gull\n\nThe Copper Gull is a novel. Its publisher is Harrow Press.",
    "press": "# Harrow Press\n\nHarrow Press is a publisher. It was founded by Imre Vasko in 1888.",
    "founder": "# Imre Vasko\n\nImre Vasko was a printer. Imre Vasko was born in Tolmer.",
    "town": "# Tolmer\n\nTolmer is a small town. The river Ister flows through Tolmer.",
    "other book": "# The Iron Tern\n\nThe Iron Tern is a novel. Its publisher is Lowen Press.",
    "other press": "# Lowen Press\n\nLowen Press was founded by Anke Solberg in 1871.",
    "other founder": "# Anke Solberg\n\nAnke Solberg was a printer who was born in Pellwick.",
    "other town": "# Pellwick\n\nPellwick is a small town. The river Orrin flows through Pellwick.",
}


@pytest.mark.parametrize(
    ("book", "river"), [("The Copper Gull", "Ister"), ("The Iron Tern", "Orrin")]
)
def test_a_chain_is_followed_until_nothing_asked_is_left(
    tmp_path: Path, book: str, river: str
) -> None:
    for name, text in NOTES.items():
        (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")
    with clew.open(tmp_path / "kb") as kb:
        kb.add([*tmp_path.glob("*.md")])
        answer = kb.ask(
            f"Which river flows through the birthplace of the founder of the publisher of {book}?"
        )
    assert answer.candidate == river
