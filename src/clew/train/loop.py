"""The training story: play, judge, weigh, learn; check on held-out questions; keep what is good."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from clew.errors import ConfigError, ModelError
from clew.train import advantages as worth
from clew.train.checkpoints import Checkpoints, load
from clew.train.critic import Critic
from clew.train.losses import Objective, divergence
from clew.train.measuring import evaluate, summary
from clew.train.parallel import Team
from clew.train.policy import Policy
from clew.train.questions import Task, batch_of
from clew.train.report import Log, plots, read_log
from clew.train.rewards import Outcome, Reward
from clew.train.rollout import Rollout
from clew.train.settings import TrainSettings
from clew.train.trajectory import Trajectory
from clew.train.updates import Descent, Lesson, backward, descend

Tell = Callable[[str], None]


@dataclass
class Training:
    """A run: who learns, from what, in which folder."""

    policy: Policy
    rollout: Rollout
    settings: TrainSettings
    out: Path
    train: Sequence[Task]
    dev: Sequence[Task] = ()
    reward: Reward = field(default_factory=Outcome)
    tell: Tell = lambda line: None
    refresh: Callable[[], None] = lambda: None
    """Called when weights changed; the fast decoder copies them."""
    team: Team = Team()

    def __post_init__(self) -> None:
        import torch

        self.team.even(self.settings.questions)

        trained = list(self.policy.trained().values())
        if not trained:
            raise ConfigError("the model has nothing to train; set lora_rank or thaw its weights")
        self.critic = Critic(self.policy) if self.settings.algorithm == "ppo" else None
        self.optimizer = torch.optim.AdamW(trained, lr=self.settings.lr, weight_decay=0.0)
        self._head = (
            torch.optim.AdamW(self.critic.head.parameters(), lr=1e-3) if self.critic else None
        )
        self.objective = Objective(
            self.settings.clip, self.settings.beta if self.settings.algorithm == "grpo" else 0.0
        )
        self.checkpoints = Checkpoints(self.out / "checkpoints", self.settings.keep)
        # Only the first of several processes writes; what the others would is the same.
        self.log = Log(self.out, silent=not self.team.first)
        self.state: dict[str, Any] = {"best": -1.0, "best_step": -1, "stale": 0}

    # -- the story

    def run(self) -> dict[str, Any]:
        """Train from where the folder stands to the last step, the time limit or the early stop."""
        began = perf_counter()
        step = self.resume()
        if not self.policy.frozen:
            self.policy.freeze_reference()
        self._record()
        self.refresh()
        if step == 0 and self.dev:
            self._check(0)
        while step < self.settings.steps:
            row = {"step": step, **self.step(step)}
            step += 1
            if self.dev and (step % self.settings.eval_every == 0 or step == self.settings.steps):
                row |= self._check(step)
            self.log.write(row)
            self.tell(json.dumps(row))
            if step % self.settings.save_every == 0 or step == self.settings.steps:
                self.save(step)
            if self._over(began):
                break
        self.save(step)
        self.finish()
        return {"steps": step, **self.state, "seconds": round(perf_counter() - began, 1)}

    def _over(self, began: float) -> bool:
        out_of_time = 0 < self.settings.minutes * 60 <= perf_counter() - began
        over = out_of_time or 0 < self.settings.patience <= self.state["stale"]
        return bool(self.team.agreed(over))

    def _record(self) -> None:
        if not self.team.first:
            return
        (self.out / "settings.json").write_text(
            json.dumps(asdict(self.settings), indent=1), encoding="utf-8"
        )

    def step(self, step: int) -> dict[str, float]:
        """Play a batch of questions in groups and learn from it."""
        s = self.settings
        mine = self.team.share(batch_of(self.train, step, s.questions, s.seed))
        tasks = [task for task in mine for _ in range(s.group)]
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
        told = self.learn(step, played, rewards)
        learning = perf_counter() - began
        self.refresh()
        return {
            **summary(played, tasks, rewards),
            **{name: round(value, 6) for name, value in told.items()},
            "generating": round(timing.seconds - timing.retrieving, 2),
            "retrieving": round(timing.retrieving, 2),
            "reading": round(timing.reading, 2),
            "decoded": timing.steps,
            "learning": round(learning, 2),
            "tokens_per_second": round(timing.tokens / max(timing.seconds, 1e-9), 1),
            "episodes_per_second": round(timing.episodes / max(timing.seconds, 1e-9), 2),
        }

    def learn(
        self, step: int, played: Sequence[Trajectory], rewards: Sequence[float]
    ) -> dict[str, float]:
        """One rollout's optimiser steps."""
        lesson = self.lesson(played, rewards)
        told: dict[str, float] = {}
        size = -(-len(played) // self.settings.updates)
        for first in range(0, len(played), size):
            lengths = [one.written for one in played[first : first + size]]
            part = lesson.part(first, first + size, worth.weights(lengths, self.settings.mean))
            if self.critic is not None:
                everything = self.critic.returns
                self.critic.returns = everything[first : first + size]
            part = part.telling() if self.objective.beta == 0 and self.critic is None else part
            found = backward(self.policy, part, self.objective, self.tell, self.critic)
            if self.critic is not None:
                self.critic.returns = everything
                self.team.average(self.critic.head.parameters())
                self._head.step()  # type: ignore[union-attr]
                self.critic.zero_grad()
            how = Descent(self._rate(step), self.settings.grad_clip, self.team)
            found["grad"] = descend(self.optimizer, how, found["loss"])
            told = {name: told.get(name, 0.0) + value for name, value in found.items()}
        return {name: value / self.settings.updates for name, value in told.items()}

    def _rate(self, step: int) -> float:
        return self.settings.lr * min(1.0, (step + 1) / max(self.settings.warmup, 1))

    def lesson(self, played: Sequence[Trajectory], rewards: Sequence[float]) -> Lesson:
        """What each token is worth under the chosen algorithm."""
        s = self.settings
        lengths = [one.written for one in played]
        old = [one.logprobs[one.own == 1] for one in played]
        if s.old == "recompute":
            old = self.policy.measured(played)
        reference = None
        if s.beta > 0 and s.algorithm != "ppo":
            with self.policy.as_reference():
                reference = self.policy.measured(played)
        if s.algorithm == "grpo":
            each = worth.constant(worth.grouped(rewards, s.group), lengths)
        elif s.algorithm == "reinforce++":
            drift = [
                _drift(mine, theirs) for mine, theirs in zip(old, reference or old, strict=True)
            ]
            each = worth.reinforced(rewards, drift, s.beta)
        else:
            each = self._over_baseline(played, rewards)
        kept = None if s.updates == 1 and s.old == "recompute" else old
        return Lesson(played, each, (), kept, reference if s.algorithm == "grpo" else None)

    def _over_baseline(self, played: Sequence[Trajectory], rewards: Sequence[float]) -> list[Any]:
        assert self.critic is not None
        returns = [
            np.full(one.written, reward, np.float32)
            for one, reward in zip(played, rewards, strict=True)
        ]
        values = self.critic.values(self.policy, played)
        self.critic.returns = returns
        return worth.whitened([r - v for r, v in zip(returns, values, strict=True)])

    # -- keeping

    def _check(self, step: int) -> dict[str, float]:
        """Measure on the held-out questions; remember the best weights."""
        means, records = evaluate(self.rollout, self.dev)
        means = self.team.agreed(means)
        if self.team.first:
            (self.out / "dev.jsonl").write_text(
                "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records),
                encoding="utf-8",
            )
        if means["f1"] > self.state["best"]:
            self.state |= {"best": means["f1"], "best_step": step, "stale": 0}
            self._keep(Checkpoints(self.out / "best", 1), step, self.policy.trained(), None)
        else:
            self.state["stale"] += 1
        told = {f"dev_{name}": value for name, value in means.items()}
        if step == 0:
            self.log.write({"step": 0, **told})
            self.tell(json.dumps({"step": 0, **told}))
        return told

    def save(self, step: int) -> None:
        """Write a checkpoint."""
        self._keep(self.checkpoints, step, self.policy.trained(), self.optimizer)

    def _keep(self, into: Checkpoints, step: int, trained: dict[str, Any], optimizer: Any) -> None:
        if self.team.first:
            into.save(step, trained, optimizer, self.state)
        self.team.agreed(step)  # the others wait until it is on disk

    def resume(self) -> int:
        """Go on from the newest checkpoint, or begin."""
        newest = self.checkpoints.newest()
        reference = self.out / "reference"
        if newest is None:
            if not self.policy.frozen:
                self.policy.freeze_reference()
            self._keep(Checkpoints(reference, 1), 0, self.policy.frozen, None)
            self.log.rewind(0)
            return 0
        held = Checkpoints(reference, 1).newest()
        if held is not None:
            load(held, self.policy.trained())
            self.policy.freeze_reference()
        state = load(newest, self.policy.trained(), self.optimizer)
        step = int(state.pop("step"))
        self.state |= state
        self.log.rewind(step)
        self.tell(f"going on from step {step}")
        return step

    def finish(self) -> None:
        """Draw the curves and write the weights as they are served."""
        if not self.team.first:
            return
        rows = read_log(self.log.path)
        plots({self.out.name: rows}, self.out / "plots")
        self.policy.model.save_pretrained(str(self.out / "model"))
        self.rollout.wording.tokenizer.save_pretrained(str(self.out / "model"))


def _drift(mine: Any, theirs: Any) -> Any:
    import torch

    gap = divergence(torch.as_tensor(mine), torch.as_tensor(theirs))
    return gap.numpy()
