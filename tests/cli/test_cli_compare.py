"""Compare over several data sets, models and kinds of evidence; steps, costs and win rates."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from in_process import clew

from clew.testing.fakes import AgentScript
from clew.testing.stub_endpoint import StubEndpoint

# Connections to the endpoint end with the event loop of each command.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
CORPUS = {
    "north": [("Marrow Bridge", "It was designed by Ilse Brandvik."), ("Tarn", "A river.")],
    "south": [("Old Mill", "It was built by Anton Reeve."), ("Vessen", "A town by the sea.")],
}
ASKED = {
    "north": ("Who designed Marrow Bridge?", "Ilse Brandvik"),
    "south": ("Who built Old Mill?", "Anton Reeve"),
}


def write(message: str) -> dict[str, Any]:
    """Answer a question of either data set from its page."""
    name = "Ilse Brandvik" if "Marrow" in message.rpartition("Question:")[2] else "Anton Reeve"
    verb = "designed" if name.startswith("Ilse") else "built"
    return {"enough": True, "answer": f"It was {verb} by {name} [1].", "short": name}


def prefer_ilse(message: str) -> dict[str, int]:
    """Prefer an answer that names Ilse; the first of two that do, or of two that do not."""
    second = message.partition("Second answer")[2]
    better = 2 if "Ilse" in second and "Ilse" not in message.partition("Second answer")[0] else 1
    return dict.fromkeys(("comprehensiveness", "diversity", "empowerment", "overall"), better)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Path]:
    """Two data sets, and settings with a model that answers and judges."""
    for name, pages in CORPUS.items():
        (tmp_path / name).mkdir()
        rows = [{"id": f"{name}{n}", "title": t, "text": x} for n, (t, x) in enumerate(pages)]
        (tmp_path / name / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
        question, answer = ASKED[name]
        asked = {"id": "q", "question": question, "answer": answer, "gold": [f"{name}0"]}
        (tmp_path / name / "questions.jsonl").write_text(json.dumps(asked))
    script = AgentScript({"answer": write, "answer_or_search": write, "judge_pair": prefer_ilse})

    def reply(messages: Sequence[Any]) -> str:
        return script(messages)

    async with StubEndpoint(reply=reply) as stub:
        (tmp_path / "clew.toml").write_text(
            f'[models]\nmodel = "one"\nbase_url = "{stub.base_url}"\napi_key = "x"\n'
            "[models.prices]\none = { prompt = 1.0, completion = 2.0 }\n"
        )
        yield tmp_path


async def run(folder: Path, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await asyncio.to_thread(clew, *words, "--json", cwd=folder))
    return found


async def test_several_data_sets_and_their_means(house: Path) -> None:
    found = await run(house, "compare", "north", "south", "--recipe", "bm25,naive", "--out", "page")
    assert (found["dataset"], found["questions"]) == ("north, south", 2)
    assert set(found["datasets"]) == {"north", "south"}
    for recipe in ("bm25", "naive"):
        values = [one["recipes"][recipe]["recall@2"] for one in found["datasets"].values()]
        assert found["recipes"][recipe]["recall@2"] == pytest.approx(sum(values) / 2)
        assert found["recipes"][recipe]["n"] == 2
    # Each corpus has a knowledge base of its own, and each table a page.
    for name in CORPUS:
        assert (house / "kb" / name / "kb.sqlite").is_file()
        assert (house / "page" / name / "report.html").is_file()
    said = await asyncio.to_thread(clew, "compare", "north", "south", "--recipe", "bm25", cwd=house)
    assert "mean of the data sets" in said


async def test_trees_are_grown_for_the_recipes_that_read_them(house: Path) -> None:
    words = ("compare", "north", "--answers", "--recipe", "raptor,naive", "--metrics", "f1")
    found = await run(house, *words, "--grow", "--costs")
    assert set(found["build"]["trees"]) == {"raptor"}
    assert found["costs"]["raptor"]["build_seconds"] > found["build"]["build_seconds"]
    assert found["costs"]["naive"]["build_seconds"] == 0
    again = await run(house, *words, "--grow", "--costs")
    assert again["build"]["trees"] == found["build"]["trees"]  # grown once
    kept = ("eval", "south", "--recipe", "msgraphrag-local", "--kb", "other", "--grow")
    assert (await run(house, *kept))["recipes"]["msgraphrag-local"]["failed"] == 0


async def test_models_evidence_and_modes_are_rows(house: Path) -> None:
    words = ("compare", "north", "--recipe", "naive", "--answers", "--metrics", "f1")
    axes = ("--model", "one,two", "--evidence", "text,all", "--mode", "open,reject")
    found = await run(house, *words, *axes)
    assert set(found["recipes"]) == {
        f"naive · {model} · {evidence} ({mode})"
        for model in ("one", "two")
        for evidence in ("text", "all")
        for mode in ("open", "reject")
    }
    for label, about in found["about"].items():
        assert label == f"naive · {about['model']} · {about['evidence']} ({about['mode']})"
    assert {row["f1"] for row in found["recipes"].values()} == {1.0}


async def test_costs_steps_and_win_rates(house: Path) -> None:
    words = ("compare", "north", "--recipe", "naive,clew,llm", "--metrics", "f1")
    found = await run(house, *words, "--costs", "--steps", "2", "--pairwise", "naive")
    costs = found["costs"]
    assert costs["clew"]["entities"] > 0 and costs["clew"]["seconds_per_1k_tokens"] > 0
    assert costs["naive"]["entities"] == costs["llm"]["build_seconds"] == 0
    assert costs["naive"]["money_per_1k_queries"] > 0 < costs["naive"]["calls_per_query"]
    row = found["recipes"]["naive"]
    assert (row["step-recall@1"], row["step-recall@2"]) == (1.0, 1.0)
    assert found["recipes"]["llm"]["step-recall@1"] == 0.0
    rates = found["pairwise"]["rates"]
    assert found["pairwise"]["baseline"] == "naive" and set(rates) == {"clew", "llm"}
    # The same answer is preferred in whichever order it comes first: half.
    assert rates["clew"]["overall"] == rates["llm"]["overall"] == 0.5
    said = await asyncio.to_thread(
        clew, *words, "--costs", "--pairwise", "naive", "--answers", cwd=house
    )
    assert "win % against naive" in said and "money/1k queries" in said and "nodes" in said


async def test_a_recipe_with_several_rows_is_compared_with_those_run_alike(house: Path) -> None:
    words = (
        "compare",
        "north",
        "--recipe",
        "naive,llm",
        "--metrics",
        "f1",
        "--mode",
        "open,reject",
    )
    found = await run(house, *words, "--evidence", "text,all", "--pairwise", "naive")
    ends = [
        f" · {evidence} ({mode})" for evidence in ("text", "all") for mode in ("open", "reject")
    ]
    assert found["pairwise"]["baseline"] == "naive"
    assert set(found["pairwise"]["rates"]) == {f"llm{end}" for end in ends}
    one = await run(house, *words, "--pairwise", "naive (open)")
    assert set(one["pairwise"]["rates"]) == {"naive (reject)", "llm (open)", "llm (reject)"}


async def test_wrong_axes_are_one_sentence(house: Path) -> None:
    async def fails(*words: str) -> str:
        return await asyncio.to_thread(clew, "compare", *words, cwd=house, code=1)

    assert "unknown evidence 'pictures'" in await fails("north", "--evidence", "pictures")
    wrong = await fails("north", "--recipe", "naive", "--answers", "--pairwise", "clew")
    assert "'clew' to compare with; available: naive" in wrong
    rows = ("north", "--recipe", "naive,clew", "--mode", "open,reject", "--answers")
    assert "name one of them: 'clew (open)'" in await fails(*rows, "--against", "clew")
    assert "same name" in await fails("north", "north")
    found = await run(house, "compare", "north", "--recipe", "bm25", "--evidence", "text,all")
    assert list(found["recipes"]) == ["bm25"]  # without answers the axis changes nothing
    assert "only affect answers" in found["problems"][0]
