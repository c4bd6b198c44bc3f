"""`clew train` put together: model, retriever, questions and settings to a run in a folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew import sync
from clew.agents.graph_r1 import Protocol
from clew.errors import ConfigError
from clew.train.environment import Environment, Retriever, nothing
from clew.train.gold import direct, recorded, worked
from clew.train.loop import Training
from clew.train.parallel import team
from clew.train.policy import Lora, Policy, load_model
from clew.train.questions import Task, split
from clew.train.rewards import Outcome, Reward
from clew.train.rollout import Limits, Rollout
from clew.train.settings import TrainSettings
from clew.train.warm_start import WarmStart
from clew.train.wording import Wording

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """What to train and from what. `retrieve` of None trains R1, which answers from memory."""

    model: str
    out: Path
    tasks: Sequence[Task]
    settings: TrainSettings
    retrieve: Retriever | None = None
    reward: Reward | None = None


def assembled(job: Job, tell: Tell = lambda line: None) -> Training:
    """Load everything and check it before the first token is drawn."""
    s = job.settings
    train, dev = split(job.tasks, s.dev, s.seed) if s.dev else (list(job.tasks), [])
    if not train:
        raise ConfigError("no questions are left to train on; set a smaller dev")
    protocol = Protocol(s.turns if job.retrieve else 0, s.brief)
    with_others = team()
    model, tokenizer = load_model(job.model)
    _seeded(s.seed)
    wording = Wording(tokenizer, protocol)
    policy = Policy.around(
        model,
        wording.pad,
        Lora(s.lora_rank, s.lora_alpha),
        checkpointing=s.checkpointing and next(model.parameters()).device.type == "cuda",
        temperature=s.temperature,
        cells=s.cells,
    )
    with_others.align(policy.trained().values())
    decoder, refresh = _decoder(policy.model, s.decoder, tell)
    environment = Environment(job.retrieve or nothing, protocol)
    limits = Limits(s.length, s.step_tokens, s.reply_tokens)
    rollout = Rollout(decoder, environment, wording, limits, s.batch)
    reward = job.reward or Outcome(each=0.5 if job.retrieve else 1.0)
    return Training(
        *(policy, rollout, s, job.out, train, dev),
        reward=reward,
        tell=tell if with_others.first else _quiet,
        refresh=refresh,
        team=with_others,
    )


def _seeded(seed: int) -> None:
    """Adapters begin at random: the same seed, the same run."""
    import torch

    torch.manual_seed(seed)


def _quiet(line: str) -> None:
    """What every process but the first says."""


def _decoder(model: Any, wanted: str, tell: Tell) -> tuple[Any, Callable[[], None]]:
    from clew.train.fast_decoder import FastDecoder
    from clew.train.plain_decoder import PlainDecoder

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
    """Warm start if asked for and not done yet, then reinforcement learning."""
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
    made = recorded(examples, wording, s.reply_tokens, s.length)
    if not made:
        raise ConfigError(
            "no worked episodes can be made: the questions have no gold_triples, or the knowledge "
            "base does not hold them; set sft_epochs = 0"
        )
    tell(f"warm start on {len(made)} worked episodes of {len(training.train)} questions")
    start = WarmStart(s.sft_epochs, s.sft_lr, s.sft_batch, s.seed, training.team)
    start(training.policy, made, tell)
