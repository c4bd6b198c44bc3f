"""On the GPU machine: runs one experiment arm: untrained, after warm start, and trained.

    PYTHONPATH=src:DIR python3 -m bench.gpu.arm graph --dir DIR --minutes 5 [--config FILE]

Arms: `graph` (facts by Graph-R1's dual path), `clew` (facts of the pages about a name), `binary`
(triples by the dual path), `chunks` (Search-R1), `none` (R1, no knowledge base).
Every stage is stored in DIR/runs/ARM (or --run) and skipped when present; the same command
resumes. With $OUT set, logs, held-out answers and the adapter (in parts) are copied there.
"""

import argparse
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import torch

from bench.gpu.arms import ARMS, HELD_OUT, SPLIT_SEED, retriever_of
from clew import sync
from clew.agents.graph_r1 import Protocol
from clew.train.checkpoints import Checkpoints, load
from clew.train.decode.fast_decoder import FastDecoder
from clew.train.environment import Environment
from clew.train.learn.gold import direct, recorded, worked
from clew.train.learn.warm_start import WarmStart
from clew.train.loop import Training
from clew.train.measuring import evaluate
from clew.train.policy import Lora, Policy, load_model
from clew.train.questions import load_tasks, split
from clew.train.rewards import Outcome
from clew.train.rollout import Limits, Rollout
from clew.train.settings import TrainSettings, settings_from
from clew.train.wording import Wording

PART = 15 * 2**20


def say(line: str | dict[str, Any]) -> None:
    """Print one line and flush."""
    print(line if isinstance(line, str) else json.dumps(line), flush=True)


class Arm:
    """One experiment arm: model, retriever, questions and settings."""

    def __init__(
        self,
        name: str,
        folder: Path,
        settings: TrainSettings,
        *,
        held: int = HELD_OUT,
        graphs: bool = True,
        run: str = "",
    ) -> None:
        """Load model, retriever and questions; `run` names a second run of the same arm."""
        began = time.perf_counter()
        self.name, self.settings = name, settings
        self.out = folder / "runs" / (run or name)
        self.out.mkdir(parents=True, exist_ok=True)
        turns = 0 if name == "none" else settings.turns
        self.protocol = Protocol(turns, settings.brief)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self.environment = Environment(retriever_of(name, folder, device), self.protocol)
        model, tokenizer = load_model(folder / "hf")
        self.wording = Wording(tokenizer, self.protocol)
        torch.manual_seed(settings.seed)  # the adapter is initialised at random
        self.policy = Policy.around(
            model,
            self.wording.pad,
            Lora(settings.lora_rank, settings.lora_alpha),
            checkpointing=settings.checkpointing,
            temperature=settings.temperature,
            cells=settings.cells,
        )
        self.decoder = FastDecoder(self.policy.model, graphs=graphs)
        limits = Limits(settings.length, settings.step_tokens, settings.reply_tokens)
        self.rollout = Rollout(self.decoder, self.environment, self.wording, limits, settings.batch)
        train, self.held = split(load_tasks(folder / "questions.jsonl"), held, SPLIT_SEED)
        # The dev questions for early stopping are seen by no training stage.
        dev = settings.held_out(len(train))
        self.dev, self.train = train[:dev], train[dev:]
        say({"arm": name, "loaded": round(time.perf_counter() - began, 1), "device": device})

    def measure(self, stage: str) -> None:
        """Score the held-out questions, once per stage."""
        path = self.out / f"eval-{stage}.json"
        if path.is_file():
            return
        self.decoder.refresh()
        means, records = evaluate(self.rollout, self.held)
        say({"arm": self.name, "stage": stage, **means})
        path.write_text(json.dumps({"arm": self.name, "stage": stage, **means}))
        rows = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (self.out / f"answers-{stage}.jsonl").write_text(rows, encoding="utf-8")

    def warm(self) -> None:
        """Run (or load) the warm start on demonstrations of the training questions."""
        checkpoints = Checkpoints(self.out / "sft", 1)
        if checkpoints.newest() is not None:
            load(checkpoints.newest(), self.policy.trained())  # type: ignore[arg-type]
            return
        began = time.perf_counter()
        if self.name == "none":
            examples = direct(self.train)
        else:
            examples = sync.wait(worked(self.environment, self.train))
        made = recorded(examples, self.wording, self.settings.reply_tokens, self.settings.length)
        tokens = sum(len(one) for one in made)
        say({"examples": len(made), "of": len(self.train), "tokens": tokens})
        s = self.settings
        WarmStart(s.sft_epochs, s.sft_lr, s.sft_batch)(self.policy, made, say)
        checkpoints.save(0, self.policy.trained(), None, {})
        say({"sft_seconds": round(time.perf_counter() - began, 1)})

    def learn(self) -> None:
        """Run GRPO; score the last weights and those with the best dev F1."""
        reward = Outcome(each=1.0 if self.name == "none" else 0.5)
        training = Training(
            self.policy,
            self.rollout,
            self.settings,
            self.out,
            self.train,
            self.dev,
            reward=reward,
            tell=say,
            refresh=self.decoder.refresh,
        )
        result = training.run()
        say({"arm": self.name, "grpo": result})
        self.measure(f"grpo-{result['steps']}")
        best = Checkpoints(self.out / "best", 1).newest()
        if best is not None and result["best_step"] not in (0, result["steps"]):
            load(best, self.policy.trained())
            self.measure(f"best-{result['best_step']}")

    def hand_over(self) -> None:
        """Copy results to $OUT: few files, none above 16 MB."""
        target = os.environ.get("OUT")
        if not target:
            return
        out = Path(target)
        run = self.out.name
        if (self.out / "log.jsonl").is_file():
            shutil.copy(self.out / "log.jsonl", out / f"{run}-log.jsonl")
        evals = [json.loads(p.read_text()) for p in sorted(self.out.glob("eval-*.json"))]
        (out / f"{run}-evals.json").write_text(json.dumps(evals))
        answers = [f"## {p.stem}\n{p.read_text()}" for p in sorted(self.out.glob("answers-*"))]
        (out / f"{run}-answers.txt").write_text("\n".join(answers), encoding="utf-8")
        for number, block in enumerate(_adapter(self.policy.trained())):
            (out / f"{run}-adapter-{number:02d}").write_bytes(block)


def _adapter(trained: dict[str, Any]) -> list[bytes]:
    from safetensors.torch import save

    whole = save({name: one.detach().half().cpu().contiguous() for name, one in trained.items()})
    return [whole[at : at + PART] for at in range(0, len(whole), PART)]


def _restore(arm: Arm, parts: list[Path]) -> None:
    """Start from an adapter of another machine, as if its warm start had run here."""
    from safetensors.torch import load as read

    tensors = read(b"".join(part.read_bytes() for part in sorted(parts)))
    with torch.no_grad():
        for name, parameter in arm.policy.trained().items():
            parameter.copy_(tensors[name])
    Checkpoints(arm.out / "sft", 1).save(0, arm.policy.trained(), None, {"restored": True})


def main() -> None:
    """Run the stages that are not done yet."""
    ask = argparse.ArgumentParser()
    ask.add_argument("arm", choices=ARMS)
    ask.add_argument("--dir", type=Path, required=True)
    ask.add_argument("--config", type=Path, default=Path(__file__).with_name("h200.toml"))
    ask.add_argument("--minutes", type=float, help="of GRPO")
    ask.add_argument("--steps", type=int)
    ask.add_argument("--run", default="", help="folder of the run, if not the arm's name")
    ask.add_argument("--held", type=int, default=HELD_OUT)
    ask.add_argument("--no-untrained", action="store_true", help="leave the first evaluation out")
    ask.add_argument("--no-graphs", action="store_true", help="decode without CUDA graphs")
    ask.add_argument("--restore", type=Path, nargs="+", help="adapter parts from another machine")
    given = ask.parse_args()
    settings = settings_from(given.config, minutes=given.minutes, steps=given.steps)
    arm = Arm(
        given.arm,
        given.dir,
        settings,
        held=given.held,
        graphs=not given.no_graphs,
        run=given.run,
    )
    try:
        if not given.no_untrained and not given.restore:
            arm.measure("untrained")
        if given.restore:
            _restore(arm, given.restore)
        if settings.sft_epochs or given.restore:
            arm.warm()
            arm.measure("sft")
        if settings.steps:
            arm.learn()
    finally:
        arm.hand_over()


if __name__ == "__main__":
    main()
