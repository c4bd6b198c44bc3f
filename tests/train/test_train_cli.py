"""`clew train` from the command line on a tiny model, then served, merged and resumed."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from clew import sync
from clew.cli.app import app
from clew.config import load_settings
from clew.engine import KnowledgeBase

CONFIG = """
steps = 2
questions = 2
group = 2
lr = 0.001
lora_rank = 4
turns = 2
brief = true
length = 256
step_tokens = 12
reply_tokens = 64
dev = 1
eval_every = 1
sft_epochs = 1
"""
PAGES = {
    "bridge": "# Marrow Bridge\n\nMarrow Bridge was designed by Ilse Brandvik.\n",
    "ilse": "# Ilse Brandvik\n\nIlse Brandvik was born in Hallowmere.\n",
}
QUESTIONS = [
    {
        "id": str(number),
        "question": f"Who designed Marrow Bridge? {number}",
        "answer": "Ilse Brandvik",
        "gold_triples": [["Marrow Bridge", "designer", "Ilse Brandvik"]],
    }
    for number in range(4)
]


def clew(*words: str | Path, code: int = 0) -> Any:
    """Run the command in this process, so that torch is loaded once; its JSON, or what it says."""
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout.splitlines()[-1]) if code == 0 else " ".join(done.output.split())


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base without vectors, four questions, and no model yet."""
    folder = tmp_path_factory.mktemp("train")
    for name, text in PAGES.items():
        (folder / f"{name}.md").write_text(text)
    rows = [*QUESTIONS, {"id": "x", "question": "unanswerable?", "answerable": False}]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = load_settings(None).model_copy(update={"kb": folder / "kb"})

    async def build() -> None:
        kb = await KnowledgeBase.open(settings, create=True, embed=False)
        await kb.add([folder / f"{name}.md" for name in PAGES], extractor="offline")
        await kb.close()

    sync.run(build())
    return folder


def test_what_is_lacking_is_said_before_anything_is_loaded(house: Path) -> None:
    assert "--model, --out" in clew("train", "--questions", house / "questions.jsonl", code=2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_run_from_the_command_line_is_served_as_it_was_trained(house: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    from clew.train import toy

    toy.make_model(1, length=1024, family="Llama").save_pretrained(house / "tiny")
    toy.make_tokenizer().save_pretrained(house / "tiny")
    (house / "run.toml").write_text(CONFIG)
    out, at = house / "run", ("--kb", house / "kb")
    given = (
        *("--questions", house, "--model", house / "tiny", "--out", out, *at),
        *("--config", house / "run.toml", "--recipe", "graph-r1+bm25"),
    )
    told = clew("train", *given)
    assert told["steps"] == 2 and told["model"] == str(out / "model")
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 0, 1]  # the dev questions, then two steps
    assert rows[1]["turns"] > 0 or rows[1]["formed"] < 1
    assert clew("train", *given, "--steps", "3")["steps"] == 3
    question = QUESTIONS[0]["question"]
    asked = clew("ask", question, "--recipe", "graph-r1+bm25", "--model", out, *at)
    thoughts = [step for step in asked["trace"] if step["step"] == "think"]
    # As in training: the question alone, and at most two queries before the last step.
    assert thoughts[0]["input"] == question and len(thoughts) <= 3
    held = json.loads((out / "model" / "clew.json").read_text())
    assert held == {
        **{"recipe": "graph-r1+bm25", "turns": 2, "brief": True, "step_tokens": 12},
        **{"k": 5, "characters": 256, "show": "fused"},
    }
    assert "is not served" in clew("ask", question, "--recipe", "none", *at, code=1)
    assert "begun otherwise (recipe" in clew("train", *given[:-1], "graph-r1+naive", code=1)
    whole = clew("train", "--merge", out, house / "whole")
    assert whole["dtype"] == "float32" and (house / "whole" / "config.json").is_file()
    assert "is not empty" in clew("train", "--merge", out, house / "whole", code=1)
    assert "no adapter" in clew("train", "--merge", house / "whole", house / "other", code=1)
