"""The toy as a ready training: a warm start that teaches the form and lies about the answers."""

import random
from collections.abc import Callable
from pathlib import Path

from clew import sync
from clew.agents.graph_r1 import Protocol
from clew.train import toy
from clew.train.environment import Environment
from clew.train.fast_decoder import FastDecoder
from clew.train.gold import Worked, recorded
from clew.train.loop import Training
from clew.train.policy import Lora, Policy
from clew.train.rollout import Limits, Rollout
from clew.train.settings import TrainSettings
from clew.train.warm_start import WarmStart
from clew.train.wording import Wording

_PROTOCOL = Protocol(turns=1, brief=True)
_SETTINGS = TrainSettings(
    questions=24,
    group=8,
    lr=1e-3,
    beta=0.0,
    lora_rank=0,
    turns=1,
    brief=True,
    length=64,
    step_tokens=12,
    reply_tokens=24,
    cells=8192,
    dev=0,
    eval_every=20,
    save_every=50,
    sft_epochs=6,
    sft_lr=3e-3,
    sft_batch=48,
)


def toy_training(
    out: Path, steps: int = 120, tell: Callable[[str], None] = lambda line: None, seed: int = 0
) -> Training:
    """A model that knows the form; `run()` teaches it to read."""
    s = TrainSettings(**{**vars(_SETTINGS), "steps": steps, "seed": seed})
    wording = Wording(toy.tokenizer(), _PROTOCOL)
    world = Environment(toy.retriever(), _PROTOCOL)
    policy = Policy.around(toy.model(seed), wording.pad, Lora(rank=0), cells=s.cells)
    lies = sync.wait(_lies(world, seed))
    WarmStart(s.sft_epochs, s.sft_lr, s.sft_batch, seed)(
        policy, recorded(lies, wording, s.reply_tokens, s.length), tell
    )
    decoder = FastDecoder(policy.model)
    limits = Limits(s.length, s.step_tokens, s.reply_tokens, 3)
    rollout = Rollout(decoder, world, wording, limits)
    tasks = toy.tasks()
    return Training(policy, rollout, s, out, tasks, tasks, tell=tell, refresh=decoder.refresh)


async def _lies(world: Environment, seed: int) -> list[Worked]:
    """Whole episodes whose answers are drawn at random: right one time in eight."""
    draw = random.Random(seed)
    tasks = [task for task in toy.tasks() for _ in range(30)]
    asked = [f"<think> look </think> <query> {task.id} </query>" for task in tasks]
    said = [f"<think> know </think> <answer> {draw.choice(toy.THINGS)} </answer>" for _ in tasks]
    middle = await world.step(world.reset([task.question for task in tasks]), asked)
    ends = await world.step(middle, said)
    return [
        Worked(task, (first, second), end)
        for task, first, second, end in zip(tasks, asked, said, ends, strict=True)
    ]
