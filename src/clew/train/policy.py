"""The trained model: loading, LoRA, token log-probabilities and the KL reference."""

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
"""Generated tokens whose logits are held at once, to bound memory."""
WITHOUT_GRADIENTS = 2
"""A micro-batch without gradients may have this many times as many tokens."""
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def _quiet(line: str) -> None:
    """Log nothing."""


@dataclass(frozen=True)
class Lora:
    """LoRA settings; rank 0 trains the whole model."""

    rank: int = 16
    alpha: int = 32
    targets: tuple[str, ...] = TARGETS


def needed() -> None:
    """Raise ConfigError with the install command if the extra `train` is missing."""
    from importlib.util import find_spec

    absent = [name for name in ("torch", "transformers", "peft") if find_spec(name) is None]
    if absent:
        raise ConfigError(f"training needs {', '.join(absent)}: run `{pip_install('train')}`")


def load_model(
    path: Path | str, *, dtype: str = "auto", device: str = "", whole: bool = False
) -> tuple[Any, Any]:
    """Load a causal model and its tokenizer from a folder or a hub name.

    `whole` (training without LoRA) loads float32: in bfloat16 a step of 5e-7 is rounded away.
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
        path = Path(path).resolve()  # stored in the adapter, which may be served from elsewhere
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
    """A model with its trainable parameters and a frozen reference."""

    model: Any
    pad: int
    temperature: float = 1.0
    cells: int = 32_768
    """Tokens of one micro-batch; halved when memory runs out."""
    frozen: dict[str, Any] = field(default_factory=dict, repr=False)
    """Copies of the trainable weights at the time of `freeze_reference`."""

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
        """Add a LoRA adapter (or train the whole model) and turn dropout off."""
        import torch

        check_trainable(model)
        if lora.rank:
            from peft import LoraConfig, get_peft_model

            config = LoraConfig(
                r=lora.rank,
                lora_alpha=lora.alpha,
                lora_dropout=0.0,
                target_modules=adapted_modules(model, lora.targets),
                task_type="CAUSAL_LM",
            )
            model = get_peft_model(model, config)
        model.eval()  # no dropout: training must see the same policy as the rollout
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
        """The device of the model."""
        return next(self.model.parameters()).device

    def trained(self) -> dict[str, Any]:
        """Return the trainable parameters by name."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def freeze_reference(self) -> None:
        """Make the current weights the KL reference."""
        self.frozen = {name: p.detach().clone() for name, p in self.trained().items()}

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Allow other weights to be loaded; restore the current ones on exit."""
        import torch

        current = {name: p.detach().clone() for name, p in self.trained().items()}
        try:
            yield
        finally:
            with torch.no_grad():
                for name, p in self.trained().items():
                    p.copy_(current[name])

    @contextmanager
    def as_reference(self) -> Iterator[None]:
        """Run with the reference weights; restore the current ones on exit."""
        import torch

        with self.aside():
            with torch.no_grad():
                for name, p in self.trained().items():
                    p.copy_(self.frozen[name])
            yield

    def logprobs(self, batch: Batch) -> tuple[Any, Any]:
        """Return flat log-probabilities of all generated tokens, and the hidden states before them.

        Padding is on the right and attention is causal, so no mask is needed.
        """
        import torch

        ids = torch.as_tensor(batch.ids, device=self.device)
        mask = torch.as_tensor(batch.targets, device=self.device)
        with self._cast():
            core = self.model.get_base_model() if hasattr(self.model, "peft_config") else self.model
            hidden = core.base_model(input_ids=ids, use_cache=False).last_hidden_state
            states = hidden[:, :-1][mask]
            tokens = ids[:, 1:][mask]
            head = core.get_output_embeddings()
            parts = [
                _scored(head, states[at : at + HEAD], tokens[at : at + HEAD], self.temperature)
                for at in range(0, len(tokens), HEAD)
            ]
        return (torch.cat(parts) if parts else states.sum(-1).float()), states

    def _cast(self) -> Any:
        """Autocast to bfloat16 on a GPU; the trainable weights stay in float32."""
        import torch

        kind = "cuda" if self.device.type == "cuda" else "cpu"
        return torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda")

    def measured(self, trajectories: Sequence[Trajectory], tell: Tell = _quiet) -> list[Floats]:
        """Compute log-probabilities of the generated tokens, without gradients."""
        return self.each_own(
            trajectories, lambda batch: self.logprobs(batch)[0].float().cpu().numpy(), tell
        )

    def each_own(
        self, trajectories: Sequence[Trajectory], look: Callable[[Batch], Floats], tell: Tell
    ) -> list[Floats]:
        """Apply `look` to batches without gradients; return its per-token values by trajectory."""
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
    """Compute token log-probabilities; logits are recomputed in the backward pass."""
    from torch.utils.checkpoint import checkpoint

    def score(states: Any) -> Any:
        logits = head(states).float() / temperature
        return logits.gather(-1, tokens[:, None])[:, 0] - logits.logsumexp(-1)

    return checkpoint(score, hidden, use_reentrant=False)
