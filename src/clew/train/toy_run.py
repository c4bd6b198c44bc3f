"""The toy training: its warm start teaches the format, with random answers."""

import random
from collections.abc import Callable
from pathlib import Path

from clew import sync
from clew.agents.graph_r1 import GraphR1Protocol
from clew.train import toy
from clew.train.decode.fast_decoder import FastDecoder
from clew.train.environment import Environment
from clew.train.learn.gold import Demonstration, tokenize_demonstrations
from clew.train.learn.warm_start import WarmStart
from clew.train.loop import Training
from clew.train.policy import Lora, Policy
from clew.train.questions import split_tasks
from clew.train.rollout import Rollout, RolloutLimits
from clew.train.settings import TrainSettings
from clew.train.wording import ChatTokenizer

_PROTOCOL = GraphR1Protocol(turns=1, brief=True)
_DEV_SIZE = 16
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
    dev=_DEV_SIZE,
    eval_every=10,
    save_every=50,
    sft_epochs=12,
    sft_lr=3e-3,
    sft_batch=64,
)


def build_toy_training(
    out: Path, steps: int = 50, tell: Callable[[str], None] = lambda line: None, seed: int = 0
) -> Training:
    """Build a training whose model knows the format; `run()` teaches it to answer."""
    s = TrainSettings(**{**vars(_SETTINGS), "steps": steps, "seed": seed})
    wording = ChatTokenizer(toy.make_tokenizer(), _PROTOCOL)
    environment = Environment(toy.make_retriever(seed), _PROTOCOL)
    policy = Policy.from_model(toy.make_model(seed), wording.pad_id, Lora(rank=0), cells=s.cells)
    demonstrations = sync.wait(_make_demonstrations(seed))
    WarmStart(s.sft_epochs, s.sft_lr, s.sft_batch, seed)(
        policy, tokenize_demonstrations(demonstrations, wording, s.reply_tokens, s.length), tell
    )
    decoder = FastDecoder(policy.model)
    limits = RolloutLimits(s.length, s.step_tokens, s.reply_tokens, 3)
    rollout = Rollout(decoder, environment, wording, limits)
    train, dev = split_tasks(toy.make_tasks(seed), _DEV_SIZE, seed)
    return Training(policy, rollout, s, out, train, dev, tell=tell, refresh=decoder.refresh)


async def _make_demonstrations(seed: int) -> list[Demonstration]:
    """Make episodes with other contents: the reply is noted, the answer is random."""
    draw = random.Random(seed)
    demonstrations: list[Demonstration] = []
    for offset in range(1, 9):
        tasks = toy.make_tasks(seed + offset)
        env = Environment(toy.make_retriever(seed + offset), _PROTOCOL)
        queries = [f"<think> look </think> <query> {task.id} </query>" for task in tasks]
        answers = [
            f"<think> {task.answers[0]} </think> <answer> {draw.choice(toy.THINGS)} </answer>"
            for task in tasks
        ]
        middle = await env.step(env.reset([task.question for task in tasks]), queries)
        ends = await env.step(middle, answers)
        demonstrations += [
            Demonstration(task, (first, second), end)
            for task, first, second, end in zip(tasks, queries, answers, ends, strict=True)
        ]
    return demonstrations
