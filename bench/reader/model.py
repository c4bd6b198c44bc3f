"""The reader in torch: the local encoder all-MiniLM-L6-v2 and one layer for starts and ends."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import (
    dropout,
    embedding,
    gelu,
    layer_norm,
    nll_loss,
    scaled_dot_product_attention,
)

HEAD_DIM, EPS = 32, 1e-12
SPAN_WEIGHT, SPAN_BIAS = "span.weight", "span.bias"
# cuDNN plans its attention anew for every shape, ten times as long as a step takes.
torch.backends.cuda.enable_cudnn_sdp(False)
NO_SPAN = -1e4  # logit of a token that cannot start or end an answer


class ReaderModel(nn.Module):
    """Logits of start and end for every token; those of the first token mean "no answer"."""

    def __init__(self, weights: Mapping[str, NDArray[Any]], drop: float = 0.1) -> None:
        """Take the encoder's weights, and the span layer's where they are given."""
        super().__init__()
        size = weights["embeddings.token_type_embeddings.weight"].shape[-1]
        given = dict(weights)
        if SPAN_WEIGHT not in given:
            noise = np.random.default_rng(0).normal(0, 0.02, (size, 2))
            given[SPAN_WEIGHT], given[SPAN_BIAS] = noise, np.zeros(2)
        self.held = nn.ParameterDict(
            {
                _key(name): nn.Parameter(torch.from_numpy(array.astype(np.float32)))
                for name, array in given.items()
            }
        )
        self.layers = sum(name.endswith("attn.q_proj.MatMul.weight") for name in weights)
        self.drop = drop

    def numpy_weights(self) -> dict[str, NDArray[np.float32]]:
        """All weights under the names of the encoder's file."""
        return {
            _name(key): value.detach().float().cpu().numpy() for key, value in self.held.items()
        }

    def forward(self, ids: Any, types: Any, mask: Any) -> Any:
        """Logits of shape (rows, tokens, 2)."""
        w = self.held
        x = embedding(ids, w[_key("embeddings.word_embeddings.weight")])
        x = x + w[_key("embeddings.position_embeddings.weight")][: ids.shape[1]]
        x = x + embedding(types, w[_key("embeddings.token_type_embeddings.weight")])
        x = self._norm(x, "layers.-1.embeddings_norm_layernorm")
        x = dropout(x, self.drop, self.training)
        bias = attention_bias(mask, x)
        for number in range(self.layers):
            x = self._forward_layer(x, f"layers.{number}", bias)
        x = dropout(x, self.drop, self.training)
        with torch.autocast(x.device.type, enabled=False):  # logits need more than 8 bits
            return x.float() @ w[_key(SPAN_WEIGHT)] + w[_key(SPAN_BIAS)]

    def _norm(self, x: Any, name: str) -> Any:
        w = self.held
        return layer_norm(
            x.float(), x.shape[-1:], w[_key(f"{name}.weight")], w[_key(f"{name}.bias")], EPS
        )

    def _linear(self, x: Any, name: str) -> Any:
        # The file stores weights as (inputs, outputs).
        w = self.held
        return x @ w[_key(f"{name}.MatMul.weight")] + w[_key(f"{name}.Add.bias")]

    def _forward_layer(self, x: Any, name: str, bias: Any) -> Any:
        rows, width, size = x.shape
        q, k, v = (
            self._linear(x, f"{name}.attn.{part}_proj")
            .view(rows, width, size // HEAD_DIM, HEAD_DIM)
            .transpose(1, 2)
            for part in "qkv"
        )
        kind = bias.dtype
        mixed = scaled_dot_product_attention(
            q.to(kind),
            k.to(kind),
            v.to(kind),
            attn_mask=bias,
            dropout_p=self.drop if self.training else 0.0,
        )
        mixed = mixed.transpose(1, 2).reshape(rows, width, size)
        out = dropout(self._linear(mixed, f"{name}.attn.o_proj"), self.drop, self.training)
        x = self._norm(x + out, f"{name}.attention_output_norm_layernorm")
        inner = self._linear(gelu(self._linear(x, f"{name}.mlp.fc1")), f"{name}.mlp.fc2")
        inner = dropout(inner, self.drop, self.training)
        return self._norm(x + inner, f"{name}.mlp_output_norm_layernorm")


def attention_bias(mask: Any, x: Any) -> Any:
    """What is added to the scores of attention to `x`: nothing, or minus infinity for padding.

    With a mask of booleans instead, gradients of the fused kernel overflow.
    """
    bias = torch.zeros(mask.shape, dtype=x.dtype, device=x.device)
    bias = bias.masked_fill(~mask, float("-inf"))[:, None, None]
    if torch.is_autocast_enabled(x.device.type):
        bias = bias.to(torch.get_autocast_dtype(x.device.type))
    return bias


def span_logits(logits: Any, allowed: Any) -> Any:
    """Logits with those of tokens that no answer may start or end at ruled out."""
    return logits.masked_fill(~allowed[..., None], NO_SPAN)


def span_loss(logits: Any, allowed: Any, starts: Any, ends: Any, soft: Any, trust: Any) -> Any:
    """Cross-entropy of start and end among the allowed tokens; token 0 is "no answer".

    `trust` is the share of the target that comes from a teacher's probabilities, the rest from
    the label; one number for all windows, or one for each.
    """
    scores = span_logits(logits, allowed).log_softmax(1)
    told = -(soft * scores).sum((1, 2)) / 2
    own = nll_loss(scores[..., 0], starts, reduction="none")
    own = (own + nll_loss(scores[..., 1], ends, reduction="none")) / 2
    return (trust * told + (1 - trust) * own).mean()


def view_of(model: Any, batch: tuple[Any, ...], trust: float) -> tuple[Any, Any]:
    """The probabilities of starts and ends by another reader, and how far they are trusted.

    They are trusted where its best start and end are the labels: there only its certainty is
    to be learnt, elsewhere the label.
    """
    ids, types, mask, allowed, starts, ends, _ = batch
    with torch.no_grad():
        view = span_logits(model(ids, types, mask), allowed).softmax(1)
    best = view.argmax(1)
    return view, trust * ((best[:, 0] == starts) & (best[:, 1] == ends)).float()


def load_weights(path: Path) -> tuple[dict[str, NDArray[Any]], bytes]:
    """Read the weights and the tokenizer of a file of `clew.train.search.exported_kb`."""
    with np.load(path, allow_pickle=False) as held:
        weights = {name: held[name] for name in held.files if name != "tokenizer"}
        return weights, held["tokenizer"].tobytes()


def save_weights(path: Path, weights: Mapping[str, NDArray[Any]], tokenizer: bytes) -> None:
    """Write weights as float16 with the tokenizer to one file."""
    out = {name: array.astype(np.float16) for name, array in weights.items()}
    out["tokenizer"] = np.frombuffer(tokenizer, np.uint8)
    np.savez_compressed(path, **out)  # type: ignore[arg-type]


def _key(name: str) -> str:
    return name.replace(".", "/")  # a parameter's name may not have dots


def _name(key: str) -> str:
    return key.replace("/", ".")
