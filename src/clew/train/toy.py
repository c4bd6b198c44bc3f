"""A toy task that a randomly initialised transformer learns on a CPU: look up what a box holds.

It is the example of docs/training.md and the end-to-end test: the same environment, rollout, warm
start and objective as for a real model, in a minute or two.
"""

import random
from collections.abc import Sequence
from typing import Any

from clew.train.questions import Task

THINGS = ("amber", "basalt", "copper", "flint", "jade", "onyx", "pearl", "quartz")
BOXES = tuple(f"box{number}" for number in range(8))
ROOMS = tuple(f"room{number}" for number in range(8))
_PROTOCOL_TAGS = ("<think>", "</think>", "<query>", "</query>", "<answer>", "</answer>")
_SPECIAL_TOKENS = (
    "<knowledge>",
    "</knowledge>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
    "<|pad|>",
    "<|?|>",
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
