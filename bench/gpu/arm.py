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

from bench.gpu.arms import ARMS, HELD_OUT, SPLIT_SEED, build_retriever
from clew import sync
from clew.agents.graph_r1_protocol import GraphR1Protocol
from clew.train.checkpoints import Checkpoints, load_checkpoint
from clew.train.core.chat_tokens import ChatTokenizer
from clew.train.core.environment import Environment
from clew.train.core.rollout import Rollout, RolloutLimits
from clew.train.core.settings import TrainSettings, settings_from
from clew.train.decode.fast_decoder import FastDecoder
from clew.train.demonstrations import (
    build_closed_book_demonstrations,
    build_demonstrations,
    tokenize_demonstrations,
)
from clew.train.learn.policy import Lora, Policy, load_model
from clew.train.learn.warm_start import WarmStart
from clew.train.loop import Training
from clew.train.questions import load_tasks, split_tasks
from clew.train.rewards import Outcome, evaluate

PART_BYTES = 15 * 2**20


def print_line(line: str | dict[str, Any]) -> None:
    """Print one line and flush."""
    print(line if isinstance(line, str) else json.dumps(line), flush=True)


class ExperimentArm:
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
        self.protocol = GraphR1Protocol(turns, settings.brief)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self.environment = Environment(build_retriever(name, folder, device), self.protocol)
        model, tokenizer = load_model(folder / "hf")
        self.chat_tokenizer = ChatTokenizer(tokenizer, self.protocol)
        torch.manual_seed(settings.seed)  # the adapter is initialised at random
        self.policy = Policy.from_model(
            model,
            self.chat_tokenizer.pad_id,
            Lora(settings.lora_rank, settings.lora_alpha),
            checkpointing=settings.checkpointing,
            temperature=settings.temperature,
            cells=settings.cells,
        )
        self.decoder = FastDecoder(self.policy.model, graphs=graphs)
        limits = RolloutLimits(settings.length, settings.step_tokens, settings.reply_tokens)
        self.rollout = Rollout(
            self.decoder, self.environment, self.chat_tokenizer, limits, settings.batch
        )
        train, self.held_out = split_tasks(load_tasks(folder / "questions.jsonl"), held, SPLIT_SEED)
        # The dev questions for early stopping are seen by no training stage.
        dev = settings.count_dev_questions(len(train))
        self.dev, self.train = train[:dev], train[dev:]
        print_line({"arm": name, "loaded": round(time.perf_counter() - began, 1), "device": device})

    def measure(self, stage: str) -> None:
        """Score the held-out questions, once per stage."""
        path = self.out / f"eval-{stage}.json"
        if path.is_file():
            return
        self.decoder.refresh()
        means, records = evaluate(self.rollout, self.held_out)
        print_line({"arm": self.name, "stage": stage, **means})
        path.write_text(json.dumps({"arm": self.name, "stage": stage, **means}))
        rows = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (self.out / f"answers-{stage}.jsonl").write_text(rows, encoding="utf-8")

    def warm_start(self) -> None:
        """Run (or load) the warm start on demonstrations of the training questions."""
        checkpoints = Checkpoints(self.out / "sft", 1)
        if checkpoints.newest() is not None:
            load_checkpoint(checkpoints.newest(), self.policy.trainable_parameters())  # type: ignore[arg-type]
            return
        began = time.perf_counter()
        if self.name == "none":
            examples = build_closed_book_demonstrations(self.train)
        else:
            examples = sync.wait(build_demonstrations(self.environment, self.train))
        made = tokenize_demonstrations(
            examples, self.chat_tokenizer, self.settings.reply_tokens, self.settings.length
        )
        tokens = sum(len(one) for one in made)
        print_line({"examples": len(made), "of": len(self.train), "tokens": tokens})
        s = self.settings
        WarmStart(s.sft_epochs, s.sft_lr, s.sft_batch)(self.policy, made, print_line)
        checkpoints.save(0, self.policy.trainable_parameters(), None, {})
        print_line({"sft_seconds": round(time.perf_counter() - began, 1)})

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
            report=print_line,
            refresh=self.decoder.refresh,
        )
        result = training.run()
        print_line({"arm": self.name, "grpo": result})
        self.measure(f"grpo-{result['steps']}")
        best = Checkpoints(self.out / "best", 1).newest()
        if best is not None and result["best_step"] not in (0, result["steps"]):
            load_checkpoint(best, self.policy.trainable_parameters())
            self.measure(f"best-{result['best_step']}")

    def copy_results(self) -> None:
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
        for number, block in enumerate(_pack_adapter(self.policy.trainable_parameters())):
            (out / f"{run}-adapter-{number:02d}").write_bytes(block)


def _pack_adapter(trained: dict[str, Any]) -> list[bytes]:
    from safetensors.torch import save

    whole = save({name: one.detach().half().cpu().contiguous() for name, one in trained.items()})
    return [whole[at : at + PART_BYTES] for at in range(0, len(whole), PART_BYTES)]


def _restore_adapter(arm: ExperimentArm, parts: list[Path]) -> None:
    """Start from an adapter of another machine, as if its warm start had run here."""
    from safetensors.torch import load as read

    tensors = read(b"".join(part.read_bytes() for part in sorted(parts)))
    with torch.no_grad():
        for name, parameter in arm.policy.trainable_parameters().items():
            parameter.copy_(tensors[name])
    Checkpoints(arm.out / "sft", 1).save(
        0, arm.policy.trainable_parameters(), None, {"restored": True}
    )


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
    arm = ExperimentArm(
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
            _restore_adapter(arm, given.restore)
        if settings.sft_epochs or given.restore:
            arm.warm_start()
            arm.measure("sft")
        if settings.steps:
            arm.learn()
    finally:
        arm.copy_results()


if __name__ == "__main__":
    main()
