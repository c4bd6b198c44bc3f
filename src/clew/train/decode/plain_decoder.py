"""A decoder for any causal model of transformers; keys and values stay between turns.

All rows share one time axis. A column that is none of a row's is masked out for it, so that rows
may read replies of different lengths at different times. Slow but general: the reference for
the fast one.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from clew.train.rollout import Draw


@contextmanager
def _at_rest(model: Any) -> Iterator[None]:
    """A model that makes activations again, ready to learn, silently forgets keys and values."""
    learning = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(learning)


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

    def walk(self, tokens: Sequence[int], count: int, draw: Draw) -> tuple[Any, Any]:
        """Read and draw a few tokens in every row."""
        import torch

        ids = torch.tensor(tokens, device=self.mask.device)
        drawn, sure = [], []
        for _ in range(count):
            logits = self._read(ids[:, None], torch.ones_like(ids[:, None], dtype=torch.bool))
            ids, logprobs = draw(logits[:, -1])
            drawn.append(ids)
            sure.append(logprobs)
        return torch.stack(drawn).tolist(), torch.stack(sure).tolist()

    def settle(self, lengths: Sequence[int]) -> None:
        """Mask out, row by row, the last columns that count too many."""
        import torch

        wanted = torch.tensor(list(lengths), device=self.mask.device)
        # A row's columns from the right, counted among those that are its own.
        behind = self.mask.flip(1).cumsum(1).flip(1)
        self.mask = self.mask * (behind > (self.lengths - wanted)[:, None]).long()
        self.lengths = wanted

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
        kind = ids.device.type
        # A model that is trained whole is kept in 32 bits and multiplied in 16, as in learning.
        cast = torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda")
        with torch.inference_mode(), cast, _at_rest(self.model):
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

        if list(rows) == list(range(len(self.lengths))):
            return
        chosen = torch.tensor(list(rows), device=self.mask.device)
        self.cache.batch_select_indices(chosen)
        self.mask, self.lengths = self.mask[chosen], self.lengths[chosen]

    def release(self) -> None:
        """Forget everything."""
        self.cache = self.mask = self.lengths = None
