"""`clew train` from the command line on a tiny model, then served, merged and resumed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clew import sync
from clew.config import load_settings
from clew.engine import KnowledgeBase

CONFIG = """
steps = 2
questions = 2
group = 2
lr = 0.001
lora_rank = {rank}
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


def clew(*words: str | Path, cwd: Path, code: int = 0) -> Any:
    """Run the command; its JSON, or what it says when it should fail."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CLEW", "OPENAI"))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "clew", *map(str, words), "--json"],
        cwd=cwd,
        env=kept | {"COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout.splitlines()[-1]) if code == 0 else " ".join(done.stderr.split())


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
    said = clew("train", "--questions", "questions.jsonl", cwd=house, code=2)
    assert "--model, --out" in said


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 4])
def test_a_run_from_the_command_line_is_served_as_it_was_trained(house: Path, rank: int) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    from clew.train import toy

    toy.model(1, length=1024).save_pretrained(house / "tiny")
    toy.tokenizer().save_pretrained(house / "tiny")
    (house / "run.toml").write_text(CONFIG.format(rank=rank))
    out = f"run{rank}"
    given = ["--questions", ".", "--model", "tiny", "--out", out, "--config", "run.toml"]
    told = clew("train", *given, "--recipe", "graph-r1+bm25", cwd=house)
    assert told["steps"] == 2 and told["model"] == f"{out}/model"
    rows = [json.loads(line) for line in (house / out / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 0, 1]  # the dev questions, then two steps
    again = clew("train", *given, "--recipe", "graph-r1+bm25", "--steps", "3", cwd=house)
    assert again["steps"] == 3
    asked = clew(
        "ask", QUESTIONS[0]["question"], "--recipe", "graph-r1+bm25", "--model", out, cwd=house
    )
    assert asked["trace"] and any(step["step"] == "think" for step in asked["trace"])
    if rank:
        whole = clew("train", "--merge", out, "whole", cwd=house)
        assert whole["dtype"] == "float32" and (house / "whole" / "config.json").is_file()
        assert "is not empty" in clew("train", "--merge", out, "whole", cwd=house, code=1)
    else:
        assert "no adapter" in clew("train", "--merge", out, "whole0", cwd=house, code=1)
