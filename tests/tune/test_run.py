"""Learning from questions, through the command line and the engine."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from clew.adapters import HopClassifier, Tuning, delete_tuning, load_tuning, save_tuning
from clew.cli.app import app
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.evaluate.datasets import Question
from clew.tune.run import tune
from clew.types import Document
from conftest import document, stream


def silent(stage: str, done: int, total: int) -> None:
    """Nobody listens."""


WORDS = ("helmed", "penned")  # what no embedder here knows to mean directed and written


def films(count: int) -> str:
    rows = []
    for n in range(count):
        rows += [f"Film {n}|directed_by|Person {n}", f"Film {n}|written_by|Author {n}"]
        rows += [f"Film {n}|release_year|{1900 + n}"]
    return "\n".join(rows) + "\n"


def asked(n: int) -> list[Question]:
    return [
        Question(f"d{n}", f"who helmed Film {n}", (f"Person {n}",), entities=(f"Film {n}",)),
        Question(f"w{n}", f"who penned Film {n}", (f"Author {n}",), entities=(f"Film {n}",)),
    ]


async def right(base: KnowledgeBase, questions: list[Question]) -> float:
    hits = 0
    for question in questions:
        found = await base.search(question.text, recipe="lego-12", entities=question.entities)
        hits += found.evidence.entities[0].name in question.answers
    return hits / len(questions)


async def test_what_is_learnt_answers_questions_that_words_alone_cannot(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    file = tmp_path / "films.txt"
    file.write_text(films(24), encoding="utf-8")
    await base.import_graph(file)
    train = [q for n in range(16) for q in asked(n)]
    test = [q for n in range(16, 24) for q in asked(n)]
    before = await right(base, test)
    learnt = await tune(base, train, silent)
    assert learnt.paths == 32 and learnt.hops == 1.0 and learnt.after == 1.0
    assert await right(base, test) == 1.0 > before
    # It stays with the knowledge base, whoever opens it.
    base.forget_view()
    assert await right(base, test) == 1.0


async def test_a_run_that_fails_leaves_what_was_learnt(base: KnowledgeBase, tmp_path: Path) -> None:
    file = tmp_path / "films.txt"
    file.write_text(films(16), encoding="utf-8")
    await base.import_graph(file)
    train = [q for n in range(16) for q in asked(n)]
    await tune(base, train, silent)
    assert base.embed is not None
    held = await base.store.get("tuning", [base.embed.name])
    with pytest.raises(ConfigError, match="at least 8 questions"):
        await tune(base, train[:3], silent)
    assert await base.store.get("tuning", [base.embed.name]) == held


async def test_what_is_there_does_not_count_when_it_is_learnt_anew(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    file = tmp_path / "films.txt"
    file.write_text(films(16), encoding="utf-8")
    await base.import_graph(file)
    train = [q for n in range(16) for q in asked(n)]
    assert base.embed is not None
    first = await tune(base, train, silent)
    thrice = HopClassifier(np.zeros((3, base.embed.dim), np.float32), np.float32([0, 0, 1]))
    await save_tuning(
        base.store, base.embed.name, Tuning(hops=thrice)
    )  # every question has three hops
    base.forget_view()
    again = await tune(base, train, silent)
    assert again.hops_before == first.hops_before == 0.0  # one hop, not the usual two
    assert again.hops == first.hops == 1.0


async def test_passages_are_learnt_from_gold_documents(base: KnowledgeBase) -> None:
    texts = [document(f"d{n}", f"Alpha{n} stands in the north of Beta{n}.") for n in range(20)]
    await base.take(stream(texts))
    questions = [Question(str(n), f"zeta{n} gamma", gold=(f"d{n}",)) for n in range(20)]
    learnt = await tune(base, questions, silent)
    assert learnt.passages == 20 and learnt.paths == 0
    assert learnt.passages_after is not None
    assert [one.recipe for one in learnt.recipes] == ["clew", "naive", "hybrid"]


def riddles(count: int) -> tuple[list[Document], list[Question]]:
    """Questions whose words point away from the passages that answer them."""
    pairs = [("helmed", "directed"), ("penned", "wrote"), ("scored", "composed"), ("cut", "edited")]
    texts, asked = [], []
    for n in range(count):
        for word, other in pairs:
            texts.append(document(f"{other}{n}", f"Person{n} {other} it."))
            asked.append(Question(f"{word}{n}", f"it {word} person{n}", gold=(f"{other}{n}",)))
    return texts, asked


@pytest.mark.slow  # two recipes are trained and scored
async def test_only_recipes_that_gain_use_what_was_learnt_from_passages(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, questions = riddles(12)
    await base.take(stream(texts))
    monkeypatch.setattr("clew.tune.run.RECALL_AT", 1)
    learnt = await tune(base, questions, silent, ["naive", "bm25"])
    naive, bm25 = learnt.recipes
    assert naive.after > naive.before and naive.used
    assert bm25.after == bm25.before and not bm25.used  # words alone: nothing to turn
    question = questions[1]

    async def vector(recipe: str) -> tuple[float, ...]:
        found = await base.search(question.text, recipe=recipe, k=100)
        return tuple(passage.score for passage in found.evidence.chunks)

    with_it = await vector("naive")
    async with base.store.snapshot() as now:
        assert (await base.context(now, "q", "naive")).embed is not base.embed
        assert (await base.context(now, "q", "clew")).embed is base.embed
    await delete_tuning(base.store, base.embed.name if base.embed else "")
    base.forget_view()
    assert await vector("naive") != with_it


async def test_a_recipe_that_is_not_there_leaves_what_was_learnt(base: KnowledgeBase) -> None:
    texts, questions = riddles(5)
    await base.take(stream(texts))
    with pytest.raises(ConfigError, match="no recipe 'nave'"):
        await tune(base, questions, silent, ["nave"])


async def test_too_little_to_learn_from_is_one_sentence(base: KnowledgeBase) -> None:
    await base.take(stream([document("d", "Ann Lee lives in Vessen.")]))
    with pytest.raises(ConfigError, match="there are 0 of 1"):
        await tune(base, [Question("1", "who?")], silent)


def test_the_command_learns_and_forgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    run = CliRunner()
    kb, graph, file = tmp_path / "kb", tmp_path / "films.txt", tmp_path / "questions.jsonl"
    graph.write_text(films(12), encoding="utf-8")
    rows = [q for n in range(10) for q in asked(n)]
    file.write_text(
        "\n".join(
            json.dumps({"question": q.text, "entities": q.entities, "answers": q.answers})
            for q in rows
        ),
        encoding="utf-8",
    )
    assert run.invoke(app, ["import", str(graph), "--kb", str(kb), "--no-embed"]).exit_code == 0
    said = run.invoke(app, ["tune", str(file), "--kb", str(kb), "--json"])
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["paths"] == 20
    assert run.invoke(app, ["tune", "--forget", "--kb", str(kb)]).exit_code == 0
    assert run.invoke(app, ["tune", "--kb", str(kb)]).exit_code == 2
    monkeypatch.setitem(sys.modules, "torch", None)
    said = run.invoke(app, ["tune", str(file), "--encoder", "--kb", str(kb)])
    assert said.exit_code == 1 and "[train]" in said.stderr


def test_the_command_keeps_nothing_that_is_worse_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    run = CliRunner()
    people = "Ida Ulf Pia Kai Ada Bo Cleo Dan Eva Finn".split()
    rows = [
        f"{one} Moe|profession|job {at}\njob {at}|salary|pay {at}" for at, one in enumerate(people)
    ]
    Path("people.txt").write_text("\n".join(rows), encoding="utf-8")
    asked = [
        {
            "question": f"What is the salary of the profession of {one} Moe?",
            "entities": [f"{one} Moe"],
            "answers": [f"pay {at}"],
        }
        for at, one in enumerate(people)
    ]
    Path("asked.jsonl").write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
    assert run.invoke(app, ["import", "people.txt", "--no-embed"]).exit_code == 0
    said = run.invoke(app, ["tune", "asked.jsonl"]).stdout
    assert "correct path ranked first: 1.000 before, 1.000 after; not kept: no better" in said
    assert "nothing kept: retrieval is as without tuning" in said
    assert "nothing stored" in said and "bytes" not in said
    told = json.loads(run.invoke(app, ["tune", "asked.jsonl", "--json"]).stdout)
    assert told["kept"] == [] and told["bytes"] == 0
