"""The training loop: rollout, reward, advantages, update; validation and checkpoints."""

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
from clew.train.checkpoints import Checkpoints, load, load_critic, state_of
from clew.train.curves import plots
from clew.train.keeping import Beside, better_than, write_model
from clew.train.learn import advantages as worth
from clew.train.learn.critic import Critic
from clew.train.learn.finite import NotANumber, way_on
from clew.train.learn.lessons import Teacher
from clew.train.learn.losses import Objective
from clew.train.learn.parallel import Team
from clew.train.learn.updates import Descent, backward, descend
from clew.train.measuring import evaluate, summary, telling, together
from clew.train.policy import Policy
from clew.train.questions import Task, batch_of
from clew.train.report import Log, read_log
from clew.train.rewards import Outcome, Reward
from clew.train.rollout import Rollout, Stopped
from clew.train.settings import TrainSettings
from clew.train.trajectory import Trajectory
from clew.train.watching import STOPPED, Watch

Tell = Callable[[str], None]


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
    tell: Tell = lambda line: None
    refresh: Callable[[], None] = lambda: None
    """Called after weights change; the fast decoder copies them."""
    team: Team = Team()
    stop: Event = field(default_factory=Event)
    """Set it from any thread to end the run; what was learned is saved and exported."""
    beside: Beside = lambda folder: None
    """Called with the exported model's folder, to write its serving settings there."""

    def __post_init__(self) -> None:
        import torch

        self.team.even(self.settings.questions)

        trained = list(self.policy.trained().values())
        if not trained:
            raise ConfigError("the model has nothing to train; set lora_rank or thaw its weights")
        self.critic = Critic(self.policy) if self.settings.algorithm == "ppo" else None
        self.optimizer = torch.optim.AdamW(trained, lr=self.settings.lr, weight_decay=0.0)
        # REINFORCE++ subtracts the KL from the rewards instead.
        beta = 0.0 if self.settings.algorithm == "reinforce++" else self.settings.beta
        self.objective = Objective(self.settings.clip, beta)
        self.lesson = Teacher(self.policy, self.settings, self.critic, self.tell)
        self.checkpoints = Checkpoints(self.out / "checkpoints", self.settings.keep)
        self.best = Checkpoints(self.out / "best", 1)
        # Only the main process writes; the others have the same rows.
        self.log = Log(self.out, silent=not self.team.first)
        self.state: dict[str, Any] = {"best": -1.0, "best_step": -1, "stale": 0, "checked": -1}
        self._saved = -1
        self.watch = Watch(self.settings, self.stop, self.tell)
        self.rollout.tell = self.tell
        if self.team.size == 1:  # one process leaving a step alone would block the others
            self.rollout.stop = self.stop

    # -- steps

    def run(self) -> dict[str, Any]:
        """Train (or resume) until the last step, the time limit or early stopping."""
        began = perf_counter()
        try:
            step = self._steps(began)
        except NotANumber as error:
            advice = way_on(self.checkpoints.newest())
            raise ModelError(f"{error}: training stops, {advice}") from error
        served = self.finish(step)
        seconds = round(perf_counter() - began, 1)
        result = {"steps": step, **self.state, "served_step": served}
        return result | {"ended": self.watch.ended, "seconds": seconds}

    def _steps(self, began: float) -> int:
        step = self.resume()
        if not self.policy.frozen:
            self.policy.freeze_reference()
        self._record()
        self.refresh()
        scores = self._checked(step)
        if scores:
            self._write({"step": max(step - 1, 0), **scores})
        while step < self.settings.steps and not self._over(began):
            try:
                row = {"step": step, **self.step(step)}
            except Stopped:
                self.watch.ended = STOPPED
                break
            step += 1
            self._write(row | self._checked(step))
            if step % self.settings.save_every == 0:
                self.save(step)
        if self._saved != step:
            self.save(step)
        return step

    def _write(self, row: dict[str, Any]) -> None:
        self.log.write(row)
        self.tell(json.dumps(row))

    def _over(self, began: float) -> bool:
        reason = self.team.agreed(self.watch.reason(perf_counter() - began, self.state["stale"]))
        self.watch.ended = reason or self.watch.ended
        return bool(reason)

    def _record(self) -> None:
        if not self.team.first:
            return
        (self.out / "settings.json").write_text(
            json.dumps(asdict(self.settings), indent=1), encoding="utf-8"
        )

    def step(self, step: int) -> dict[str, float]:
        """Roll out a batch of questions in groups and update the policy."""
        s = self.settings
        shard = self.team.share(batch_of(self.train, step, s.questions, s.seed))
        tasks = [task for task in shard for _ in range(s.group)]
        seed = (s.seed * 7919 + step) * self.team.size + self.team.rank
        played, timing = self.rollout(
            [task.question for task in tasks], temperature=s.temperature, seed=seed
        )
        rewards = [
            self.reward(one.episode, task.answers) for one, task in zip(played, tasks, strict=True)
        ]
        if not np.isfinite(rewards).all():
            raise ModelError("a reward is not a number: mend the reward function, then resume")
        began = perf_counter()
        metrics = self.learn(step, played, rewards)
        learning = perf_counter() - began
        self.refresh()
        row = {
            **summary(played, tasks, rewards),
            "telling": telling(rewards, s.group if s.algorithm == "grpo" else len(rewards)),
            **{name: round(value, 6) for name, value in metrics.items()},
            "generating": round(timing.seconds - timing.retrieving, 2),
            "retrieving": round(timing.retrieving, 2),
            "reading": round(timing.reading, 2),
            "decoded": timing.steps,
            "learning": round(learning, 2),
            "tokens_per_second": round(timing.tokens / max(timing.seconds, 1e-9), 1),
            "episodes_per_second": round(timing.episodes / max(timing.seconds, 1e-9), 2),
        }
        row = together(self.team.gathered(row))
        self.watch.seen(row["telling"])
        return row

    def learn(
        self, step: int, played: Sequence[Trajectory], rewards: Sequence[float]
    ) -> dict[str, float]:
        """Take the optimiser steps of one rollout."""
        lesson = self.lesson(played, rewards)
        totals: dict[str, float] = {}
        size = -(-len(played) // self.settings.updates)
        for first in range(0, len(played), size):
            lengths = [one.written for one in played[first : first + size]]
            per_token = worth.weights(lengths, self.settings.mean, self.team.mean(sum(lengths)))
            part = lesson.part(first, first + size, per_token)
            if self.critic is not None:
                all_returns = self.critic.returns
                self.critic.returns = all_returns[first : first + size]
            part = part.telling() if self.objective.beta == 0 and self.critic is None else part
            metrics = backward(self.policy, part, self.objective, self.tell, self.critic)
            if self.critic is not None:
                self.critic.returns = all_returns
                self.team.average(self.critic.head.parameters())
                self.critic.optimizer.step()
                self.critic.zero_grad()
            options = Descent(self._rate(step), self.settings.grad_clip, self.team)
            metrics["grad"] = descend(self.optimizer, options, metrics["loss"])
            totals = {name: totals.get(name, 0.0) + value for name, value in metrics.items()}
        return {name: value / self.settings.updates for name, value in totals.items()}

    def _rate(self, step: int) -> float:
        return self.settings.lr * min(1.0, (step + 1) / max(self.settings.warmup, 1))

    # -- validation and checkpoints

    def _checked(self, step: int) -> dict[str, float]:
        """Validate if it is due and not done yet; return the dev scores."""
        s = self.settings
        due = step % s.eval_every == 0 or step == s.steps
        if not (self.dev and due) or self.state["checked"] == step:
            return {}
        try:
            return self._check(step)
        except Stopped:  # a resumed run repeats it
            return {}

    def _check(self, step: int) -> dict[str, float]:
        """Validate on the held-out questions; save the best weights."""
        means, records = evaluate(self.rollout, self.dev)
        means = self.team.agreed(means)
        if self.team.first:
            rows = [json.dumps({"step": step, **one}, ensure_ascii=False) for one in records]
            (self.out / "dev.jsonl").write_text("\n".join([*rows, ""]), encoding="utf-8")
        self._saved = -1
        self.state["checked"] = step
        # After a kill the best step may be validated again: it does not count as stale.
        again = step == self.state["best_step"] and means["f1"] == self.state["best"]
        if means["f1"] > self.state["best"] or again:
            self.state |= {"best": means["f1"], "best_step": step, "stale": 0}
            self._keep(self.best, step, self.policy.trained())
            if self.settings.lora_rank:  # adapters are small: export at once, in case of a kill
                self._serve(None)
        elif step > self.state["best_step"]:  # earlier steps are only repeated after a kill
            self.state["stale"] += 1
        scores = {f"dev_{name}": value for name, value in means.items()}
        return scores | {"served_step": self.state["best_step"]}

    def save(self, step: int) -> None:
        """Write a checkpoint."""
        self._keep(self.checkpoints, step, self.policy.trained(), self.optimizer)
        self._saved = step

    def _keep(
        self, into: Checkpoints, step: int, trained: dict[str, Any], optimizer: Any = None
    ) -> None:
        if self.team.first:
            critic = self.critic if optimizer is not None else None
            into.save(step, trained, optimizer, self.state, critic)
        self.team.agreed(step)  # barrier: wait until it is on disk

    def resume(self) -> int:
        """Resume from the newest checkpoint, or start; return the step."""
        newest = self.checkpoints.newest()
        if newest is None:
            return self._begin()
        reference = Checkpoints(self.out / "reference", 1).newest()
        if reference is not None:
            load(reference, self.policy.trained())
            self.policy.freeze_reference()
        state = load(newest, self.policy.trained(), self.optimizer)
        if self.critic is not None and not load_critic(newest, self.critic):
            self.tell(f"{newest} holds no critic: it begins anew")
        step = self._saved = int(state.pop("step"))
        self.state |= {"checked": step} | state
        self.state |= better_than(self.state, self.best)
        self._rewind(step)
        self.tell(f"going on from step {step}")
        return step

    def _begin(self) -> int:
        """Save the initial weights, so that a kill before the first step keeps the warm start."""
        if not self.policy.frozen:
            self.policy.freeze_reference()
        self._keep(Checkpoints(self.out / "reference", 1), 0, self.policy.frozen)
        if self.team.first:
            shutil.rmtree(self.best.folder, ignore_errors=True)  # left by an earlier run
        self.save(0)
        self._rewind(0)
        return 0

    def _rewind(self, step: int) -> None:
        if not self.log.rewind(step):
            self.tell("no TensorBoard files are written: `pip install tensorboard`")

    def finish(self, step: int) -> int:
        """Draw the curves and export the best weights; return their step."""
        best = self.best.newest() if self.dev else None
        served = step if best is None else int(state_of(best)["step"])
        if self.team.first:
            plots({self.out.name: read_log(self.log.path)}, self.out / "plots")
            self._serve(best)
        note = "" if best is None else f", the best on the {len(self.dev)} dev questions"
        self.watch.conclude(step, f"{self.out / 'model'} is step {served}{note}")
        return served

    def _serve(self, which: Path | None) -> None:
        if not self.team.first:
            return
        with self.policy.aside() if which else nullcontext():
            if which is not None:
                load(which, self.policy.trained())
            tokenizer = self.rollout.wording.tokenizer
            write_model(self.policy, tokenizer, self.out / "model", self.beside)
