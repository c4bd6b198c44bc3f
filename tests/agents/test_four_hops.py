"""Answers over four documents are read to their end, without a model."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import clew
from clew.cli.app import app
from conftest import open_tables

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
    with open_tables(tmp_path, {f"{name}.md": text for name, text in NOTES.items()}) as kb:
        answer = kb.ask(
            f"Which river flows through the birthplace of the founder of the publisher of {book}?"
        )
    assert answer.candidate == river


TOOLS = {
    "Pgfuse": "Pgfuse is a proxy for databases. It is written in the language Rillo.",
    "Rillo": "Rillo is a programming language. It was created by Tamsin Oakes at a bank.",
    "Tamsin Oakes": "Tamsin Oakes is an engineer. She was born in Wexcombe.",
    "Wexcombe": "Wexcombe is a town in the county of Marlshire.",
    "Marlshire": "Marlshire is a county. Its seat is Dunmorrow.",
    "Corvo": "Corvo is a programming language. It was created by Bertil Lang.",
    "Bertil Lang": "Bertil Lang is a mathematician. He was born in Aldersund.",
    "Aldersund": "Aldersund is a town on a fjord.",
}


def test_a_chain_that_ends_before_what_is_asked_is_not_told_as_sure(tmp_path: Path) -> None:
    for name, text in TOOLS.items():
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\n{text}", encoding="utf-8")
    with clew.open(tmp_path / "kb") as kb:
        kb.add([*tmp_path.glob("*.md")])
        county = kb.ask("In which county is the birthplace of the creator of rillo?")
        town = kb.ask("In which town was the creator of Rillo born?")
    assert county.candidate == "Marlshire" or county.confidence < 0.5
    assert town.candidate == "Wexcombe" and town.confidence >= 0.5


def test_a_path_whose_end_has_the_relation_asked_for_is_not_told_as_sure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = [
        ("Zinothal", "inhibits", "kinase R7"),
        ("kinase R7", "phosphorylates", "Sarvin"),
        ("Sarvin", "interacts_with", "Dolbin"),
        ("Dolbin", "expressed_in", "cerebellum"),
        ("Sarvin", "expressed_in", "liver"),
    ]
    rows = "\n".join("\t".join(fact) for fact in facts)
    (tmp_path / "graph.tsv").write_text(rows, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["import", "graph.tsv", "--kb", "kb"])
    assert done.exit_code == 0, done.output
    with clew.open(tmp_path / "kb") as kb:
        target = kb.ask("which tissue expresses the target of the enzyme that zinothal inhibits")
    assert target.candidate == "liver" or target.confidence < 0.5
