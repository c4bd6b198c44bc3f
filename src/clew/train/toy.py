"""A toy task that a randomly initialised transformer learns on a CPU: look up what a box holds.

It is the example of docs/training.md and the end-to-end test: the same environment, rollout, warm
start and objective as for a real model, in a minute or two. The warm start teaches the format,
with random answers.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from clew import sync
from clew.agents.graph_r1_protocol import GraphR1Protocol
from clew.train.core.chat_tokens import ChatTokenizer
from clew.train.core.environment import Environment
from clew.train.core.rollout import Rollout, RolloutLimits
from clew.train.core.settings import TrainSettings
from clew.train.decode.fast_decoder import FastDecoder
from clew.train.demonstrations import Demonstration, tokenize_demonstrations
from clew.train.learn.policy import Lora, Policy
from clew.train.learn.warm_start import WarmStart
from clew.train.loop import Training
from clew.train.questions import Task, split_tasks

THINGS = ("amber", "basalt", "copper", "flint", "jade", "onyx", "pearl", "quartz")
BOXES = tuple(f"box{number}" for number in range(8))
ROOMS = tuple(f"room{number}" for number in range(8))
_PROTOCOL_TAGS = ("<think>", "</think>", "<query>", "</query>", "<answer>", "</answer>")
_SPECIAL_TOKENS = (
    *("<knowledge>", "</knowledge>", "<|user|>", "<|assistant|>", "<|end|>", "<|pad|>", "<|?|>"),
)
_WORDS = ("what", "is", "in", "of", "holds", "look", "-", "No", "queries", "are", "left.")
CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|> {{ m.content }} <|end|> {% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def make_contents(seed: int = 0) -> dict[str, str]:
    """Draw what each box of each room holds, at random, so that it must be looked up."""
    draw = random.Random(seed)
    return {f"{box} of {room}": draw.choice(THINGS) for room in ROOMS for box in BOXES}


def make_tasks(seed: int = 0) -> list[Task]:
    """Make one question per box."""
    return [
        Task(box, f"what is in {box}", (thing,), ((box, "holds", thing),))
        for box, thing in make_contents(seed).items()
    ]


def make_retriever(seed: int = 0) -> Any:
    """Make a retriever that returns the sentence on the box that a query names."""
    known = make_contents(seed)

    def retrieve(queries: Sequence[str]) -> list[str]:
        return [f"{query} holds {known[query]}" if query in known else "" for query in queries]

    return retrieve


def make_tokenizer() -> Any:
    """Make a word-level tokenizer for the toy vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = [*_PROTOCOL_TAGS, *_SPECIAL_TOKENS, *_WORDS, *THINGS, *BOXES, *ROOMS]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<|?|>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<|?|>", eos_token="<|end|>", pad_token="<|pad|>"
    )
    made.chat_template = CHAT_TEMPLATE
    return made


def make_model(
    seed: int = 0, *, width: int = 64, layers: int = 2, length: int = 256, family: str = "Qwen2"
) -> Any:
    """Make a randomly initialised transformer for the toy vocabulary.

    Use the family Llama to save it: for Qwen2, transformers loads its own tokenizer class.
    """
    import torch
    import transformers

    torch.manual_seed(seed)
    config = getattr(transformers, f"{family}Config")(
        vocab_size=sum(map(len, (_PROTOCOL_TAGS, _SPECIAL_TOKENS, _WORDS, THINGS, BOXES, ROOMS))),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=length,
        tie_word_embeddings=True,
        initializer_range=0.1,  # 0.02 suits wide models; one this narrow would not learn to copy
    )
    return getattr(transformers, f"{family}ForCausalLM")(config).eval()


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
    out: Path, steps: int = 50, report: Callable[[str], None] = lambda line: None, seed: int = 0
) -> Training:
    """Build a training whose model knows the format; `run()` teaches it to answer."""
    s = TrainSettings(**{**vars(_SETTINGS), "steps": steps, "seed": seed})
    chat_tokenizer = ChatTokenizer(make_tokenizer(), _PROTOCOL)
    environment = Environment(make_retriever(seed), _PROTOCOL)
    policy = Policy.from_model(make_model(seed), chat_tokenizer.pad_id, Lora(rank=0), cells=s.cells)
    demonstrations = sync.wait(_make_demonstrations(seed))
    WarmStart(s.sft_epochs, s.sft_lr, s.sft_batch, seed)(
        policy,
        tokenize_demonstrations(demonstrations, chat_tokenizer, s.reply_tokens, s.length),
        report,
    )
    decoder = FastDecoder(policy.model)
    limits = RolloutLimits(s.length, s.step_tokens, s.reply_tokens, 3)
    rollout = Rollout(decoder, environment, chat_tokenizer, limits)
    train, dev = split_tasks(make_tasks(seed), _DEV_SIZE, seed)
    return Training(policy, rollout, s, out, train, dev, report=report, refresh=decoder.refresh)


async def _make_demonstrations(seed: int) -> list[Demonstration]:
    """Make episodes with other contents: the reply is noted, the answer is random."""
    draw = random.Random(seed)
    demonstrations: list[Demonstration] = []
    for offset in range(1, 9):
        tasks = make_tasks(seed + offset)
        env = Environment(make_retriever(seed + offset), _PROTOCOL)
        queries = [f"<think> look </think> <query> {task.id} </query>" for task in tasks]
        answers = [
            f"<think> {task.answers[0]} </think> <answer> {draw.choice(THINGS)} </answer>"
            for task in tasks
        ]
        middle = await env.step(env.reset([task.question for task in tasks]), queries)
        ends = await env.step(middle, answers)
        demonstrations += [
            Demonstration(task, (first, second), end)
            for task, first, second, end in zip(tasks, queries, answers, ends, strict=True)
        ]
    return demonstrations
