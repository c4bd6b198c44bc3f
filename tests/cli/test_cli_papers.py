"""Every command of docs/papers-tables.md parses, and its recipes, metrics and options exist."""

import asyncio
import json
import re
import shlex
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from in_process import clew
from typer.main import get_command

from clew.cli.app import app
from clew.evaluate.metrics.registry import check_metric
from clew.layout import Modality
from clew.recipes.registry import resolve_recipe
from clew.testing.fakes import AgentScript
from clew.testing.stub_endpoint import StubEndpoint

PAGE = Path(__file__).parent.parent.parent / "docs" / "papers-tables.md"
_COMMAND = re.compile(r"`(clew [^`]+)`")
_PAPERS = ("GraphSearch", "Youtu-GraphRAG", "Graph-R1", "ROGRAG", "LEGO-GraphRAG")
# As the papers number them: (tables, figures).
_NUMBERED = {
    "GraphSearch": (4, 13),
    "Youtu-GraphRAG": (6, 8),
    "Graph-R1": (7, 12),
    "ROGRAG": (7, 5),
    "LEGO-GraphRAG": (10, 9),
}
_RANGE = re.compile(r"(Table|Figure)s? ([\d, and to]+)")


def _section(paper: str) -> str:
    text = PAGE.read_text(encoding="utf-8").partition("## Every table and figure")[2]
    return next(part for part in text.split("\n### ")[1:] if part.startswith(paper))


def _commands() -> list[str]:
    text = PAGE.read_text(encoding="utf-8").partition("## Every table and figure")[2]
    return list(dict.fromkeys(_COMMAND.findall(text)))


COMPARISONS = [line for line in _commands() if line.startswith("clew compare ")]


def _numbers(text: str) -> set[int]:
    found: set[int] = set()
    for start, end in re.findall(r"(\d+)(?: to (\d+))?", text):
        found |= set(range(int(start), int(end or start) + 1))
    return found


@pytest.mark.parametrize("paper", _PAPERS)
def test_every_table_and_figure_has_its_row(paper: str) -> None:
    cells = [row.split("|")[1] for row in _section(paper).splitlines() if row.startswith("| ")]
    listed: dict[str, set[int]] = {"Table": set(), "Figure": set()}
    for cell in cells:
        for kind, numbers in _RANGE.findall(cell):
            listed[kind] |= _numbers(numbers)
    tables, figures = _NUMBERED[paper]
    assert listed["Table"] == set(range(1, tables + 1))
    assert listed["Figure"] == set(range(1, figures + 1))


@pytest.mark.parametrize("line", _commands())
def test_every_command_parses_and_its_names_exist(line: str) -> None:
    words = shlex.split(line)[1:]
    group: Any = get_command(app)
    ctx = group.make_context("clew", [], resilient_parsing=True)
    command = group.get_command(ctx, words[0])
    assert command is not None, words[0]
    if not any(word.startswith("-") or "/" in word for word in words[1:]):
        return  # named in the text, without its arguments
    given = command.make_context(words[0], words[1:], parent=ctx).params
    for name in filter(None, str(given.get("recipe") or "").split(",")):
        resolve_recipe(name)
    for name in filter(None, str(given.get("metrics") or "").split(",")):
        check_metric(name)
    for name in str(given.get("evidence") or "all").split(","):
        assert name in get_args(Modality)


def test_a_wrong_name_in_a_command_is_found() -> None:
    for line in (
        "clew compare data --recipe lightrga",
        "clew compare data --metrics subme",
        "clew compare data --modle x",
        "clew compare data -k many --evidence pictures",
        "clew compair data",
    ):
        with pytest.raises(Exception, match=r"lightrga|subme|modle|pictures|compair"):
            test_every_command_parses_and_its_names_exist(line)


PAGES = [
    ("Marrow Bridge", "Marrow Bridge spans the Tarn. It was designed by Ilse Brandvik."),
    ("Ilse Brandvik", "Ilse Brandvik was an engineer. She was born in Hallowmere."),
    ("Hallowmere", "Hallowmere is a fishing town. Anton Reeve lived in Hallowmere."),
    ("Anton Reeve", "Anton Reeve was a poet. He was born in Vessen and wrote Salt."),
]
ASKED = {
    "id": "q",
    "question": "Where was Ilse Brandvik born?",
    "answer": "Hallowmere",
    "gold": ["p1"],
    "entities": ["Ilse Brandvik"],
}
_GRAPH_SETS = ("webqsp", "cwq", "grailqa", "webquestions")
_MARKS = {"comprehensiveness": 1, "diversity": 2, "empowerment": 0, "overall": 1}
_WRITTEN = {
    "enough": True,
    "answer": "Ilse Brandvik was born in Hallowmere [1][2][3][4].",
    "short": "Hallowmere",
}
_REPLIES = {
    **dict.fromkeys(("answer", "answer_or_search", "react", "reduce_points"), _WRITTEN),
    "reflect": {"action": "answer", "text": "Hallowmere"},
    "graph_r1": "<think>known</think><answer>Hallowmere</answer>",
    "judge_correct": {"correct": True},
    "judge_criterion": {"score": 7},
    "judge_evidence": {"score": 7},
    "judge_pair": _MARKS,
}


def _data_folders(line: str) -> list[Path]:
    words = shlex.split(line)[2:]
    return [Path(word) for word in words if word.startswith("data/") or word == "anonymous"]


def _write_dataset(folder: Path, place: Path) -> None:
    """Write a tiny data set of the kind that a command names."""
    file = place / folder if folder.suffix == ".jsonl" else place / folder / "questions.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    row: dict[str, Any] = dict(ASKED)
    if folder.name.startswith(("seedbench", "anonyrag")):
        row |= {"options": {"A": "Vessen", "B": "Hallowmere"}, "answer": "B"}
        row |= {"originals": {"PERSON#1": ["Ilse Brandvik"]}}
    file.write_text(json.dumps(row))
    if folder.suffix != ".jsonl" and folder.name not in _GRAPH_SETS:
        rows = [{"id": f"p{n}", "title": t, "text": x} for n, (t, x) in enumerate(PAGES)]
        (file.parent / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base of the tiny corpus with every tree."""
    place = tmp_path_factory.mktemp("papers")
    _write_dataset(Path("data/any"), place)
    clew("eval", "data/any", "--recipe", "bm25", "--kb", "built", cwd=place)
    for kind in ("dual", "leiden", "raptor", "e2"):
        clew("tree", "--by", kind, "--grow", "--kb", "built", cwd=place)
    return place / "built"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Path]:
    """Settings with a model that follows the script."""
    script = AgentScript(_REPLIES)

    def reply(messages: Sequence[Any]) -> str:
        return script(messages)

    async with StubEndpoint(reply=reply) as stub:
        (tmp_path / "clew.toml").write_text(
            f'[models]\nmodel = "judge"\nbase_url = "{stub.base_url}"\napi_key = "x"\ntries = 1\n'
        )
        (tmp_path / "variants.toml").write_text(
            '[[vary]]\nrecipe = "lego-12"\nset = { "PprSubgraph.damping" = [0.5, 0.8] }\n'
        )
        yield tmp_path


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("line", COMPARISONS)
async def test_every_comparison_runs_on_a_tiny_corpus(line: str, house: Path, built: Path) -> None:
    words = shlex.split(line)[1:]
    folders = _data_folders(line)
    for folder in folders:
        _write_dataset(folder, house)
    base = words[words.index("--kb") + 1] if "--kb" in words else "kb"
    many = len(folders) > 1
    for folder in folders:
        own = many and folder.suffix != ".jsonl" and folder.name not in _GRAPH_SETS
        place = house / base / folder.name if own else house / base
        if not place.exists():
            shutil.copytree(built, place)
    done = await asyncio.to_thread(clew, *words, "--limit", "1", "--json", cwd=house)
    found = json.loads(done)
    assert found["questions"] == len(folders)
    asked = words[words.index("--metrics") + 1].split(",") if "--metrics" in words else []
    steps = int(words[words.index("--steps") + 1]) if "--steps" in words else 0
    for payload in found.get("datasets", {"": found}).values():
        columns = {name for row in payload["recipes"].values() for name in row}
        missing = {text.split(":")[0] for text in payload["problems"]}
        assert {*asked} - missing <= columns
        assert not steps or f"step-recall@{steps}" in columns
        assert "--pairwise" not in words or payload["pairwise"]["rates"]
        assert "--costs" not in words or payload["costs"]
