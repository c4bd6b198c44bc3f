"""Ctrl-C: the thread that trains ends first, what it learned is written, and it can go on."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from clew.cli import learn as training
from clew.train.core.rollout import StopRequested

CONFIG = """
questions = 2
group = 2
dev = 1
eval_every = 1000
lora_rank = 4
brief = true
length = 128
step_tokens = 8
"""


@pytest.mark.parametrize("stopped", [False, True])
async def test_the_thread_has_ended_when_the_command_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    began, ended = Event(), Event()

    def run(what: Any, retrieve: Any, *, stop: Event, **told: Any) -> dict[str, Any]:
        began.set()
        assert stop.wait(60)
        ended.set()
        if stopped:  # in a warm start, say
            raise StopRequested
        return {}

    monkeypatch.setattr(training, "run_training", run)
    work = asyncio.create_task(training.train_until_done(("m", Path("out"), [], None), None))
    await asyncio.to_thread(began.wait, 60)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert ended.is_set()


def _begun(folder: Path, *more: str) -> subprocess.Popen[str]:
    # Offline, and with the usual handler: a shell in the background hands on one that ignores.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from clew.cli.app import main; main()"
    )
    given = ["train", "--recipe", "none", "--questions", str(folder), "--out", str(folder / "run")]
    given += ["--model", str(folder / "tiny"), "--config", str(folder / "run.toml"), *more]
    return subprocess.Popen(
        [sys.executable, "-c", code, *given],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )


@pytest.mark.slow
def test_a_signal_ends_a_run_after_its_step_and_the_same_command_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    from clew.train import toy

    toy.make_model(1, length=256).save_pretrained(tmp_path / "tiny")
    toy.make_tokenizer().save_pretrained(tmp_path / "tiny")
    (tmp_path / "run.toml").write_text(CONFIG)
    rows = [
        json.dumps({"id": task.id, "question": task.question, "answer": "amber"}) + "\n"
        for task in toy.make_tasks()[:6]
    ]
    (tmp_path / "questions.jsonl").write_text("".join(rows))
    first = _begun(tmp_path, "--steps", "1000000")
    assert first.stderr is not None
    seen = next((line for line in first.stderr if line.startswith('{"step": 1,')), "")
    assert seen
    first.send_signal(signal.SIGINT)
    told = first.communicate(timeout=120)[1]
    assert first.returncode == 1 and "Traceback" not in told
    assert "stopping" in told and "the same command resumes" in " ".join(told.split())
    run = tmp_path / "run"
    assert (run / "model" / "adapter_model.safetensors").is_file()
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    step = log[-1]["step"] + 1
    again = _begun(tmp_path, "--steps", str(step + 1))
    told = again.communicate(timeout=120)[1]
    assert again.returncode == 0 and f"resuming from step {step}" in told, told
