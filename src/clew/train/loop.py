"""The training loop: rollout, reward, update; validation, checkpoints and stopping criteria."""

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any

import numpy as np

from clew.errors import ConfigError, ModelError
from clew.train.checkpoints import (
    Checkpoints,
    load_checkpoint,
    load_critic,
    read_state,
    resume_advice,
)
from clew.train.core.rollout import Rollout, StopRequested
from clew.train.core.safeguards import LogFunction, NonFiniteValue, log_nothing
from clew.train.core.settings import TrainSettings
from clew.train.core.trajectory import Trajectory
from clew.train.learn.distributed import ProcessGroup
from clew.train.learn.grpo import Objective, token_weights
from clew.train.learn.policy import Policy
from clew.train.learn.update import (
    AdvantageEstimator,
    Critic,
    StepOptions,
    apply_gradients,
    backward,
)
from clew.train.questions import Task, select_batch
from clew.train.rewards import (
    Outcome,
    Reward,
    combine_rows,
    evaluate,
    informative_share,
    summarize_rollouts,
)
from clew.train.run_folder import (
    OnModelSaved,
    TrainingLog,
    read_log,
    recover_best,
    write_model,
    write_plots,
)

STOPPED_BY_USER = "stopped by the user"
_IDLE_STEPS = 3
"""Consecutive steps without a learning signal before a warning."""
_IDLE_MESSAGE = (
    "nothing is learned: all rewards of each group were equal in the last steps; try a warm start "
    "(sft_epochs), a larger group or another model"
)


@dataclass
class StoppingCriteria:
    """Decides between steps whether the run ends."""

    settings: TrainSettings
    stop: Event
    report: LogFunction
    end_reason: str = "all steps are done"
    idle_steps: int = 0

    def stop_reason(self, seconds: float, stale: int) -> str:
        """Return why the run ends now; empty if it continues."""
        s = self.settings
        if self.stop.is_set():
            return STOPPED_BY_USER
        if 0 < s.minutes * 60 <= seconds:
            return f"the time limit of {s.minutes:g} minutes was reached"
        if 0 < s.patience <= stale:
            return f"dev F1 did not improve in {stale} validations"
        return ""

    def count_idle_steps(self, informative: float) -> None:
        """Count steps in which no group's rewards differ, and warn once."""
        self.idle_steps = 0 if informative else self.idle_steps + 1
        if self.idle_steps == _IDLE_STEPS:
            self.report(_IDLE_MESSAGE)

    def report_end(self, step: int, served: str) -> None:
        """Log why and after how many steps the run ended."""
        self.report(f"{step} step{'s' * (step != 1)} done ({self.end_reason}); {served}")
        if self.idle_steps >= _IDLE_STEPS:
            self.report(_IDLE_MESSAGE)


@dataclass
class Training:
    """A training run: policy, rollout, questions, settings and output folder."""

    policy: Policy
    rollout: Rollout
    settings: TrainSettings
    out: Path
    train: Sequence[Task]
    dev: Sequence[Task] = ()
    reward: Reward = field(default_factory=Outcome)
    report: LogFunction = log_nothing
    refresh: Callable[[], None] = lambda: None
    """Called after weights change; the fast decoder copies them."""
    processes: ProcessGroup = ProcessGroup()
    stop: Event = field(default_factory=Event)
    """Set it from any thread to end the run; what was learned is saved and exported."""
    on_model_saved: OnModelSaved = lambda folder: None
    """Called with the exported model's folder, to write its serving settings there."""

    def __post_init__(self) -> None:
        import torch

        self.processes.check_divisible(self.settings.questions)

        trained = list(self.policy.trainable_parameters().values())
        if not trained:
            raise ConfigError(
                "the model has no trainable weights; set lora_rank, or unfreeze its weights"
            )
        self.critic = Critic(self.policy) if self.settings.algorithm == "ppo" else None
        self.optimizer = torch.optim.AdamW(trained, lr=self.settings.lr, weight_decay=0.0)
        # REINFORCE++ subtracts the KL from the rewards instead.
        beta = 0.0 if self.settings.algorithm == "reinforce++" else self.settings.beta
        self.objective = Objective(self.settings.clip, beta)
        self.estimator = AdvantageEstimator(self.policy, self.settings, self.critic, self.report)
        self.checkpoints = Checkpoints(self.out / "checkpoints", self.settings.keep)
        self.best = Checkpoints(self.out / "best", 1)
        # Only the main process writes; the others have the same rows.
        self.log = TrainingLog(self.out, silent=not self.processes.is_main)
        self.state: dict[str, Any] = {"best": -1.0, "best_step": -1, "stale": 0, "checked": -1}
        self._saved_step = -1
        self.stopping = StoppingCriteria(self.settings, self.stop, self.report)
        self.rollout.report = self.report
        if self.processes.size == 1:  # one process leaving a step alone would block the others
            self.rollout.stop = self.stop

    # -- steps

    def run(self) -> dict[str, Any]:
        """Train (or resume) until the last step, the time limit or early stopping."""
        began = perf_counter()
        try:
            step = self._run_steps(began)
        except NonFiniteValue as error:
            advice = resume_advice(self.checkpoints.newest())
            raise ModelError(f"{error}; training stopped, {advice}") from error
        served = self.finish(step)
        seconds = round(perf_counter() - began, 1)
        result = {"steps": step, **self.state, "served_step": served}
        return result | {"ended": self.stopping.end_reason, "seconds": seconds}

    def _run_steps(self, began: float) -> int:
        step = self.resume()
        if not self.policy.reference_weights:
            self.policy.freeze_reference()
        self._write_settings()
        self.refresh()
        scores = self._validate_if_due(step)
        if scores:
            self._log_row({"step": max(step - 1, 0), **scores})
        while step < self.settings.steps and not self._should_stop(began):
            try:
                row = {"step": step, **self.step(step)}
            except StopRequested:
                self.stopping.end_reason = STOPPED_BY_USER
                break
            step += 1
            self._log_row(row | self._validate_if_due(step))
            if step % self.settings.save_every == 0:
                self.save(step)
        if self._saved_step != step:
            self.save(step)
        return step

    def _log_row(self, row: dict[str, Any]) -> None:
        self.log.write(row)
        self.report(json.dumps(row))

    def _should_stop(self, began: float) -> bool:
        reason = self.processes.broadcast(
            self.stopping.stop_reason(perf_counter() - began, self.state["stale"])
        )
        self.stopping.end_reason = reason or self.stopping.end_reason
        return bool(reason)

    def _write_settings(self) -> None:
        if not self.processes.is_main:
            return
        (self.out / "settings.json").write_text(
            json.dumps(asdict(self.settings), indent=1), encoding="utf-8"
        )

    def step(self, step: int) -> dict[str, float]:
        """Roll out a batch of questions in groups and update the policy."""
        s = self.settings
        shard = self.processes.shard(select_batch(self.train, step, s.questions, s.seed))
        tasks = [task for task in shard for _ in range(s.group)]
        seed = (s.seed * 7919 + step) * self.processes.size + self.processes.rank
        played, timing = self.rollout(
            [task.question for task in tasks], temperature=s.temperature, seed=seed
        )
        rewards = [
            self.reward(one.episode, task.answers) for one, task in zip(played, tasks, strict=True)
        ]
        if not np.isfinite(rewards).all():
            raise ModelError("a reward is NaN or infinite; fix the reward function, then resume")
        began = perf_counter()
        metrics = self.learn(step, played, rewards)
        learning = perf_counter() - began
        self.refresh()
        row = {
            **summarize_rollouts(played, tasks, rewards),
            "telling": informative_share(
                rewards, s.group if s.algorithm == "grpo" else len(rewards)
            ),
            **{name: round(value, 6) for name, value in metrics.items()},
            "generating": round(timing.seconds - timing.retrieving, 2),
            "retrieving": round(timing.retrieving, 2),
            "reading": round(timing.reading, 2),
            "decoded": timing.steps,
            "learning": round(learning, 2),
            "tokens_per_second": round(timing.tokens / max(timing.seconds, 1e-9), 1),
            "episodes_per_second": round(timing.episodes / max(timing.seconds, 1e-9), 2),
        }
        row = combine_rows(self.processes.gather(row))
        self.stopping.count_idle_steps(row["telling"])
        return row

    def learn(
        self, step: int, played: Sequence[Trajectory], rewards: Sequence[float]
    ) -> dict[str, float]:
        """Take the optimiser steps of one rollout."""
        examples = self.estimator(played, rewards)
        totals: dict[str, float] = {}
        size = -(-len(played) // self.settings.updates)
        for first in range(0, len(played), size):
            lengths = [one.generated_count for one in played[first : first + size]]
            per_token = token_weights(
                lengths, self.settings.mean, self.processes.reduce_mean(sum(lengths))
            )
            part = examples.take_slice(first, first + size, per_token)
            if self.critic is not None:
                all_returns = self.critic.returns
                self.critic.returns = all_returns[first : first + size]
            part = (
                part.drop_zero_advantages()
                if self.objective.beta == 0 and self.critic is None
                else part
            )
            metrics = backward(self.policy, part, self.objective, self.report, self.critic)
            if self.critic is not None:
                self.critic.returns = all_returns
                self.processes.average_gradients(self.critic.head.parameters())
                self.critic.optimizer.step()
                self.critic.zero_grad()
            options = StepOptions(
                self._learning_rate(step), self.settings.grad_clip, self.processes
            )
            metrics["grad"] = apply_gradients(self.optimizer, options, metrics["loss"])
            totals = {name: totals.get(name, 0.0) + value for name, value in metrics.items()}
        return {name: value / self.settings.updates for name, value in totals.items()}

    def _learning_rate(self, step: int) -> float:
        return self.settings.lr * min(1.0, (step + 1) / max(self.settings.warmup, 1))

    # -- validation and checkpoints

    def _validate_if_due(self, step: int) -> dict[str, float]:
        """Validate if it is due and not done yet; return the dev scores."""
        s = self.settings
        due = step % s.eval_every == 0 or step == s.steps
        if not (self.dev and due) or self.state["checked"] == step:
            return {}
        try:
            return self._validate(step)
        except StopRequested:  # a resumed run repeats it
            return {}

    def _validate(self, step: int) -> dict[str, float]:
        """Validate on the held-out questions; save the best weights."""
        means, records = evaluate(self.rollout, self.dev)
        means = self.processes.broadcast(means)
        if self.processes.is_main:
            rows = [json.dumps({"step": step, **one}, ensure_ascii=False) for one in records]
            (self.out / "dev.jsonl").write_text("\n".join([*rows, ""]), encoding="utf-8")
        self._saved_step = -1
        self.state["checked"] = step
        # After a kill the best step may be validated again: it does not count as stale.
        again = step == self.state["best_step"] and means["f1"] == self.state["best"]
        if means["f1"] > self.state["best"] or again:
            self.state |= {"best": means["f1"], "best_step": step, "stale": 0}
            self._save_checkpoint(self.best, step, self.policy.trainable_parameters())
            if self.settings.lora_rank:  # adapters are small: export at once, in case of a kill
                self._export_model(None)
        elif step > self.state["best_step"]:  # earlier steps are only repeated after a kill
            self.state["stale"] += 1
        scores = {f"dev_{name}": value for name, value in means.items()}
        return scores | {"served_step": self.state["best_step"]}

    def save(self, step: int) -> None:
        """Write a checkpoint."""
        self._save_checkpoint(
            self.checkpoints, step, self.policy.trainable_parameters(), self.optimizer
        )
        self._saved_step = step

    def _save_checkpoint(
        self, into: Checkpoints, step: int, trained: dict[str, Any], optimizer: Any = None
    ) -> None:
        if self.processes.is_main:
            critic = self.critic if optimizer is not None else None
            into.save(step, trained, optimizer, self.state, critic)
        self.processes.broadcast(step)  # barrier: wait until it is on disk

    def resume(self) -> int:
        """Resume from the newest checkpoint, or start; return the step."""
        newest = self.checkpoints.newest()
        if newest is None:
            return self._start_run()
        reference = Checkpoints(self.out / "reference", 1).newest()
        if reference is not None:
            load_checkpoint(reference, self.policy.trainable_parameters())
            self.policy.freeze_reference()
        state = load_checkpoint(newest, self.policy.trainable_parameters(), self.optimizer)
        if self.critic is not None and not load_critic(newest, self.critic):
            self.report(f"{newest} has no critic; a new one is started")
        step = self._saved_step = int(state.pop("step"))
        self.state |= {"checked": step} | state
        self.state |= recover_best(self.state, self.best)
        self._rewind_log(step)
        self.report(f"resuming from step {step}")
        return step

    def _start_run(self) -> int:
        """Save the initial weights, so that a kill before the first step keeps the warm start."""
        if not self.policy.reference_weights:
            self.policy.freeze_reference()
        self._save_checkpoint(
            Checkpoints(self.out / "reference", 1), 0, self.policy.reference_weights
        )
        if self.processes.is_main:
            shutil.rmtree(self.best.folder, ignore_errors=True)  # left by an earlier run
        self.save(0)
        self._rewind_log(0)
        return 0

    def _rewind_log(self, step: int) -> None:
        if not self.log.rewind(step):
            self.report(
                "no TensorBoard files are written; run `pip install tensorboard` to get them"
            )

    def finish(self, step: int) -> int:
        """Draw the curves and export the best weights; return their step."""
        best = self.best.newest() if self.dev else None
        served = step if best is None else int(read_state(best)["step"])
        if self.processes.is_main:
            write_plots({self.out.name: read_log(self.log.path)}, self.out / "plots")
            self._export_model(best)
        note = "" if best is None else f", the best on the {len(self.dev)} dev questions"
        self.stopping.report_end(step, f"{self.out / 'model'} is step {served}{note}")
        return served

    def _export_model(self, which: Path | None) -> None:
        if not self.processes.is_main:
            return
        with self.policy.temporary_weights() if which else nullcontext():
            if which is not None:
                load_checkpoint(which, self.policy.trainable_parameters())
            tokenizer = self.rollout.chat_tokenizer.tokenizer
            write_model(self.policy, tokenizer, self.out / "model", self.on_model_saved)
