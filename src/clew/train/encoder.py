"""Teaching the local encoder itself which texts belong to which questions (extra `train`)."""

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

_LETTERS = 4  # of a token, about
_SHARPNESS = 20.0  # how strongly a higher cosine counts: as such encoders were trained
_NEEDED = ("embeddings.word_embeddings.weight", "layers.0.attn.q_proj.MatMul.weight")


@dataclass(frozen=True, slots=True)
class EncoderSchooling:
    """How to learn: gently, since all that is not in the questions should stay as it is."""

    rounds: int = 1
    batch: int = 32
    room: int = 32_000
    """Characters of all texts of a batch: bounds the memory it takes, to some 2 GB."""
    speed: float = 5e-6
    longest: int = 128
    """Tokens of a text that are read while learning."""
    seed: int = 0


USUAL = EncoderSchooling()


def fine_tuned(
    weights: Mapping[str, Floats],
    tokenizer: bytes,
    choices: Sequence[Choice],
    tell: Tell,
    how: EncoderSchooling = USUAL,
) -> dict[str, Floats]:
    """All weights, moved so that questions come nearer to what is right for them.

    Contrastive: what is right for one question must win against all that the other questions
    of its batch bring along.
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
    step = torch.optim.AdamW(list(model.weights.values()), lr=how.speed, weight_decay=0.0)
    chance = np.random.default_rng(how.seed)
    batches = [part for _ in range(how.rounds) for part in _batches(choices, how, chance)]
    for done, part in enumerate(batches):
        tell("learn", done, len(batches))
        step.zero_grad()
        loss = _loss(model, part)
        loss.backward()
        step.step()
    tell("learn", len(batches), len(batches))
    return {name: one.detach().numpy() for name, one in model.weights.items()}


def _batches(
    choices: Sequence[Choice], how: EncoderSchooling, chance: np.random.Generator
) -> list[list[Choice]]:
    """All questions in some order, as many together as there is room for."""
    found: list[list[Choice]] = []
    texts: set[str] = set()
    for at in chance.permutation(len(choices)).tolist():
        one = choices[at]
        own = {text for meaning in (*one.right, *one.wrong) for text in meaning}
        size = sum(min(len(text), _LETTERS * how.longest) for text in texts | own)
        if not found or len(found[-1]) >= how.batch or size > how.room:
            found.append([])
            texts = set()
        found[-1].append(one)
        texts |= own
    return found


def _loss(model: Any, choices: Sequence[Choice]) -> Any:
    """How unlikely what is right is among all that the batch brings, on average."""
    torch = torch_here()
    meanings = list(dict.fromkeys(m for one in choices for m in (*one.right, *one.wrong)))
    texts = list(dict.fromkeys(text for meaning in meanings for text in meaning))
    near = (
        _SHARPNESS
        * _vectors(model, [one.asked for one in choices])
        @ _added(_vectors(model, texts), texts, meanings).transpose(0, 1)
    )
    right = torch.tensor([[m in one.right for m in meanings] for one in choices])
    good = near.masked_fill(~right, float("-inf")).logsumexp(1)
    return (near.logsumexp(1) - good).mean()


def _vectors(model: Any, texts: Sequence[str]) -> Any:
    return model.embed([one.ids for one in model.tokenizer.encode_batch(list(texts))])


def _added(vectors: Any, texts: Sequence[str], meanings: Sequence[Meaning]) -> Any:
    torch = torch_here()
    place = {text: at for at, text in enumerate(texts)}
    parts = torch.zeros(len(meanings), len(texts))
    for row, meaning in enumerate(meanings):
        for text in meaning:
            parts[row, place[text]] += 1
    return torch.nn.functional.normalize(parts @ vectors, dim=-1)


def torch_here() -> Any:
    """Torch, or one sentence on where it comes from."""
    try:
        import torch
    except ImportError as error:
        raise ConfigError(
            f"learning the encoder itself needs torch ({error}): run `{pip_install('train')}`, "
            "or `clew tune` without --encoder"
        ) from None
    return torch
