"""A decoder for any transformers causal model; the key-value cache persists between turns.

All rows share one time axis; columns that do not belong to a row are masked, so that rows can
prefill replies of different lengths at different times. Slow but general: the reference for the
fast decoder.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from clew.train.core.rollout import SampleFunction


@contextmanager
def _eval_mode(model: Any) -> Iterator[None]:
    """Switch to eval mode: with gradient checkpointing, train mode disables the cache."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


class PlainDecoder:
    """Decoder over a transformers model, or a peft model with its adapter."""

    def __init__(self, model: Any) -> None:
        """Start with an empty cache."""
        self.model = model
        self.cache: Any = None
        self.mask: Any = None
        self.lengths: Any = None

    def prefill(self, prompts: Sequence[Sequence[int]], capacity: int) -> Any:
        """Prefill new prompts."""
        import torch
        from transformers import DynamicCache

        device = next(self.model.parameters()).device
        self.cache = DynamicCache()
        self.mask = torch.zeros(len(prompts), 0, dtype=torch.long, device=device)
        self.lengths = torch.zeros(len(prompts), dtype=torch.long, device=device)
        return self.extend(range(len(prompts)), prompts)

    def generate(self, tokens: Sequence[int], count: int, draw: SampleFunction) -> tuple[Any, Any]:
        """Generate `count` tokens in every row."""
        import torch

        ids = torch.tensor(tokens, device=self.mask.device)
        tokens_out, logprobs_out = [], []
        for _ in range(count):
            logits = self._forward(ids[:, None], torch.ones_like(ids[:, None], dtype=torch.bool))
            ids, logprobs = draw(logits[:, -1])
            tokens_out.append(ids)
            logprobs_out.append(logprobs)
        return torch.stack(tokens_out).tolist(), torch.stack(logprobs_out).tolist()

    def truncate(self, lengths: Sequence[int]) -> None:
        """Mask each row's last columns beyond its new length."""
        import torch

        new_lengths = torch.tensor(list(lengths), device=self.mask.device)
        # Counts a row's own columns from the right.
        from_right = self.mask.flip(1).cumsum(1).flip(1)
        self.mask = self.mask * (from_right > (self.lengths - new_lengths)[:, None]).long()
        self.lengths = new_lengths

    def extend(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> Any:
        """Prefill tokens in some rows."""
        import torch

        device = self.mask.device
        widest = max(map(len, tokens))
        ids = torch.zeros(len(self.lengths), widest, dtype=torch.long, device=device)
        real = torch.zeros(len(self.lengths), widest, dtype=torch.bool, device=device)
        for row, row_ids in zip(rows, tokens, strict=True):
            # Right-aligned, so that every row's last token is in the last column.
            ids[row, widest - len(row_ids) :] = torch.tensor(list(row_ids), device=device)
            real[row, widest - len(row_ids) :] = True
        return self._forward(ids, real)[:, -1][torch.tensor(list(rows), device=device)]

    def _forward(self, ids: Any, real: Any) -> Any:
        import torch

        steps = real.long().cumsum(dim=1)
        positions = (self.lengths[:, None] + steps - 1).clamp(min=0)
        self.mask = torch.cat([self.mask, real.long()], dim=1)
        self.lengths = self.lengths + real.sum(dim=1)
        kind = ids.device.type
        # A fully trained model is float32 and runs in bfloat16, as in training.
        cast = torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda")
        with torch.inference_mode(), cast, _eval_mode(self.model):
            out = self.model(
                input_ids=ids,
                attention_mask=self.mask,
                position_ids=positions,
                past_key_values=self.cache,
                use_cache=True,
                logits_to_keep=1,
            )
        return out.logits

    def select_rows(self, rows: Sequence[int]) -> None:
        """Keep only these rows."""
        import torch

        if list(rows) == list(range(len(self.lengths))):
            return
        chosen = torch.tensor(list(rows), device=self.mask.device)
        self.cache.batch_select_indices(chosen)
        self.mask, self.lengths = self.mask[chosen], self.lengths[chosen]

    def release(self) -> None:
        """Drop all rows and the cache."""
        self.cache = self.mask = self.lengths = None
