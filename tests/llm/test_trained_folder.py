"""What `--model` names: a folder with a model, a folder without, a path, an endpoint's model."""

from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from clew.agents.loop import GraphR1
from clew.cli.app import app
from clew.errors import ConfigError
from clew.llm.roles import ModelSettings, chosen, named_model
from clew.llm.trained import FILE, Trained, trained_as
from clew.models import Models
from clew.recipes import asked_named

HOW = Trained("graph-r1", turns=2, brief=True, step_tokens=64, k=3, characters=800)


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
    settings = named_model(ModelSettings(model="big", api_key=SecretStr("k")), str(run))
    assert chosen("plan", settings).client == "transformers"
    assert chosen("answer", settings).model == "big"
    alone = named_model(ModelSettings(), str(run / "model"))
    assert {chosen(role, alone).client for role in ("plan", "answer")} == {"transformers"}


@pytest.mark.parametrize("name", ["gpt-4o-mini", "run-nosuch", "Qwen/Qwen2.5-7B-Instruct"])
def test_a_word_or_an_owners_model_is_the_endpoints(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert chosen("plan", named_model(ModelSettings(), name)).model == name


@pytest.mark.parametrize("name", ["./nosuch", "../nosuch", "~/nosuch", "/no/such", "runs/nosuch"])
def test_a_path_that_leads_nowhere_never_goes_to_an_endpoint(name, tmp_path, monkeypatch) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="holds no finished model"):
        named_model(ModelSettings(), name)


@pytest.mark.parametrize("left", [(), ("model",), ("model/config.json",), ("best/x.safetensors",)])
def test_an_unfinished_run_never_goes_to_an_endpoint(left, tmp_path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in left:
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).mkdir() if "." not in name else (out / name).write_text("{}")
    done = CliRunner().invoke(app, ["ask", "Who?", "--model", str(out), "--kb", str(tmp_path)])
    assert done.exit_code == 1
    assert "holds no finished model" in " ".join(done.output.split())


def test_what_was_trained_is_what_is_served(run) -> None:
    models = Models(named_model(ModelSettings(), str(run)), memory=None)  # type: ignore[arg-type]
    assert models.trained() == HOW
    served = asked_named("graph-r1").as_trained(models.trained(), "graph-r1")
    assert served.agent == GraphR1(turns=2, top_k=3, room=800, brief=True, step=64, unaided=True)
    assert served.note == "" and served.with_top(9).agent.top_k == 9  # type: ignore[attr-defined]
    other = asked_named("graph-r1+bm25").as_trained(HOW, "graph-r1+bm25")
    assert "trained with --recipe graph-r1" in other.note
    assert asked_named("naive").as_trained(HOW, "naive") == asked_named("naive")
    assert Models(ModelSettings(), memory=None).trained() is None  # type: ignore[arg-type]


def test_r1_is_said_not_to_be_served() -> None:
    with pytest.raises(ConfigError, match="R1 .* is not served"):
        asked_named("none")
    with pytest.raises(ConfigError, match="R1 .* is not served"):
        asked_named("graph-r1").as_trained(Trained("none", turns=0), "graph-r1")


def test_a_spoilt_note_is_one_sentence(run) -> None:
    (run / "model" / FILE).write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        trained_as(run)
