"""A decoder for the Llama family with fixed key and value rooms, replayed as CUDA graphs.

Each row owns a stretch of the cache and is at a position of its own, so rows at different turns run
in one batch without holes. Attention reads only as far as the longest row, rounded up so that few
graphs suffice. On a CPU the same code runs without graphs.
"""

from collections.abc import Sequence
from typing import Any

from clew.train.decode.fast_weights import Layer, Weights
from clew.train.rollout import Draw

ROWS = (16, 64, 128, 192, 256, 320, 480, 640, 1024)
"""Batch sizes for which graphs are made; each costs a moment for every span it meets."""
READING = 32_768
"""Tokens read at once when prompts and replies come in."""


class FastDecoder:
    """Holds the caches; `refresh` before a rollout takes in what training changed."""

    def __init__(self, model: Any, *, graphs: bool = True, dtype: Any = None) -> None:
        """Fuse the model's matrices; `dtype` as for `Weights`."""
        import torch

        self.weights = Weights(model, dtype)
        self.device = self.weights.embed.device
        self.graphs = graphs and self.device.type == "cuda"
        self.grain = 512 if self.graphs else 64
        self._made: dict[tuple[int, int], tuple[Any, Any]] = {}
        self._pool: Any = None
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self.lengths: list[int] = []
        self._torch = torch

    def refresh(self) -> None:
        """Take in what training changed."""
        self.weights.refresh()

    def begin(self, prompts: Sequence[Sequence[int]], room: int) -> Any:
        """Read fresh prompts; a prompt that a whole group shares is read once and copied."""
        torch = self._torch
        self.make_room(len(prompts), room)
        self.lengths = [0] * len(prompts)
        first: dict[tuple[int, ...], int] = {}
        like = [first.setdefault(tuple(prompt), at) for at, prompt in enumerate(prompts)]
        read = list(first.values())
        logits = self.extend(read, [prompts[at] for at in read])
        copies = [at for at in range(len(prompts)) if like[at] != at]
        self._move(copies, [like[at] for at in copies], max(map(len, prompts)))
        self.lengths = [len(prompt) for prompt in prompts]
        line = {row: number for number, row in enumerate(read)}
        return logits[torch.tensor([line[at] for at in like], device=self.device)]

    def make_room(self, rows: int, room: int) -> None:
        """Take memory for so many rows of so many tokens, unless there is as much already."""
        torch, shape = self._torch, self.weights.shape
        room = -(-(room + 1) // self.grain) * self.grain
        # Fewer rows than the smallest graph has are wanted only where memory is short.
        rows = _at_least(rows) if rows > ROWS[0] else rows
        if self.keys and self.keys[0].shape[0] >= rows and self.keys[0].shape[2] >= room:
            return
        self.release()
        size = (rows, shape.kv_heads, room, shape.head_dim)
        kind = {"dtype": self.weights.dtype, "device": self.device}
        self.keys = [torch.zeros(size, **kind) for _ in range(shape.layers)]
        self.values = [torch.zeros(size, **kind) for _ in range(shape.layers)]
        self.tokens = torch.zeros(rows, dtype=torch.long, device=self.device)
        self.positions = torch.zeros(rows, dtype=torch.long, device=self.device)
        half = torch.arange(0, shape.head_dim, 2, device=self.device).float() / shape.head_dim
        angles = torch.arange(room, device=self.device).float()[:, None] / shape.theta**half
        self.cos = torch.cat([angles.cos()] * 2, dim=-1).to(self.weights.dtype)
        self.sin = torch.cat([angles.sin()] * 2, dim=-1).to(self.weights.dtype)

    def release(self) -> None:
        """Hold no memory for rows, nor graphs that look into it."""
        self._made.clear()
        self._pool = None
        self.keys, self.values, self.lengths = [], [], []

    # -- a few tokens in every row

    def walk(self, tokens: Sequence[int], count: int, draw: Draw) -> tuple[Any, Any]:
        """Read and draw without waiting for the host: steps are launched ahead."""
        torch = self._torch
        many = len(tokens)
        rows = min(_at_least(many), self.keys[0].shape[0])
        span = -(-(max(self.lengths) + count) // self.grain) * self.grain
        drawn, sure = [], []
        with torch.inference_mode():
            self.tokens[:many].copy_(torch.tensor(tokens))
            self.positions[:many].copy_(torch.tensor(self.lengths))
            for _ in range(count):
                logits = self._replay(rows, span) if self.graphs else self._one(rows, span)
                found, logprobs = draw(logits[:many])
                drawn.append(found)
                sure.append(logprobs)
                self.tokens[:many].copy_(found)
                self.positions[:many].add_(1)
        self.lengths = [length + count for length in self.lengths]
        return torch.stack(drawn).tolist(), torch.stack(sure).tolist()

    def settle(self, lengths: Sequence[int]) -> None:
        """What lies beyond is overwritten by what is read next."""
        self.lengths = list(lengths)

    def _replay(self, rows: int, span: int) -> Any:
        torch = self._torch
        if (rows, span) not in self._made:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):  # what loads lazily must have loaded before
                self._one(rows, span)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                logits = self._one(rows, span)
            self._pool = self._pool or graph.pool()
            self._made[rows, span] = graph, logits
        graph, logits = self._made[rows, span]
        graph.replay()
        return logits

    def _one(self, rows: int, span: int) -> Any:
        torch = self._torch
        at = self.positions[:rows]
        every = torch.arange(rows, device=self.device)
        beyond = torch.arange(span, device=self.device)[None] > at[:, None]
        bias = torch.zeros(rows, 1, 1, span, dtype=self.weights.dtype, device=self.device)
        bias = bias.masked_fill(beyond[:, None, None], float("-inf"))
        return self._run(self.tokens[:rows, None], at[:, None], every, bias)[:, -1]

    # -- several tokens in some rows

    def extend(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> Any:
        """Read several tokens in some rows."""
        torch = self._torch
        order = sorted(range(len(tokens)), key=lambda at: len(tokens[at]))
        found: list[Any] = [None] * len(tokens)
        with torch.inference_mode():
            for part in _parts(order, [len(one) for one in tokens]):
                logits = self._read([rows[at] for at in part], [tokens[at] for at in part])
                for line, at in enumerate(part):
                    found[at] = logits[line]
        for row, said in zip(rows, tokens, strict=True):
            self.lengths[row] += len(said)
        return torch.stack(found)

    def _read(self, rows: list[int], tokens: list[Sequence[int]]) -> Any:
        torch, shape = self._torch, self.weights.shape
        widest = max(map(len, tokens))
        ids = torch.zeros(len(rows), widest, dtype=torch.long)
        for line, said in enumerate(tokens):
            ids[line, : len(said)] = torch.tensor(list(said))
        start = torch.tensor([self.lengths[row] for row in rows])
        last = torch.tensor([len(said) - 1 for said in tokens], device=self.device)
        room = self.keys[0].shape[2]
        # Padding is written beyond the row's end, where the next tokens overwrite it.
        at = (start[:, None] + torch.arange(widest)[None]).clamp(max=room - 1)
        span = min(-(-(int(start.max()) + widest) // self.grain) * self.grain, room)
        at, ids = at.to(self.device), ids.to(self.device)
        beyond = torch.arange(span, device=self.device)[None, None] > at[:, :, None]
        bias = torch.zeros(beyond.shape, dtype=self.weights.dtype, device=self.device)
        bias = bias.masked_fill(beyond, float("-inf"))[:, None]
        bias = bias.repeat(1, 1, shape.heads // shape.kv_heads, 1)
        which = torch.tensor(rows, device=self.device)
        return self._run(ids, at, which, bias, last)[:, 0]

    def keep(self, rows: Sequence[int]) -> None:
        """Forget all rows but these."""
        moved = [at for at, row in enumerate(rows) if at != row]
        source = [rows[at] for at in moved]
        self._move(moved, source, max((self.lengths[row] for row in source), default=0))
        self.lengths = [self.lengths[row] for row in rows]

    def _move(self, to: list[int], source: list[int], used: int) -> None:
        if not to:
            return
        torch = self._torch
        at = torch.tensor(to, device=self.device)
        come = torch.tensor(source, device=self.device)
        with torch.inference_mode():
            for cache in (*self.keys, *self.values):
                cache[at, :, :used] = cache[come, :, :used]

    # -- the model

    def _run(self, ids: Any, at: Any, rows: Any, bias: Any, last: Any = None) -> Any:
        """Logits at each row's `last` token (or all); keys and values go into the cache."""
        from torch.nn.functional import embedding, linear

        torch = self._torch
        x = embedding(ids, self.weights.embed)
        turn = self.cos[at][:, :, None], self.sin[at][:, :, None]
        for number, layer in enumerate(self.weights.layers):
            x = self._block(layer, number, (x, turn, rows, at, bias))
        if last is not None:
            x = x[torch.arange(len(x), device=x.device), last][:, None]
        return linear(self._norm(x, self.weights.norm), self.weights.head)

    def _norm(self, x: Any, weight: Any) -> Any:
        torch = self._torch
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.weights.shape.eps)
        return weight * wide.to(x.dtype)

    def _block(self, layer: Layer, number: int, given: tuple[Any, ...]) -> Any:
        from torch.nn.functional import silu

        x, turn, rows, at, bias = given
        shape = self.weights.shape
        batch, width, _ = x.shape
        q, k, v = (
            part.view(batch, width, -1, shape.head_dim)
            for part in layer.qkv(self._norm(x, layer.norm)).split(
                [
                    shape.heads * shape.head_dim,
                    shape.kv_heads * shape.head_dim,
                    shape.kv_heads * shape.head_dim,
                ],
                dim=-1,
            )
        )
        q, k = _turned(q, *turn), _turned(k, *turn)
        keys, values = self.keys[number], self.values[number]
        keys[rows[:, None], :, at] = k
        values[rows[:, None], :, at] = v
        span = bias.shape[-1]
        if width == 1:  # rows are 0…n here: the cache is looked at, not copied
            keys, values = keys[:batch, :, :span], values[:batch, :, :span]
        else:
            keys, values = keys[rows, :, :span], values[rows, :, :span]
        mixed = self._attend(q, keys, values, bias)
        x = x + layer.out(mixed)
        gate, up = layer.gate_up(self._norm(x, layer.norm2)).chunk(2, dim=-1)
        return x + layer.down(silu(gate) * up)

    def _attend(self, q: Any, keys: Any, values: Any, bias: Any) -> Any:
        """Heads that share a key are queries of one head: nothing is repeated."""
        from torch.nn.functional import scaled_dot_product_attention

        shape = self.weights.shape
        batch, width = q.shape[:2]
        group = shape.heads // shape.kv_heads
        q = q.view(batch, width, shape.kv_heads, group, shape.head_dim)
        q = q.permute(0, 2, 3, 1, 4).reshape(batch, shape.kv_heads, group * width, shape.head_dim)
        mixed = scaled_dot_product_attention(
            q, keys, values, attn_mask=bias.expand(-1, shape.kv_heads, group * width, -1)
        )
        mixed = mixed.view(batch, shape.kv_heads, group, width, shape.head_dim)
        return mixed.permute(0, 3, 1, 2, 4).reshape(batch, width, -1)


def _turned(x: Any, cos: Any, sin: Any) -> Any:
    """Rotary positions, halves swapped as transformers does it."""
    import torch

    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def _at_least(rows: int) -> int:
    return next((size for size in ROWS if size >= rows), rows)


def _parts(order: list[int], lengths: list[int]) -> list[list[int]]:
    """Groups of like lengths, each of at most READING cells."""
    parts: list[list[int]] = [[]]
    for at in order:
        if parts[-1] and (len(parts[-1]) + 1) * lengths[at] > READING:
            parts.append([])
        parts[-1].append(at)
    return [part for part in parts if part]
