"""Assembles and runs `clew train`: model, retriever, questions and settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from clew import sync
from clew.agents.graph_r1_protocol import GraphR1Protocol
from clew.errors import ConfigError
from clew.llm.trained_model import TrainedConfig
from clew.train.core.chat_tokens import ChatTokenizer
from clew.train.core.environment import Environment, Retriever, retrieve_nothing
from clew.train.core.rollout import Rollout, RolloutLimits
from clew.train.core.safeguards import LogFunction, log_nothing
from clew.train.core.settings import TrainSettings
from clew.train.demonstrations import (
    build_closed_book_demonstrations,
    build_demonstrations,
    tokenize_demonstrations,
)
from clew.train.learn.distributed import join_process_group
from clew.train.learn.policy import Lora, Policy, load_model
from clew.train.learn.warm_start import WarmStart
from clew.train.loop import Training
from clew.train.questions import Task, split_tasks
from clew.train.rewards import Outcome, Reward
from clew.train.run_folder import check_run_config, describe_run, lock_run_folder


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
    show: str = ""
    """Form of the knowledge that the agent reads."""
    stop: Event = field(default_factory=Event, compare=False)
    """Set it from any thread to end the run early; what was learned is saved."""

    @property
    def protocol(self) -> GraphR1Protocol:
        """The think–query–answer protocol of its episodes."""
        return GraphR1Protocol(self.settings.turns if self.retrieve else 0, self.settings.brief)

    def serving_options(self) -> TrainedConfig:
        """The settings that the served agent needs, stored beside the model."""
        p = self.protocol
        return TrainedConfig(
            *(self.recipe, p.turns, p.brief, self.settings.step_tokens, self.k, self.characters),
            show=self.show,
        )


def assemble_training(job: Job, report: LogFunction = log_nothing) -> Training:
    """Load and check everything before the first token is generated."""
    s = job.settings
    dev_size = s.count_dev_questions(len(job.tasks))
    train, dev = split_tasks(job.tasks, dev_size, s.seed) if dev_size else (list(job.tasks), [])
    environment = Environment(job.retrieve or retrieve_nothing, job.protocol)
    _probe_retriever(environment, train[0].question)
    processes = join_process_group()
    serving = {"recipe": job.recipe, "k": job.k, "characters": job.characters, "show": job.show}
    config = describe_run(job.model, serving, job.tasks, s)
    check_run_config(job.out, config, write=processes.is_main)
    model, tokenizer = load_model(job.model, whole=not s.lora_rank)
    _set_seed(s.seed)
    chat_tokenizer = ChatTokenizer(tokenizer, job.protocol)
    train, dev = _drop_long_questions(train, dev, chat_tokenizer, s, report)
    policy = _build_policy(model, chat_tokenizer.pad_id, s)
    processes.broadcast_weights(policy.trainable_parameters().values())
    decoder, refresh = _build_decoder(policy.model, s.decoder, report)
    limits = RolloutLimits(s.length, s.step_tokens, s.reply_tokens)
    rollout = Rollout(decoder, environment, chat_tokenizer, limits, s.batch)
    reward = job.reward or Outcome(each=0.5 if job.retrieve else 1.0)
    return Training(
        *(policy, rollout, s, job.out, train, dev),
        reward=reward,
        report=report if processes.is_main else log_nothing,
        refresh=refresh,
        processes=processes,
        stop=job.stop,
        on_model_saved=job.serving_options().write,
    )


def _build_policy(model: Any, pad: int, s: TrainSettings) -> Policy:
    return Policy.from_model(
        *(model, pad, Lora(s.lora_rank, s.lora_alpha)),
        checkpointing=s.checkpointing and next(model.parameters()).device.type == "cuda",
        temperature=s.temperature,
        cells=s.cells,
    )


def _probe_retriever(environment: Environment, query: str) -> None:
    """Query once before loading a model: the knowledge base may lack what the recipe needs."""
    sync.wait(environment.step(environment.reset([query]), [f"<query>{query}</query>"]))


def _drop_long_questions(
    train: list[Task],
    dev: list[Task],
    chat_tokenizer: ChatTokenizer,
    s: TrainSettings,
    report: LogFunction,
) -> tuple[list[Task], list[Task]]:
    """Drop questions whose prompt leaves no room for a step, and log how many."""
    limit = s.length - s.step_tokens
    sizes = {
        task.question: len(chat_tokenizer.encode_prompt(task.question)) for task in [*train, *dev]
    }
    kept = [[task for task in part if sizes[task.question] <= limit] for part in (train, dev)]
    left_out = len(train) + len(dev) - sum(map(len, kept))
    if not kept[0]:
        raise ConfigError(
            f"no prompt is short enough: the shortest has {min(sizes.values())} "
            f"tokens and length - step_tokens is {limit}; set a larger length"
        )
    if left_out:
        report(f"{left_out} questions are skipped: their prompts exceed {limit} tokens")
    return kept[0], kept[1]


def _set_seed(seed: int) -> None:
    """Seed torch: adapters are initialised at random, and runs should be repeatable."""
    import torch

    torch.manual_seed(seed)


def _build_decoder(model: Any, wanted: str, report: LogFunction) -> tuple[Any, Callable[[], None]]:
    from clew.train.decode.fast_decoder import FastDecoder
    from clew.train.decode.plain_decoder import PlainDecoder

    if wanted != "plain":
        try:
            fast = FastDecoder(model)
        except ConfigError as error:
            if wanted == "fast":
                raise
            report(f"using the plain decoder: {error}")
        else:
            return fast, fast.refresh
    return PlainDecoder(model), lambda: None


def train(job: Job, report: LogFunction = log_nothing) -> dict[str, Any]:
    """Run the warm start if it is due, then reinforcement learning."""
    with lock_run_folder(job.out, join_process_group()):
        training = assemble_training(job, report)
        if job.settings.sft_epochs and training.checkpoints.newest() is None:
            _run_warm_start(training, job, report)
        return training.run()


def _run_warm_start(training: Training, job: Job, report: LogFunction) -> None:
    s, chat_tokenizer = job.settings, training.rollout.chat_tokenizer
    if job.retrieve is None:
        examples = build_closed_book_demonstrations(training.train)
    else:
        examples = sync.wait(build_demonstrations(training.rollout.environment, training.train))
    trajectories = tokenize_demonstrations(examples, chat_tokenizer, s.reply_tokens, s.length)
    if not trajectories:
        raise ConfigError(
            "no demonstrations can be made: the questions have no gold_triples, or the retriever "
            "does not find them; set sft_epochs = 0"
        )
    report(f"warm start on {len(trajectories)} demonstrations from {len(training.train)} questions")
    start = WarmStart(
        s.sft_epochs, s.sft_lr, s.sft_batch, s.seed, training.processes, training.stop
    )
    start(training.policy, trajectories, report)
