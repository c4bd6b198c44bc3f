"""Recipes of clew.toml on the command line: listed, shown, searched, asked and measured."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from in_process import clew

from clew.recipes.steps import STEPS

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
TEXTS = {
    "bridge": "Marrow Bridge is a stone bridge over the Tarn. It was designed by Ilse Brandvik.",
    "ilse": "Ilse Brandvik was an engineer. She was born in Hallowmere and died in 1921.",
    "town": "Hallowmere is a fishing town on the Grey Coast. " * 200,
}
QUESTION = {"id": "q1", "question": "Who designed Marrow Bridge?", "gold": ["bridge"]}
QUESTION["answer"] = "Ilse Brandvik"


def documented_recipes() -> str:
    """The worked example of docs/recipes.md."""
    page = PAGE.read_text(encoding="utf-8")
    [example] = re.findall(r"```toml\n(\[recipes\.bridge\].*?)```", page, re.S)
    return example


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "clew.toml").write_text(documented_recipes(), encoding="utf-8")
    (folder / "docs").mkdir()
    for name, text in TEXTS.items():
        (folder / "docs" / f"{name}.txt").write_text(text)
    (folder / "data").mkdir()
    rows = [json.dumps({"id": name, "text": text}) for name, text in TEXTS.items()]
    (folder / "data" / "corpus.jsonl").write_text("\n".join(rows))
    (folder / "data" / "questions.jsonl").write_text(json.dumps(QUESTION))
    clew("add", "docs", "--recipe", "bridge", cwd=folder)
    return folder


def test_the_worked_example_is_searched_asked_and_combined(house: Path) -> None:
    for recipe in ("bridge", "wide", "careful", "careful+wide", "ircot+bridge"):
        found = json.loads(
            clew("search", QUESTION["question"], "--recipe", recipe, "--json", cwd=house)
        )
        assert found["recipe"] == recipe and "Ilse" in found["chunks"][0]["text"]
        asked = json.loads(
            clew("ask", QUESTION["question"], "--recipe", recipe, "--json", cwd=house)
        )
        assert asked["recipe"] == recipe and "Ilse Brandvik" in asked["answer"]


def test_they_are_listed_and_shown_with_the_source_of_each_value(house: Path) -> None:
    listed = {row["name"]: row for row in json.loads(clew("recipes", "--json", cwd=house))}
    assert listed["bridge"]["source"] == "clew.toml" and listed["careful"]["kind"] == "agent"
    rows = json.loads(clew("recipes", "wide", "--json", cwd=house))
    sources = {f"{row['step']}.{row['parameter']}": row["source"] for row in rows}
    assert sources["NearEntities.top_k"] == "clew.toml"
    assert sources["NearEntities.least"].startswith("LightRAG")
    said = clew("recipes", "bridge", cwd=house)
    assert "chunks: 300 tokens, overlap 20, by sentences" in said and "clew.toml" in said


def test_they_are_measured_compared_and_varied(house: Path) -> None:
    (house / "grid.toml").write_text(
        'recipes = ["careful"]\n[[vary]]\nrecipe = "bridge"\nset = { "Dense.top_k" = [1, 3] }\n'
    )
    at = ("--kb", "other", "--json")
    found = json.loads(clew("eval", "data", "--recipe", "bridge,naive", *at, cwd=house))
    assert found["recipes"]["bridge"]["recall@2"] == 1.0
    found = json.loads(clew("compare", "data", "--grid", "grid.toml", *at, cwd=house))
    rows = ["careful", "bridge[Dense.top_k=1]", "bridge[Dense.top_k=3]"]
    assert list(found["recipes"]) == rows


def test_toml_can_be_pasted_and_used(house: Path, tmp_path: Path) -> None:
    for name, new in (("lightrag", "my-lightrag"), ("graphsearch+bm25", "my-graphsearch-bm25")):
        text = clew("recipes", name, "--toml", cwd=house)
        assert list(tomllib.loads(text)["recipes"]) == [new]
        (tmp_path / "clew.toml").write_text(text, encoding="utf-8")
        asked = ("ask", QUESTION["question"], "--recipe", new, "--kb", str(house / "kb"), "--json")
        assert "Ilse Brandvik" in json.loads(clew(*asked, cwd=tmp_path))["answer"]
    assert "alone" in clew("recipes", "--toml", cwd=house, code=1)


def test_all_steps_are_listed_with_a_sentence_and_their_defaults(house: Path) -> None:
    rows = json.loads(clew("recipes", "--steps", "--json", cwd=house))
    assert {row["name"] for row in rows if row["kind"] == "step"} == set(STEPS)
    assert {"in_turns", "graphsearch"} <= {row["name"] for row in rows}
    assert all(10 < len(row["about"]) < 120 for row in rows)
    said = clew("recipes", "--steps", cwd=house)
    assert "each = false  (true or false)" in said
    assert 'order = "similar"  ("similar" | "degree")' in said and "join = required" in said


def test_a_mistake_is_one_sentence_wherever_a_recipe_is_needed(house: Path, tmp_path: Path) -> None:
    (tmp_path / "clew.toml").write_text("[recipes.mine]\nsteps = ['Dense', { step = 'Lexica' }]")
    said = "clew.toml: recipes.mine.steps[1].step: unknown step 'Lexica'; did you mean 'Lexical'?"
    for words in (
        ("search", "who?", "--recipe", "naive", "--kb", str(house / "kb")),
        ("ask", "who?", "--kb", str(house / "kb")),
        ("eval", str(house / "data")),
        ("recipes",),
        ("add", str(house / "docs"), "--recipe", "naive"),
    ):
        assert said in clew(*words, cwd=tmp_path, code=1)
    assert not (tmp_path / "kb").exists()
    (tmp_path / "clew.toml").write_text("recipes = 3")
    assert "clew.toml: recipes: " in clew("recipes", cwd=tmp_path, code=1)


# -- chunks


def count_chunks(house: Path, kb: str) -> int:
    return json.loads(clew("status", "--kb", kb, "--json", cwd=house))["chunks"]


def test_documents_are_split_as_the_recipe_wants_it_and_stay_so(house: Path) -> None:
    clew("add", "docs", "--kb", "large", "--recipe", "graph-r1", cwd=house)
    large = count_chunks(house, "large")
    clew("add", "docs", "--kb", "usual", cwd=house)
    usual = count_chunks(house, "usual")
    assert large < usual
    # Without --recipe the documents of the knowledge base stay as they are.
    assert "3 unchanged" in clew("add", "docs", "--kb", "large", cwd=house)
    said = clew("add", "docs", "--kb", "usual", "--recipe", "graph-r1", cwd=house)
    assert "have 400 tokens, by sentences; what is added now is split for graph-r1" in said
    assert count_chunks(house, "usual") == large
    planned = ("add", "docs", "--kb", "new", "--recipe", "raptor", "--dry-run", "--json")
    assert json.loads(clew(*planned, cwd=house))["chunks"] > usual


def test_an_evaluation_builds_for_its_recipes_or_says_that_it_did_not(house: Path) -> None:
    words = ("eval", "data", "--json", "--kb")
    built = json.loads(clew(*words, "one", "--recipe", "graph-r1", cwd=house))
    assert built["problems"] == []
    for kb, recipe in (("one", "naive,rograg-dual"), ("two", "naive,graph-r1")):
        [problem] = json.loads(clew(*words, kb, "--recipe", recipe, cwd=house))["problems"]
        assert problem.startswith("the chunks of this knowledge base have")
        assert recipe.partition(",")[2] in problem
    assert count_chunks(house, "one") < count_chunks(house, "two")


def test_chunk_settings_of_the_user_come_before_an_evaluations_recipe(
    house: Path, tmp_path: Path
) -> None:
    (tmp_path / "clew.toml").write_text("[chunk]\nsize = 100\n")
    words = ("eval", str(house / "data"), "--recipe", "graph-r1", "--json")
    [problem] = json.loads(clew(*words, cwd=tmp_path))["problems"]
    assert "have 100 tokens, by sentences; graph-r1: made for 1,200 tokens" in problem


def test_a_parameter_is_changed_for_one_search(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The mill stands in Osmund.\n", encoding="utf-8")
    clew("add", "a.md", cwd=tmp_path)
    how = ("search", "mill", "--recipe", "bm25", "--json", "--set")
    found = json.loads(clew(*how, "Lexical.top_k=1", cwd=tmp_path))
    assert found["recipe"] == "bm25-with-top_k-1" and found["chunks"]
    assert "no such parameter" in clew(*how, "nothing=1", cwd=tmp_path, code=1)
