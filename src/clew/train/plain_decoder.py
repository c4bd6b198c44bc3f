"""A decoder for any causal model of transformers; keys and values stay between turns.

All rows share one time axis. A column that is none of a row's is masked out for it, so that rows
may read replies of different lengths at different times. Slow but general: the reference for
the fast one.
"""

from collections.abc import Sequence
from typing import Any


class PlainDecoder:
    """Wraps a transformers model; `model` may be a peft model, its adapter then counts."""

    def __init__(self, model: Any) -> None:
        """Nothing is read yet."""
        self.model = model
        self.cache: Any = None
        self.mask: Any = None
        self.lengths: Any = None

    def begin(self, prompts: Sequence[Sequence[int]], room: int) -> Any:
        """Read fresh prompts."""
        import torch
        from transformers import DynamicCache

        device = next(self.model.parameters()).device
        self.cache = DynamicCache()
        self.mask = torch.zeros(len(prompts), 0, dtype=torch.long, device=device)
        self.lengths = torch.zeros(len(prompts), dtype=torch.long, device=device)
        return self.extend(range(len(prompts)), prompts)

    def step(self, tokens: Sequence[int], live: Sequence[bool]) -> Any:
        """Read one token in every live row."""
        import torch

        device = self.mask.device
        ids = torch.tensor(tokens, device=device)[:, None]
        return self._read(ids, torch.tensor(live, device=device)[:, None])[:, -1]

    def extend(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> Any:
        """Read several tokens in some rows."""
        import torch

        device = self.mask.device
        widest = max(map(len, tokens))
        ids = torch.zeros(len(self.lengths), widest, dtype=torch.long, device=device)
        real = torch.zeros(len(self.lengths), widest, dtype=torch.bool, device=device)
        for row, said in zip(rows, tokens, strict=True):
            # On the right, so that every row's last token is in the last column.
            ids[row, widest - len(said) :] = torch.tensor(list(said), device=device)
            real[row, widest - len(said) :] = True
        return self._read(ids, real)[:, -1][torch.tensor(list(rows), device=device)]

    def _read(self, ids: Any, real: Any) -> Any:
        import torch

        steps = real.long().cumsum(dim=1)
        positions = (self.lengths[:, None] + steps - 1).clamp(min=0)
        self.mask = torch.cat([self.mask, real.long()], dim=1)
        self.lengths = self.lengths + real.sum(dim=1)
        with torch.inference_mode():
            out = self.model(
                input_ids=ids,
                attention_mask=self.mask,
                position_ids=positions,
                past_key_values=self.cache,
                use_cache=True,
                logits_to_keep=1,
            )
        return out.logits

    def keep(self, rows: Sequence[int]) -> None:
        """Forget all rows but these."""
        import torch

        if len(rows) == len(self.lengths):
            return
        chosen = torch.tensor(list(rows), device=self.mask.device)
        self.cache.batch_select_indices(chosen)
        self.mask, self.lengths = self.mask[chosen], self.lengths[chosen]
