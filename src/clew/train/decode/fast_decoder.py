"""A decoder for the Llama family with a static key-value cache, replayed as CUDA graphs.

Each row has its own cache slice and position, so rows at different turns run in one batch without
padding. Attention spans the longest row, rounded up so that few graphs are captured. On a CPU the
same code runs without graphs.
"""

from collections.abc import Sequence
from typing import Any

from clew.train.core.rollout import SampleFunction
from clew.train.decode.fast_weights import FusedLayer, FusedWeights

GRAPH_BATCH_SIZES = (16, 64, 128, 192, 256, 320, 480, 640, 1024)
"""Batch sizes for which CUDA graphs are captured, one per attention span."""
PREFILL_TOKENS = 32_768
"""Tokens of prompts and replies that are prefilled at once."""


class FastDecoder:
    """Decoder with its key-value cache; `refresh` copies trained weights before a rollout."""

    def __init__(self, model: Any, *, graphs: bool = True, dtype: Any = None) -> None:
        """Fuse the model's matrices; `dtype` as for `FusedWeights`."""
        import torch

        self.weights = FusedWeights(model, dtype)
        self.device = self.weights.embed.device
        self.graphs = graphs and self.device.type == "cuda"
        self.span_multiple = 512 if self.graphs else 64
        self._captured_graphs: dict[tuple[int, int], tuple[Any, Any]] = {}
        self._graph_pool: Any = None
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self.lengths: list[int] = []
        self._torch = torch

    def refresh(self) -> None:
        """Copy the weights that training changed."""
        self.weights.refresh()

    def prefill(self, prompts: Sequence[Sequence[int]], capacity: int) -> Any:
        """Prefill new prompts; a prompt shared by a group is prefilled once and copied."""
        torch = self._torch
        self.allocate_cache(len(prompts), capacity)
        self.lengths = [0] * len(prompts)
        first_row: dict[tuple[int, ...], int] = {}
        source = [first_row.setdefault(tuple(prompt), at) for at, prompt in enumerate(prompts)]
        distinct = list(first_row.values())
        logits = self.extend(distinct, [prompts[at] for at in distinct])
        copies = [at for at in range(len(prompts)) if source[at] != at]
        self._copy_rows(copies, [source[at] for at in copies], max(map(len, prompts)))
        self.lengths = [len(prompt) for prompt in prompts]
        logits_row = {row: number for number, row in enumerate(distinct)}
        return logits[torch.tensor([logits_row[at] for at in source], device=self.device)]

    def allocate_cache(self, rows: int, capacity: int) -> None:
        """Allocate the cache for `rows` rows of `capacity` tokens, unless it is large enough."""
        torch, shape = self._torch, self.weights.shape
        capacity = -(-(capacity + 1) // self.span_multiple) * self.span_multiple
        # Fewer rows than the smallest graph are requested only when memory is short.
        rows = _round_up_rows(rows) if rows > GRAPH_BATCH_SIZES[0] else rows
        if self.keys and self.keys[0].shape[0] >= rows and self.keys[0].shape[2] >= capacity:
            return
        self.release()
        size = (rows, shape.kv_heads, capacity, shape.head_dim)
        kind = {"dtype": self.weights.dtype, "device": self.device}
        self.keys = [torch.zeros(size, **kind) for _ in range(shape.layers)]
        self.values = [torch.zeros(size, **kind) for _ in range(shape.layers)]
        self.tokens = torch.zeros(rows, dtype=torch.long, device=self.device)
        self.positions = torch.zeros(rows, dtype=torch.long, device=self.device)
        half = torch.arange(0, shape.head_dim, 2, device=self.device).float() / shape.head_dim
        angles = torch.arange(capacity, device=self.device).float()[:, None] / shape.theta**half
        self.cos = torch.cat([angles.cos()] * 2, dim=-1).to(self.weights.dtype)
        self.sin = torch.cat([angles.sin()] * 2, dim=-1).to(self.weights.dtype)

    def release(self) -> None:
        """Free the cache and the graphs that refer to it."""
        self._captured_graphs.clear()
        self._graph_pool = None
        self.keys, self.values, self.lengths = [], [], []

    # -- decoding in every row

    def generate(self, tokens: Sequence[int], count: int, draw: SampleFunction) -> tuple[Any, Any]:
        """Generate `count` tokens per row without host synchronisation."""
        torch = self._torch
        count_rows = len(tokens)
        rows = min(_round_up_rows(count_rows), self.keys[0].shape[0])
        span = -(-(max(self.lengths) + count) // self.span_multiple) * self.span_multiple
        tokens_out, logprobs_out = [], []
        with torch.inference_mode():
            self.tokens[:count_rows].copy_(torch.tensor(tokens))
            self.positions[:count_rows].copy_(torch.tensor(self.lengths))
            for _ in range(count):
                logits = (
                    self._replay_graph(rows, span) if self.graphs else self._decode_step(rows, span)
                )
                sampled, logprobs = draw(logits[:count_rows])
                tokens_out.append(sampled)
                logprobs_out.append(logprobs)
                self.tokens[:count_rows].copy_(sampled)
                self.positions[:count_rows].add_(1)
        self.lengths = [length + count for length in self.lengths]
        return torch.stack(tokens_out).tolist(), torch.stack(logprobs_out).tolist()

    def truncate(self, lengths: Sequence[int]) -> None:
        """Set row lengths; later entries are overwritten by the next tokens."""
        self.lengths = list(lengths)

    def _replay_graph(self, rows: int, span: int) -> Any:
        torch = self._torch
        if (rows, span) not in self._captured_graphs:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):  # warm up lazy initialisation before capture
                self._decode_step(rows, span)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._graph_pool):
                logits = self._decode_step(rows, span)
            self._graph_pool = self._graph_pool or graph.pool()
            self._captured_graphs[rows, span] = graph, logits
        graph, logits = self._captured_graphs[rows, span]
        graph.replay()
        return logits

    def _decode_step(self, rows: int, span: int) -> Any:
        torch = self._torch
        at = self.positions[:rows]
        row_ids = torch.arange(rows, device=self.device)
        beyond = torch.arange(span, device=self.device)[None] > at[:, None]
        bias = torch.zeros(rows, 1, 1, span, dtype=self.weights.dtype, device=self.device)
        bias = bias.masked_fill(beyond[:, None, None], float("-inf"))
        return self._forward(self.tokens[:rows, None], at[:, None], row_ids, bias)[:, -1]

    # -- prefilling some rows

    def extend(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> Any:
        """Prefill tokens in some rows; return the logits after the last."""
        torch = self._torch
        order = sorted(range(len(tokens)), key=lambda at: len(tokens[at]))
        results: list[Any] = [None] * len(tokens)
        with torch.inference_mode():
            for part in _split_by_length(order, [len(one) for one in tokens]):
                logits = self._prefill_rows([rows[at] for at in part], [tokens[at] for at in part])
                for line, at in enumerate(part):
                    results[at] = logits[line]
        for row, ids in zip(rows, tokens, strict=True):
            self.lengths[row] += len(ids)
        return torch.stack(results)

    def _prefill_rows(self, rows: list[int], tokens: list[Sequence[int]]) -> Any:
        torch, shape = self._torch, self.weights.shape
        widest = max(map(len, tokens))
        ids = torch.zeros(len(rows), widest, dtype=torch.long)
        for line, row_ids in enumerate(tokens):
            ids[line, : len(row_ids)] = torch.tensor(list(row_ids))
        start = torch.tensor([self.lengths[row] for row in rows])
        last = torch.tensor([len(row_ids) - 1 for row_ids in tokens], device=self.device)
        capacity = self.keys[0].shape[2]
        # Padding is written past the row's end, where the next tokens overwrite it.
        at = (start[:, None] + torch.arange(widest)[None]).clamp(max=capacity - 1)
        span = min(
            -(-(int(start.max()) + widest) // self.span_multiple) * self.span_multiple, capacity
        )
        at, ids = at.to(self.device), ids.to(self.device)
        beyond = torch.arange(span, device=self.device)[None, None] > at[:, :, None]
        bias = torch.zeros(beyond.shape, dtype=self.weights.dtype, device=self.device)
        bias = bias.masked_fill(beyond, float("-inf"))[:, None]
        bias = bias.repeat(1, 1, shape.heads // shape.kv_heads, 1)
        cache_rows = torch.tensor(rows, device=self.device)
        return self._forward(ids, at, cache_rows, bias, last)[:, 0]

    def select_rows(self, rows: Sequence[int]) -> None:
        """Keep only these rows."""
        moved = [at for at, row in enumerate(rows) if at != row]
        source = [rows[at] for at in moved]
        self._copy_rows(moved, source, max((self.lengths[row] for row in source), default=0))
        self.lengths = [self.lengths[row] for row in rows]

    def _copy_rows(self, to: list[int], source: list[int], used: int) -> None:
        if not to:
            return
        torch = self._torch
        to_rows = torch.tensor(to, device=self.device)
        from_rows = torch.tensor(source, device=self.device)
        with torch.inference_mode():
            for cache in (*self.keys, *self.values):
                cache[to_rows, :, :used] = cache[from_rows, :, :used]

    # -- the model

    def _forward(self, ids: Any, at: Any, rows: Any, bias: Any, last: Any = None) -> Any:
        """Run the model; return logits at each row's `last` token (or all) and fill the cache."""
        from torch.nn.functional import embedding, linear

        torch = self._torch
        x = embedding(ids, self.weights.embed)
        rotary = self.cos[at][:, :, None], self.sin[at][:, :, None]
        for number, layer in enumerate(self.weights.layers):
            x = self._forward_layer(layer, number, (x, rotary, rows, at, bias))
        if last is not None:
            x = x[torch.arange(len(x), device=x.device), last][:, None]
        return linear(self._rms_norm(x, self.weights.norm), self.weights.head)

    def _rms_norm(self, x: Any, weight: Any) -> Any:
        torch = self._torch
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.weights.shape.eps)
        return weight * wide.to(x.dtype)

    def _forward_layer(self, layer: FusedLayer, number: int, inputs: tuple[Any, ...]) -> Any:
        from torch.nn.functional import silu

        x, rotary, rows, at, bias = inputs
        shape = self.weights.shape
        batch, width, _ = x.shape
        q, k, v = (
            part.view(batch, width, -1, shape.head_dim)
            for part in layer.qkv(self._rms_norm(x, layer.attention_norm)).split(
                [
                    shape.heads * shape.head_dim,
                    shape.kv_heads * shape.head_dim,
                    shape.kv_heads * shape.head_dim,
                ],
                dim=-1,
            )
        )
        q, k = _apply_rotary(q, *rotary), _apply_rotary(k, *rotary)
        keys, values = self.keys[number], self.values[number]
        keys[rows[:, None], :, at] = k
        values[rows[:, None], :, at] = v
        span = bias.shape[-1]
        if width == 1:  # rows are 0…n here: a view of the cache, no copy
            keys, values = keys[:batch, :, :span], values[:batch, :, :span]
        else:
            keys, values = keys[rows, :, :span], values[rows, :, :span]
        mixed = self._attend(q, keys, values, bias)
        x = x + layer.out(mixed)
        gate, up = layer.gate_up(self._rms_norm(x, layer.mlp_norm)).chunk(2, dim=-1)
        return x + layer.down(silu(gate) * up)

    def _attend(self, q: Any, keys: Any, values: Any, bias: Any) -> Any:
        """Grouped-query attention without repeating keys and values."""
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


def _apply_rotary(x: Any, cos: Any, sin: Any) -> Any:
    """Apply rotary position embeddings, halves swapped as in transformers."""
    import torch

    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def _round_up_rows(rows: int) -> int:
    return next((size for size in GRAPH_BATCH_SIZES if size >= rows), rows)


def _split_by_length(order: list[int], lengths: list[int]) -> list[list[int]]:
    """Group rows of similar length, each group at most PREFILL_TOKENS cells."""
    parts: list[list[int]] = [[]]
    for at in order:
        if parts[-1] and (len(parts[-1]) + 1) * lengths[at] > PREFILL_TOKENS:
            parts.append([])
        parts[-1].append(at)
    return [part for part in parts if part]
