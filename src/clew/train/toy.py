"""A task so small that a random transformer learns it on a CPU: look a box up, say what is in it.

It is the example of docs/training.md and the end-to-end test: the same environment, rollout, warm
start and objective as for a real model, in a minute or two.
"""

from collections.abc import Sequence
from typing import Any

from clew.train.questions import Task

THINGS = ("amber", "basalt", "copper", "flint", "jade", "onyx", "pearl", "quartz")
BOXES = tuple(f"box{number}" for number in range(24))
_FORM = ("<think>", "</think>", "<query>", "</query>", "<answer>", "</answer>")
_FRAME = ("<knowledge>", "</knowledge>", "<|user|>", "<|assistant|>", "<|end|>", "<|pad|>", "<|?|>")
_WORDS = ("what", "is", "in", "holds", "look", "know", "-", "No", "queries", "are", "left.")
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|> {{ m.content }} <|end|> {% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def contents(seed: int = 0) -> dict[str, str]:
    """What each box holds."""
    return {box: THINGS[(number * 5 + seed) % len(THINGS)] for number, box in enumerate(BOXES)}


def tasks(seed: int = 0) -> list[Task]:
    """One question a box."""
    held = contents(seed)
    return [
        Task(box, f"what is in {box}", (held[box],), ((box, "holds", held[box]),)) for box in BOXES
    ]


def retriever(seed: int = 0) -> Any:
    """The toy's knowledge base: the sentence on the box that a query names."""
    held = contents(seed)

    def retrieve(queries: Sequence[str]) -> list[str]:
        named = [next((w for w in query.split() if w in held), "") for query in queries]
        return [f"{box} holds {held[box]}" if box else "" for box in named]

    return retrieve


def tokenizer() -> Any:
    """One token a word."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = [*_FORM, *_FRAME, *_WORDS, *THINGS, *BOXES]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<|?|>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<|?|>", eos_token="<|end|>", pad_token="<|pad|>"
    )
    made.chat_template = TEMPLATE
    return made


def model(seed: int = 0, *, width: int = 64, layers: int = 2) -> Any:
    """A random transformer of Qwen2's shape for the toy's words."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(_FORM) + len(_FRAME) + len(_WORDS) + len(THINGS) + len(BOXES),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=True,
    )
    return Qwen2ForCausalLM(config).eval()
