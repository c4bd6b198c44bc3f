"""What `--model` names: a folder with a model, a folder without, a path, an endpoint's model."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from clew.agents.graph_r1 import GraphR1
from clew.cli.app import app
from clew.config import ModelSettings
from clew.errors import ConfigError
from clew.llm.roles import resolve_model, with_named_model
from clew.llm.trained_model import TRAINED_CONFIG_FILE, TrainedConfig, read_trained_config
from clew.models import Models
from clew.recipes.registry import resolve_recipe

HOW = TrainedConfig("graph-r1", turns=2, brief=True, step_tokens=64, k=3, characters=800)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a finished run."""
    model = tmp_path / "run" / "model"
    model.mkdir(parents=True)
    (model / "adapter_config.json").write_text("{}")
    (model / "adapter_model.safetensors").write_bytes(b"")
    HOW.write(model)
    return tmp_path / "run"


def test_a_finished_run_plans_and_the_set_model_stays(run) -> None:
    settings = with_named_model(ModelSettings(model="big", api_key=SecretStr("k")), str(run))
    assert resolve_model("plan", settings).client == "transformers"
    assert resolve_model("answer", settings).model == "big"
    alone = with_named_model(ModelSettings(), str(run / "model"))
    assert {resolve_model(role, alone).client for role in ("plan", "answer")} == {"transformers"}


@pytest.mark.parametrize("name", ["gpt-4o-mini", "run-nosuch", "Qwen/Qwen2.5-7B-Instruct"])
def test_a_word_or_an_owners_model_is_the_endpoints(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve_model("plan", with_named_model(ModelSettings(), name)).model == name


@pytest.mark.parametrize("name", ["./nosuch", "../nosuch", "~/nosuch", "/no/such", "runs/nosuch"])
def test_a_path_that_leads_nowhere_never_goes_to_an_endpoint(name, tmp_path, monkeypatch) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="finished model"):
        with_named_model(ModelSettings(), name)


@pytest.mark.parametrize("left", [(), ("model",), ("model/config.json",), ("best/x.safetensors",)])
def test_an_unfinished_run_never_goes_to_an_endpoint(left, tmp_path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in left:
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).mkdir() if "." not in name else (out / name).write_text("{}")
    done = CliRunner().invoke(app, ["ask", "Who?", "--model", str(out), "--kb", str(tmp_path)])
    assert done.exit_code == 1
    assert "finished model" in " ".join(done.output.split())


def test_what_was_trained_is_what_is_served(run) -> None:
    models = Models(with_named_model(ModelSettings(), str(run)), key_values=None)  # type: ignore[arg-type]
    assert models.planner_training() == HOW
    served = resolve_recipe("graph-r1").with_trained_model(models.planner_training(), "graph-r1")
    older = {"room": 200, "show": "passages"}  # 800 characters, and the form before it was recorded
    assert served.agent == GraphR1(turns=2, top_k=3, brief=True, step=64, unaided=True, **older)
    newer = resolve_recipe("graph-r1").with_trained_model(replace(HOW, show="fused"), "graph-r1")
    assert newer.agent.show == "fused"  # type: ignore[attr-defined]
    assert served.note == ""
    other = resolve_recipe("graph-r1+bm25").with_trained_model(HOW, "graph-r1+bm25")
    assert "trained with --recipe graph-r1" in other.note
    assert resolve_recipe("naive").with_trained_model(HOW, "naive") == resolve_recipe("naive")
    assert Models(ModelSettings(), key_values=None).planner_training() is None  # type: ignore[arg-type]


def test_r1_is_said_not_to_be_served() -> None:
    with pytest.raises(ConfigError, match="R1.* cannot be asked here"):
        resolve_recipe("none")
    with pytest.raises(ConfigError, match="R1.* cannot be asked here"):
        resolve_recipe("graph-r1").with_trained_model(TrainedConfig("none", turns=0), "graph-r1")


def test_a_spoilt_note_is_one_sentence(run) -> None:
    (run / "model" / TRAINED_CONFIG_FILE).write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_trained_config(run)
