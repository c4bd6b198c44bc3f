"""The toy as a ready training: the warm start notes what it read and answers at random."""

import random
from collections.abc import Callable
from pathlib import Path

from clew import sync
from clew.agents.graph_r1 import Protocol
from clew.train import toy
from clew.train.decode.fast_decoder import FastDecoder
from clew.train.environment import Environment
from clew.train.learn.gold import Worked, recorded
from clew.train.learn.warm_start import WarmStart
from clew.train.loop import Training
from clew.train.policy import Lora, Policy
from clew.train.questions import split
from clew.train.rollout import Limits, Rollout
from clew.train.settings import TrainSettings
from clew.train.wording import Wording

_PROTOCOL = Protocol(turns=1, brief=True)
_HELD = 16
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
    cells=16384,
    dev=_HELD,
    eval_every=10,
    save_every=50,
    sft_epochs=12,
    sft_lr=3e-3,
    sft_batch=64,
)


def toy_training(
    out: Path, steps: int = 50, tell: Callable[[str], None] = lambda line: None, seed: int = 0
) -> Training:
    """A model that knows the form; `run()` teaches it to read."""
    s = TrainSettings(**{**vars(_SETTINGS), "steps": steps, "seed": seed})
    wording = Wording(toy.tokenizer(), _PROTOCOL)
    world = Environment(toy.retriever(seed), _PROTOCOL)
    policy = Policy.around(toy.model(seed), wording.pad, Lora(rank=0), cells=s.cells)
    lies = sync.wait(_lies(seed))
    WarmStart(s.sft_epochs, s.sft_lr, s.sft_batch, seed)(
        policy, recorded(lies, wording, s.reply_tokens, s.length), tell
    )
    decoder = FastDecoder(policy.model)
    limits = Limits(s.length, s.step_tokens, s.reply_tokens, 3)
    rollout = Rollout(decoder, world, wording, limits)
    train, held = split(toy.tasks(seed), _HELD, seed)
    return Training(policy, rollout, s, out, train, held, tell=tell, refresh=decoder.refresh)


async def _lies(seed: int) -> list[Worked]:
    """Episodes in other houses: what is read is noted, what is answered is drawn at random."""
    draw = random.Random(seed)
    found: list[Worked] = []
    for house in range(1, 9):
        tasks = toy.tasks(seed + house)
        world = Environment(toy.retriever(seed + house), _PROTOCOL)
        asked = [f"<think> look </think> <query> {task.id} </query>" for task in tasks]
        said = [
            f"<think> {task.answers[0]} </think> <answer> {draw.choice(toy.THINGS)} </answer>"
            for task in tasks
        ]
        middle = await world.step(world.reset([task.question for task in tasks]), asked)
        ends = await world.step(middle, said)
        found += [
            Worked(task, (first, second), end)
            for task, first, second, end in zip(tasks, asked, said, ends, strict=True)
        ]
    return found
