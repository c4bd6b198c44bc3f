"""all-MiniLM-L6-v2 in torch, loaded from `export_minilm`'s file: batched embedding on a GPU."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HEAD_DIM, _MAX_TOKENS, _EPS = 32, 256, 1e-12  # dimensions of one attention head, tokens of a text


class MiniLM:
    """Embeds texts as unit vectors; a text's vector does not depend on its batch."""

    def __init__(self, path: Path, *, device: str = "cpu") -> None:
        """Load weights and tokenizer from a file."""
        with np.load(path, allow_pickle=False) as held:
            tokenizer = held["tokenizer"].tobytes()
            weights = {name: held[name] for name in held.files if name != "tokenizer"}
        self._load(weights, tokenizer, device)

    @classmethod
    def from_weights(cls, weights: Mapping[str, NDArray[Any]], tokenizer: bytes) -> "MiniLM":
        """Create from weights in memory, named as by `read_weights`."""
        made = cls.__new__(cls)
        made._load(weights, tokenizer, "cpu")
        return made

    def _load(self, weights: Mapping[str, NDArray[Any]], tokenizer: bytes, device: str) -> None:
        import torch
        from tokenizers import Tokenizer

        self.device = device
        self.weights = {
            name: torch.from_numpy(array.astype(np.float32)).to(device)
            for name, array in weights.items()
        }
        self.layers = sum(name.endswith("attn.q_proj.MatMul.weight") for name in weights)
        self.tokenizer = Tokenizer.from_buffer(tokenizer)
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(_MAX_TOKENS)

    def __call__(self, texts: Sequence[str], batch: int = 512) -> Any:
        """Embed texts, one row per text."""
        import torch

        ids = [one.ids for one in self.tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        rows: list[Any] = [None] * len(ids)
        with torch.inference_mode():
            for first in range(0, len(order), batch):
                part = order[first : first + batch]
                for at, row in zip(part, self.embed([ids[at] for at in part]), strict=True):
                    rows[at] = row
        return torch.stack(rows)

    def embed(self, ids: list[list[int]]) -> Any:
        """Embed token sequences as unit vectors; differentiable in the weights."""
        import torch
        from torch.nn.functional import embedding, normalize

        w = self.weights
        widest = max(map(len, ids))
        tokens = torch.zeros(len(ids), widest, dtype=torch.long)
        token_mask = torch.zeros(len(ids), widest)
        for row, one in enumerate(ids):
            tokens[row, : len(one)] = torch.tensor(one)
            token_mask[row, : len(one)] = 1
        tokens, token_mask = tokens.to(self.device), token_mask.to(self.device)
        x = embedding(tokens, w["embeddings.word_embeddings.weight"])
        x = x + w["embeddings.position_embeddings.weight"][:widest]
        x = x + w["embeddings.token_type_embeddings.weight"][0]
        x = self._layer_norm(x, "layers.-1.embeddings_norm_layernorm")
        mask = token_mask[:, None, None].bool()
        for number in range(self.layers):
            x = self._forward_layer(x, f"layers.{number}", mask)
        mean = (x * token_mask[..., None]).sum(1) / token_mask.sum(1, keepdim=True)
        return normalize(mean, dim=-1)

    def _layer_norm(self, x: Any, name: str) -> Any:
        from torch.nn.functional import layer_norm

        w = self.weights
        return layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], _EPS)

    def _linear(self, x: Any, name: str) -> Any:
        # ONNX stores weights as (inputs, outputs).
        return x @ self.weights[f"{name}.MatMul.weight"] + self.weights[f"{name}.Add.bias"]

    def _forward_layer(self, x: Any, name: str, mask: Any) -> Any:
        from torch.nn.functional import gelu, scaled_dot_product_attention

        batch, width, size = x.shape
        q, k, v = (
            self._linear(x, f"{name}.attn.{part}_proj")
            .view(batch, width, size // _HEAD_DIM, _HEAD_DIM)
            .transpose(1, 2)
            for part in "qkv"
        )
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(batch, width, size)
        x = self._layer_norm(
            x + self._linear(mixed, f"{name}.attn.o_proj"),
            f"{name}.attention_output_norm_layernorm",
        )
        inner = gelu(self._linear(x, f"{name}.mlp.fc1"))
        return self._layer_norm(
            x + self._linear(inner, f"{name}.mlp.fc2"), f"{name}.mlp_output_norm_layernorm"
        )
