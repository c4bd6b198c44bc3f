"""Contrastive fine-tuning of the local MiniLM encoder on question-text pairs (extra `train`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.adapt.choice import Choice, Meaning
from clew.errors import ConfigError
from clew.version import pip_install

Floats = NDArray[np.float32]
Tell = Callable[[str, int, int], None]

_LETTERS = 4  # average characters of a token
_SHARPNESS = 20.0  # scale of cosines in the softmax, as in sentence-transformers
_NEEDED = ("embeddings.word_embeddings.weight", "layers.0.attn.q_proj.MatMul.weight")


@dataclass(frozen=True, slots=True)
class EncoderSchooling:
    """Fine-tuning options; the learning rate is small so that other texts change little."""

    rounds: int = 1
    batch: int = 32
    room: int = 32_000
    """Most characters of all texts of a batch: bounds memory to about 2 GB."""
    speed: float = 5e-6
    longest: int = 128
    """Tokens of a text that are encoded while training."""
    seed: int = 0


USUAL = EncoderSchooling()


def fine_tuned(
    weights: Mapping[str, Floats],
    tokenizer: bytes,
    choices: Sequence[Choice],
    tell: Tell,
    how: EncoderSchooling = USUAL,
) -> dict[str, Floats]:
    """Return fine-tuned weights that move questions closer to their right texts.

    Contrastive loss: a question's right texts compete with all other texts of its batch.
    """
    torch = torch_here()
    if not all(name in weights for name in _NEEDED):
        raise ConfigError(
            "these weights are laid out in another way than those that the extra `local` brings, "
            "the only ones that can be learnt further; leave [embed] folder unset"
        )
    from clew.train.search.minilm import MiniLM

    model = MiniLM.of(weights, tokenizer)
    model.tokenizer.enable_truncation(how.longest)
    for one in model.weights.values():
        one.requires_grad_(True)
    optimizer = torch.optim.AdamW(list(model.weights.values()), lr=how.speed, weight_decay=0.0)
    rng = np.random.default_rng(how.seed)
    batches = [part for _ in range(how.rounds) for part in _batches(choices, how, rng)]
    for done, part in enumerate(batches):
        tell("learn", done, len(batches))
        optimizer.zero_grad()
        loss = _loss(model, part)
        loss.backward()
        optimizer.step()
    tell("learn", len(batches), len(batches))
    return {name: one.detach().numpy() for name, one in model.weights.items()}


def _batches(
    choices: Sequence[Choice], how: EncoderSchooling, rng: np.random.Generator
) -> list[list[Choice]]:
    """Shuffle the questions into batches within the size limits."""
    batches: list[list[Choice]] = []
    texts: set[str] = set()
    for at in rng.permutation(len(choices)).tolist():
        choice = choices[at]
        own_texts = {text for meaning in (*choice.right, *choice.wrong) for text in meaning}
        size = sum(min(len(text), _LETTERS * how.longest) for text in texts | own_texts)
        if not batches or len(batches[-1]) >= how.batch or size > how.room:
            batches.append([])
            texts = set()
        batches[-1].append(choice)
        texts |= own_texts
    return batches


def _loss(model: Any, choices: Sequence[Choice]) -> Any:
    """Mean negative log-probability of the right texts among all texts of the batch."""
    torch = torch_here()
    meanings = list(dict.fromkeys(m for one in choices for m in (*one.right, *one.wrong)))
    texts = list(dict.fromkeys(text for meaning in meanings for text in meaning))
    scores = (
        _SHARPNESS
        * _vectors(model, [one.asked for one in choices])
        @ _added(_vectors(model, texts), texts, meanings).transpose(0, 1)
    )
    right = torch.tensor([[m in one.right for m in meanings] for one in choices])
    right_score = scores.masked_fill(~right, float("-inf")).logsumexp(1)
    return (scores.logsumexp(1) - right_score).mean()


def _vectors(model: Any, texts: Sequence[str]) -> Any:
    return model.embed([one.ids for one in model.tokenizer.encode_batch(list(texts))])


def _added(vectors: Any, texts: Sequence[str], meanings: Sequence[Meaning]) -> Any:
    torch = torch_here()
    positions = {text: at for at, text in enumerate(texts)}
    counts = torch.zeros(len(meanings), len(texts))
    for row, meaning in enumerate(meanings):
        for text in meaning:
            counts[row, positions[text]] += 1
    return torch.nn.functional.normalize(counts @ vectors, dim=-1)


def torch_here() -> Any:
    """Return the torch module; raise ConfigError with the install command if it is missing."""
    try:
        import torch
    except ImportError as error:
        raise ConfigError(
            f"learning the encoder itself needs torch ({error}): run `{pip_install('train')}`, "
            "or `clew tune` without --encoder"
        ) from None
    return torch
