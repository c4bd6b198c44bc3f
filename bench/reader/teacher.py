"""A large reader that teaches the small one: a chat model whose tokens see each other both ways.

Without the causal mask, and with one layer for starts and ends, a 1.5B model learns to read spans
in a few hundred steps. What it then thinks of every start and end is what the small reader is
trained on: a softer and more truthful target than one span, and one that any pair of a question
and a passage can have.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

from bench.reader.examples import Example
from bench.reader.model import attention_bias
from clew.reader.windows import Window

_PARTS = ("q", "k", "v")


class Teacher(nn.Module):
    """A Qwen2 decoder read both ways; logits of start and end, the first token "no answer"."""

    def __init__(self, folder: Path) -> None:
        """Load the weights of a model folder as float32."""
        super().__init__()
        from safetensors.torch import load_file

        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        held = {}
        for path in sorted(folder.glob("*.safetensors")):
            held |= {name: value.float() for name, value in load_file(path).items()}
        self.size = int(config["hidden_size"])
        self.layers = int(config["num_hidden_layers"])
        self.heads = int(config["num_attention_heads"])
        self.groups = int(config["num_key_value_heads"])
        self.eps = float(config["rms_norm_eps"])
        rope = config.get("rope_parameters") or config
        self.theta = float(rope["rope_theta"])
        self.held = nn.ParameterDict(
            {_key(name): value for name, value in held.items() if name.startswith("model.")}
        )
        self.span = nn.Linear(self.size, 2)
        nn.init.normal_(self.span.weight, 0.0, 0.02)
        nn.init.zeros_(self.span.bias)

    def _weight(self, name: str) -> Any:
        return self.held[_key(f"model.{name}")]

    def _bias(self, name: str) -> Any:
        key = _key(f"model.{name}")
        return self.held[key] if key in self.held else None

    def forward(self, ids: Any, mask: Any) -> Any:
        """Logits of shape (rows, tokens, 2)."""
        x = nn.functional.embedding(ids, self._weight("embed_tokens.weight"))
        turn = self._rotation(ids.shape[1], ids.device)
        seen = attention_bias(mask, x)
        for number in range(self.layers):
            x = self._forward_layer(x, f"layers.{number}", turn, seen)
        x = rms_norm(x.float(), (self.size,), self._weight("norm.weight"), self.eps)
        with torch.autocast(x.device.type, enabled=False):
            logits: Any = self.span(x)
        return logits

    def _rotation(self, width: int, device: Any) -> tuple[Any, Any]:
        half = self.size // self.heads // 2
        speed = self.theta ** (-torch.arange(half, device=device, dtype=torch.float32) / half)
        angle = torch.arange(width, device=device, dtype=torch.float32)[:, None] * speed
        angle = torch.cat([angle, angle], -1)
        return angle.cos(), angle.sin()

    def _forward_layer(self, x: Any, name: str, turn: tuple[Any, Any], seen: Any) -> Any:
        rows, width, _ = x.shape
        inner = self._norm(x, f"{name}.input_layernorm.weight")
        q, k, v = (
            self._linear(inner, f"{name}.self_attn.{part}_proj")
            .view(rows, width, -1, self.size // self.heads)
            .transpose(1, 2)
            for part in _PARTS
        )
        kind = seen.dtype
        q, k, v = _rotate(q, turn).to(kind), _rotate(k, turn).to(kind), v.to(kind)
        repeat = self.heads // self.groups
        k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=seen)
        mixed = mixed.transpose(1, 2).reshape(rows, width, self.size)
        x = x + self._linear(mixed, f"{name}.self_attn.o_proj")
        inner = self._norm(x, f"{name}.post_attention_layernorm.weight")
        gate = silu(self._linear(inner, f"{name}.mlp.gate_proj"))
        inner = gate * self._linear(inner, f"{name}.mlp.up_proj")
        return x + self._linear(inner, f"{name}.mlp.down_proj")

    def _norm(self, x: Any, name: str) -> Any:
        return rms_norm(x.float(), (self.size,), self._weight(name), self.eps)

    def _linear(self, x: Any, name: str) -> Any:
        return linear(x, self._weight(f"{name}.weight"), self._bias(f"{name}.bias"))


def _rotate(x: Any, turn: tuple[Any, Any]) -> Any:
    cos, sin = turn
    first, second = x.float().chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def _key(name: str) -> str:
    return name.replace(".", "/")  # a parameter's name may not have dots


@dataclass(frozen=True, slots=True)
class Lesson:
    """One window as the teacher sees it, and where its tokens stand in the small reader's."""

    ids: list[int]
    starts: list[int]
    """Which token of the small reader's window a teacher's token would start; -1 for none."""
    ends: list[int]
    start: int
    end: int


def make_lesson(
    tokenizer: Any, example: Example, window: Window, answer: tuple[int, int] | None
) -> Lesson:
    """Write a window of the small reader in the teacher's tokens.

    `answer` are the tokens of the small reader's window where the answer starts and ends.
    """
    ids = list(tokenizer.encode(f"Question: {example.question}\n", add_special_tokens=False).ids)
    starts, ends = [0, *[-1] * (len(ids) - 1)], [0, *[-1] * (len(ids) - 1)]
    for number, passage in enumerate(example.passages):
        places = [at for at, one in enumerate(window.passages) if one == number]
        if not places:
            continue
        first, last = window.starts[places[0]], window.ends[places[-1]]
        head = tokenizer.encode(f"\n{passage.title}:\n", add_special_tokens=False).ids
        ids, starts, ends = ids + head, starts + [-1] * len(head), ends + [-1] * len(head)
        text = passage.text[first:last]
        owner = _owners(window, places, first, len(text))
        made = tokenizer.encode(text, add_special_tokens=False)
        for token, (begin, end) in zip(made.ids, made.offsets, strict=True):
            while begin < end and text[begin].isspace():
                begin += 1
            while begin < end and text[end - 1].isspace():
                end -= 1
            ids.append(token)
            starts.append(owner[begin] if begin < end else -1)
            ends.append(owner[end - 1] if begin < end else -1)
    start = end = 0
    if answer is not None:
        # A token of the one tokenizer may hold several of the other's, either way round.
        start = next((at for at, one in enumerate(ends) if one >= answer[0]), 0)
        end = max((at for at, one in enumerate(starts) if 0 < one <= answer[1]), default=0)
        if not start or end < start:
            start = end = 0
    return Lesson(ids, starts, ends, start, end)


def _owners(window: Window, places: Sequence[int], first: int, length: int) -> list[int]:
    """For every character of a part of a passage the small reader's token it belongs to."""
    owner = [-1] * length
    for at in places:
        for char in range(window.starts[at] - first, window.ends[at] - first):
            if 0 <= char < length:
                owner[char] = at
    return owner
