"""Assembles and runs `clew train`: model, retriever, questions and settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from clew import sync
from clew.agents.graph_r1 import Protocol
from clew.errors import ConfigError
from clew.llm.trained import Trained
from clew.train.begun import check_begun, described
from clew.train.environment import Environment, Retriever, nothing
from clew.train.keeping import claimed
from clew.train.learn.gold import direct, recorded, worked
from clew.train.learn.parallel import team
from clew.train.learn.warm_start import WarmStart
from clew.train.loop import Training
from clew.train.policy import Lora, Policy, load_model
from clew.train.questions import Task, split
from clew.train.rewards import Outcome, Reward
from clew.train.rollout import Limits, Rollout
from clew.train.settings import TrainSettings
from clew.train.wording import Wording

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """Inputs of a training run; without `retrieve` it trains R1, which answers from memory."""

    model: str
    out: Path
    tasks: Sequence[Task]
    settings: TrainSettings
    retrieve: Retriever | None = None
    reward: Reward | None = None
    recipe: str = ""
    """The recipe that serves the trained model in `clew ask --recipe`."""
    k: int | None = None
    characters: int | None = None
    stop: Event = field(default_factory=Event, compare=False)
    """Set it from any thread to end the run early; what was learned is saved."""

    @property
    def protocol(self) -> Protocol:
        """The think–query–answer protocol of its episodes."""
        return Protocol(self.settings.turns if self.retrieve else 0, self.settings.brief)

    def served(self) -> Trained:
        """The settings that the served agent needs, stored beside the model."""
        p = self.protocol
        return Trained(
            *(self.recipe, p.turns, p.brief, self.settings.step_tokens, self.k, self.characters)
        )


def assembled(job: Job, tell: Tell = lambda line: None) -> Training:
    """Load and check everything before the first token is generated."""
    s = job.settings
    dev_size = s.held_out(len(job.tasks))
    train, dev = split(job.tasks, dev_size, s.seed) if dev_size else (list(job.tasks), [])
    environment = Environment(job.retrieve or nothing, job.protocol)
    _probe(environment, train[0].question)
    processes = team()
    serving = {"recipe": job.recipe, "k": job.k, "characters": job.characters}
    config = described(job.model, serving, job.tasks, s)
    check_begun(job.out, config, write=processes.first)
    model, tokenizer = load_model(job.model, whole=not s.lora_rank)
    _seeded(s.seed)
    wording = Wording(tokenizer, job.protocol)
    train, dev = _fitting(train, dev, wording, s, tell)
    policy = _policy(model, wording.pad, s)
    processes.align(policy.trained().values())
    decoder, refresh = _decoder(policy.model, s.decoder, tell)
    limits = Limits(s.length, s.step_tokens, s.reply_tokens)
    rollout = Rollout(decoder, environment, wording, limits, s.batch)
    reward = job.reward or Outcome(each=0.5 if job.retrieve else 1.0)
    return Training(
        *(policy, rollout, s, job.out, train, dev),
        reward=reward,
        tell=tell if processes.first else _quiet,
        refresh=refresh,
        team=processes,
        stop=job.stop,
        beside=job.served().write,
    )


def _policy(model: Any, pad: int, s: TrainSettings) -> Policy:
    return Policy.around(
        *(model, pad, Lora(s.lora_rank, s.lora_alpha)),
        checkpointing=s.checkpointing and next(model.parameters()).device.type == "cuda",
        temperature=s.temperature,
        cells=s.cells,
    )


def _probe(environment: Environment, query: str) -> None:
    """Query once before loading a model: the knowledge base may lack what the recipe needs."""
    sync.wait(environment.step(environment.reset([query]), [f"<query>{query}</query>"]))


def _fitting(
    train: list[Task], dev: list[Task], wording: Wording, s: TrainSettings, tell: Tell
) -> tuple[list[Task], list[Task]]:
    """Drop questions whose prompt leaves no room for a step, and log how many."""
    room = s.length - s.step_tokens
    sizes = {task.question: len(wording.opening(task.question)) for task in [*train, *dev]}
    kept = [[task for task in part if sizes[task.question] <= room] for part in (train, dev)]
    left_out = len(train) + len(dev) - sum(map(len, kept))
    if not kept[0]:
        raise ConfigError(
            f"no question leaves room for a step: the shortest prompt has {min(sizes.values())} "
            f"tokens and length - step_tokens is {room}; set a larger length"
        )
    if left_out:
        tell(f"{left_out} questions are left out: their prompts exceed {room} tokens")
    return kept[0], kept[1]


def _seeded(seed: int) -> None:
    """Seed torch: adapters are initialised at random, and runs should be repeatable."""
    import torch

    torch.manual_seed(seed)


def _quiet(line: str) -> None:
    """Log nothing; used by all processes but the main one."""


def _decoder(model: Any, wanted: str, tell: Tell) -> tuple[Any, Callable[[], None]]:
    from clew.train.decode.fast_decoder import FastDecoder
    from clew.train.decode.plain_decoder import PlainDecoder

    if wanted != "plain":
        try:
            fast = FastDecoder(model)
        except ConfigError as error:
            if wanted == "fast":
                raise
            tell(f"generating by transformers itself: {error}")
        else:
            return fast, fast.refresh
    return PlainDecoder(model), lambda: None


def train(job: Job, tell: Tell = lambda line: None) -> dict[str, Any]:
    """Run the warm start if it is due, then reinforcement learning."""
    with claimed(job.out, team()):
        training = assembled(job, tell)
        if job.settings.sft_epochs and training.checkpoints.newest() is None:
            _warm(training, job, tell)
        return training.run()


def _warm(training: Training, job: Job, tell: Tell) -> None:
    s, wording = job.settings, training.rollout.wording
    if job.retrieve is None:
        examples = direct(training.train)
    else:
        examples = sync.wait(worked(training.rollout.environment, training.train))
    trajectories = recorded(examples, wording, s.reply_tokens, s.length)
    if not trajectories:
        raise ConfigError(
            "no worked episodes can be made: the questions have no gold_triples, or the knowledge "
            "base does not hold them; set sft_epochs = 0"
        )
    tell(f"warm start on {len(trajectories)} worked episodes of {len(training.train)} questions")
    start = WarmStart(s.sft_epochs, s.sft_lr, s.sft_batch, s.seed, training.team, training.stop)
    start(training.policy, trajectories, tell)
