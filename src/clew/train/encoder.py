"""The local encoder all-MiniLM-L6-v2 in torch, and its contrastive fine-tuning (extra `train`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.adapters import ContrastiveExample, TextGroup
from clew.errors import ConfigError
from clew.version import pip_install_command

Floats = NDArray[np.float32]
ProgressCallback = Callable[[str, int, int], None]
_CHARACTERS_PER_TOKEN = 4  # average characters of a token
_INVERSE_TEMPERATURE = 20.0  # scale of cosines in the softmax, as in sentence-transformers
_REQUIRED_WEIGHTS = ("embeddings.word_embeddings.weight", "layers.0.attn.q_proj.MatMul.weight")


@dataclass(frozen=True, slots=True)
class EncoderFitOptions:
    """Fine-tuning options; the learning rate is small so that other texts change little."""

    epochs: int = 1
    batch: int = 32
    max_characters: int = 32_000
    """Most characters of all texts of a batch: bounds memory to about 2 GB."""
    learning_rate: float = 5e-6
    max_tokens: int = 128
    """Tokens of a text that are encoded while training."""
    seed: int = 0


DEFAULT_FIT_OPTIONS = EncoderFitOptions()


def fine_tune(
    weights: Mapping[str, Floats],
    tokenizer: bytes,
    choices: Sequence[ContrastiveExample],
    progress: ProgressCallback,
    how: EncoderFitOptions = DEFAULT_FIT_OPTIONS,
) -> dict[str, Floats]:
    """Return fine-tuned weights that move questions closer to their right texts.

    Contrastive loss: a question's right texts compete with all other texts of its batch.
    """
    torch = require_torch()
    if not all(name in weights for name in _REQUIRED_WEIGHTS):
        raise ConfigError(
            "only the encoder of the extra `local` can be fine-tuned; leave [embed] folder unset"
        )

    model = MiniLM.from_weights(weights, tokenizer)
    model.tokenizer.enable_truncation(how.max_tokens)
    for one in model.weights.values():
        one.requires_grad_(True)
    optimizer = torch.optim.AdamW(
        list(model.weights.values()), lr=how.learning_rate, weight_decay=0.0
    )
    rng = np.random.default_rng(how.seed)
    batches = [part for _ in range(how.epochs) for part in make_batches(choices, how, rng)]
    for done, part in enumerate(batches):
        progress("learn", done, len(batches))
        optimizer.zero_grad()
        loss = _contrastive_loss(model, part)
        loss.backward()
        optimizer.step()
    progress("learn", len(batches), len(batches))
    return {name: one.detach().numpy() for name, one in model.weights.items()}


def make_batches(
    choices: Sequence[ContrastiveExample], how: EncoderFitOptions, rng: np.random.Generator
) -> list[list[ContrastiveExample]]:
    """Shuffle the questions into batches within the size limits."""
    batches: list[list[ContrastiveExample]] = []
    texts: set[str] = set()
    for at in rng.permutation(len(choices)).tolist():
        choice = choices[at]
        own_texts = {text for meaning in (*choice.positives, *choice.negatives) for text in meaning}
        size = sum(
            min(len(text), _CHARACTERS_PER_TOKEN * how.max_tokens) for text in texts | own_texts
        )
        if not batches or len(batches[-1]) >= how.batch or size > how.max_characters:
            batches.append([])
            texts = set()
        batches[-1].append(choice)
        texts |= own_texts
    return batches


def _contrastive_loss(model: Any, choices: Sequence[ContrastiveExample]) -> Any:
    """Mean negative log-probability of the right texts among all texts of the batch."""
    torch = require_torch()
    meanings = list(dict.fromkeys(m for one in choices for m in (*one.positives, *one.negatives)))
    texts = list(dict.fromkeys(text for meaning in meanings for text in meaning))
    scores = (
        _INVERSE_TEMPERATURE
        * _embed_texts(model, [one.question for one in choices])
        @ sum_text_vectors(_embed_texts(model, texts), texts, meanings).transpose(0, 1)
    )
    right = torch.tensor([[m in one.positives for m in meanings] for one in choices])
    right_score = scores.masked_fill(~right, float("-inf")).logsumexp(1)
    return (scores.logsumexp(1) - right_score).mean()


def _embed_texts(model: Any, texts: Sequence[str]) -> Any:
    return model.embed([one.ids for one in model.tokenizer.encode_batch(list(texts))])


def sum_text_vectors(vectors: Any, texts: Sequence[str], meanings: Sequence[TextGroup]) -> Any:
    """Return for each group of texts the normalised sum of their vectors."""
    torch = require_torch()
    positions = {text: at for at, text in enumerate(texts)}
    counts = torch.zeros(len(meanings), len(texts))
    for row, meaning in enumerate(meanings):
        for text in meaning:
            counts[row, positions[text]] += 1
    return torch.nn.functional.normalize(counts @ vectors, dim=-1)


def require_torch() -> Any:
    """Return the torch module; raise ConfigError with the install command if it is missing."""
    try:
        import torch
    except ImportError as error:
        raise ConfigError(
            f"fine-tuning the encoder needs torch ({error}): "
            f"run `{pip_install_command('train')}`, or `clew tune` without --encoder"
        ) from None
    return torch


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
