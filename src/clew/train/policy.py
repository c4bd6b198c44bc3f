"""The model that is trained: loading, LoRA, log-probabilities of what it wrote, its reference."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError
from clew.llm.trained import CONFIGS
from clew.train.learn.memory import Tell, in_cells
from clew.train.supported import adapted_modules, check_trainable
from clew.train.trajectory import Batch, Trajectory, batches
from clew.version import pip_install

Floats = NDArray[np.float32]

HEAD = 8192
"""Own tokens whose logits exist at once; the vocabulary is wide."""
WITHOUT_GRADIENTS = 2
"""How many times the tokens of a micro-batch fit where nothing is kept for a backward pass."""
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def _quiet(line: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Lora:
    """Shape of the adapter; rank 0 trains the whole model."""

    rank: int = 16
    alpha: int = 32
    targets: tuple[str, ...] = TARGETS


def needed() -> None:
    """Say what to install when the extra is absent."""
    from importlib.util import find_spec

    absent = [name for name in ("torch", "transformers", "peft") if find_spec(name) is None]
    if absent:
        raise ConfigError(f"training needs {', '.join(absent)}: run `{pip_install('train')}`")


def load_model(
    path: Path | str, *, dtype: str = "auto", device: str = "", whole: bool = False
) -> tuple[Any, Any]:
    """A causal model and its tokenizer, from a folder or a hub name.

    `whole` is for a model trained without an adapter: in 16 bits a step of 5e-7 is rounded away.
    """
    needed()
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if dtype == "auto":
        dtype = "bfloat16" if device.startswith("cuda") else "float32"
    if whole:
        dtype = "float32"
    if Path(path).is_dir():
        path = Path(path).resolve()  # an adapter remembers it and may be served from elsewhere
        if not any((path / name).is_file() for name in CONFIGS):
            raise ConfigError(f"{path} holds no model: there is no {CONFIGS[-1]} in it")
    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
        model = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype))
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise ConfigError(f"no model can be loaded from {path}: {first}") from error
    return model.to(device), tokenizer


@dataclass
class Policy:
    """A model with what of it is trained."""

    model: Any
    pad: int
    temperature: float = 1.0
    cells: int = 32_768
    """Tokens of one micro-batch; halved when memory runs out."""
    frozen: dict[str, Any] = field(default_factory=dict, repr=False)
    """The reference: what the trained weights were when it was taken."""

    @classmethod
    def around(
        cls,
        model: Any,
        pad: int,
        lora: Lora,
        *,
        checkpointing: bool = False,
        **settings: Any,
    ) -> "Policy":
        """Add an adapter (or thaw the whole model) and turn dropout off."""
        import torch

        check_trainable(model)
        if lora.rank:
            from peft import LoraConfig, get_peft_model

            wanted = LoraConfig(
                r=lora.rank,
                lora_alpha=lora.alpha,
                lora_dropout=0.0,
                target_modules=adapted_modules(model, lora.targets),
                task_type="CAUSAL_LM",
            )
            model = get_peft_model(model, wanted)
        model.eval()  # no dropout anywhere: what is trained is what was played
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})
            model.train()
            for module in model.modules():
                if isinstance(module, torch.nn.Dropout):
                    module.p = 0.0
                elif isinstance(getattr(module, "attention_dropout", None), float):
                    module.attention_dropout = 0.0
        return cls(model, pad, **settings)

    @property
    def device(self) -> Any:
        """Where it runs."""
        return next(self.model.parameters()).device

    def trained(self) -> dict[str, Any]:
        """The trained parameters by name."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def freeze_reference(self) -> None:
        """From now on this moment's weights are the reference."""
        self.frozen = {name: p.detach().clone() for name, p in self.trained().items()}

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Within, other weights may be loaded; afterwards the present ones are back."""
        import torch

        present = {name: p.detach().clone() for name, p in self.trained().items()}
        try:
            yield
        finally:
            with torch.no_grad():
                for name, p in self.trained().items():
                    p.copy_(present[name])

    @contextmanager
    def as_reference(self) -> Iterator[None]:
        """Within, the model is its reference."""
        import torch

        with self.aside():
            with torch.no_grad():
                for name, p in self.trained().items():
                    p.copy_(self.frozen[name])
            yield

    def logprobs(self, batch: Batch) -> tuple[Any, Any]:
        """Log-probability of every own token of a batch, flat, and the hidden states before them.

        Padding is on the right and attention looks left only, so it needs no mask.
        """
        import torch

        ids = torch.as_tensor(batch.ids, device=self.device)
        wanted = torch.as_tensor(batch.targets, device=self.device)
        with self._cast():
            core = self.model.get_base_model() if hasattr(self.model, "peft_config") else self.model
            hidden = core.base_model(input_ids=ids, use_cache=False).last_hidden_state
            before = hidden[:, :-1][wanted]
            after = ids[:, 1:][wanted]
            head = core.get_output_embeddings()
            parts = [
                _scored(head, before[at : at + HEAD], after[at : at + HEAD], self.temperature)
                for at in range(0, len(after), HEAD)
            ]
        return (torch.cat(parts) if parts else before.sum(-1).float()), before

    def _cast(self) -> Any:
        """Adapters are kept in 32 bits and multiplied in the model's own precision."""
        import torch

        kind = "cuda" if self.device.type == "cuda" else "cpu"
        return torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda")

    def measured(self, trajectories: Sequence[Trajectory], tell: Tell = _quiet) -> list[Floats]:
        """Log-probabilities of own tokens, without gradients."""
        return self.each_own(
            trajectories, lambda batch: self.logprobs(batch)[0].float().cpu().numpy(), tell
        )

    def each_own(
        self, trajectories: Sequence[Trajectory], look: Callable[[Batch], Floats], tell: Tell
    ) -> list[Floats]:
        """What `look` finds of a batch's own tokens, by trajectory; without gradients."""
        return in_cells(
            self, trajectories, lambda: self._looked(trajectories, look), tell, WITHOUT_GRADIENTS
        )

    def _looked(
        self, trajectories: Sequence[Trajectory], look: Callable[[Batch], Floats]
    ) -> list[Floats]:
        import torch

        found: dict[int, Floats] = {}
        with torch.no_grad():
            for batch in batches(trajectories, self.cells * WITHOUT_GRADIENTS, self.pad):
                flat = look(batch)
                first = 0
                for at in batch.at:
                    count = trajectories[at].written
                    found[at] = flat[first : first + count]
                    first += count
        return [found[at] for at in range(len(trajectories))]


def _scored(head: Any, hidden: Any, tokens: Any, temperature: float) -> Any:
    """Log-probabilities of tokens; logits are made again in the backward pass, not kept."""
    from torch.utils.checkpoint import checkpoint

    def score(states: Any) -> Any:
        logits = head(states).float() / temperature
        return logits.gather(-1, tokens[:, None])[:, 0] - logits.logsumexp(-1)

    return checkpoint(score, hidden, use_reentrant=False)
