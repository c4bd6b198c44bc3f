"""The trained model: loading, checks, LoRA, token log-probabilities and the KL reference."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

from clew.errors import ConfigError
from clew.llm.trained_model import MODEL_CONFIG_FILES
from clew.train.core.safeguards import LogFunction, log_nothing, retry_on_oom
from clew.train.core.trajectory import Batch, Floats, Trajectory, make_batches
from clew.version import pip_install_command

_LOGIT_TRANSFORMS = {
    "final_logit_softcapping": None,  # Gemma 2
    "logits_scaling": 1.0,  # Granite
    "logit_scale": 1.0,  # Cohere
    "lm_head_multiplier": 1.0,  # Falcon H1
}
"""Config fields that transform logits after the head, with their neutral values."""
_REQUIRED_ARGUMENTS = ("position_ids", "logits_to_keep")
LOGIT_TOKENS = 8192
"""Generated tokens whose logits are held at once, to bound memory."""
NO_GRAD_FACTOR = 2
"""A micro-batch without gradients may have this many times as many tokens."""
LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class Lora:
    """LoRA settings; rank 0 trains the whole model."""

    rank: int = 16
    alpha: int = 32
    targets: tuple[str, ...] = LORA_TARGETS


def require_train_extra() -> None:
    """Raise ConfigError with the install command if the extra `train` is missing."""
    from importlib.util import find_spec

    absent = [name for name in ("torch", "transformers", "peft") if find_spec(name) is None]
    if absent:
        raise ConfigError(
            f"training needs {', '.join(absent)}: run `{pip_install_command('train')}`"
        )


def load_model(
    path: Path | str, *, dtype: str = "auto", device: str = "", whole: bool = False
) -> tuple[Any, Any]:
    """Load a causal model and its tokenizer from a folder or a hub name.

    `whole` (training without LoRA) loads float32: in bfloat16 a step of 5e-7 is rounded away.
    """
    require_train_extra()
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if dtype == "auto":
        dtype = "bfloat16" if device.startswith("cuda") else "float32"
    if whole:
        dtype = "float32"
    if Path(path).is_dir():
        path = Path(path).resolve()  # stored in the adapter, which may be served from elsewhere
        if not any((path / name).is_file() for name in MODEL_CONFIG_FILES):
            raise ConfigError(
                f"{path} has no {MODEL_CONFIG_FILES[-1]}; give a model folder or a hub name"
            )
    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
        model = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype))
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise ConfigError(f"cannot load a model from {path}: {first}") from error
    return model.to(device), tokenizer


@dataclass
class Policy:
    """A model with its trainable parameters and a frozen reference."""

    model: Any
    pad: int
    temperature: float = 1.0
    cells: int = 32_768
    """Tokens of one micro-batch; halved when memory runs out."""
    reference_weights: dict[str, Any] = field(default_factory=dict, repr=False)
    """Copies of the trainable weights at the time of `freeze_reference`."""

    @classmethod
    def from_model(
        cls, model: Any, pad: int, lora: Lora, *, checkpointing: bool = False, **settings: Any
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
                target_modules=lora_target_modules(model, lora.targets),
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

    def trainable_parameters(self) -> dict[str, Any]:
        """Return the trainable parameters by name."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def freeze_reference(self) -> None:
        """Make the current weights the KL reference."""
        self.reference_weights = {
            name: p.detach().clone() for name, p in self.trainable_parameters().items()
        }

    @contextmanager
    def temporary_weights(self) -> Iterator[None]:
        """Allow other weights to be loaded; restore the current ones on exit."""
        import torch

        current = {name: p.detach().clone() for name, p in self.trainable_parameters().items()}
        try:
            yield
        finally:
            with torch.no_grad():
                for name, p in self.trainable_parameters().items():
                    p.copy_(current[name])

    @contextmanager
    def with_reference_weights(self) -> Iterator[None]:
        """Run with the reference weights; restore the current ones on exit."""
        import torch

        with self.temporary_weights():
            with torch.no_grad():
                for name, p in self.trainable_parameters().items():
                    p.copy_(self.reference_weights[name])
            yield

    def logprobs(self, batch: Batch) -> tuple[Any, Any]:
        """Return flat log-probabilities of all generated tokens, and the hidden states before them.

        Padding is on the right and attention is causal, so no mask is needed.
        """
        import torch

        ids = torch.as_tensor(batch.ids, device=self.device)
        mask = torch.as_tensor(batch.targets, device=self.device)
        with self._autocast():
            core = self.model.get_base_model() if hasattr(self.model, "peft_config") else self.model
            hidden = core.base_model(input_ids=ids, use_cache=False).last_hidden_state
            states = hidden[:, :-1][mask]
            tokens = ids[:, 1:][mask]
            head = core.get_output_embeddings()
            parts = [
                _token_logprobs(
                    head,
                    states[at : at + LOGIT_TOKENS],
                    tokens[at : at + LOGIT_TOKENS],
                    self.temperature,
                )
                for at in range(0, len(tokens), LOGIT_TOKENS)
            ]
        return (torch.cat(parts) if parts else states.sum(-1).float()), states

    def _autocast(self) -> Any:
        """Autocast to bfloat16 on a GPU; the trainable weights stay in float32."""
        import torch

        kind = "cuda" if self.device.type == "cuda" else "cpu"
        return torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda")

    def score_trajectories(
        self, trajectories: Sequence[Trajectory], report: LogFunction = log_nothing
    ) -> list[Floats]:
        """Compute log-probabilities of the generated tokens, without gradients."""
        return self.map_own_tokens(
            trajectories, lambda batch: self.logprobs(batch)[0].float().cpu().numpy(), report
        )

    def map_own_tokens(
        self,
        trajectories: Sequence[Trajectory],
        values_of: Callable[[Batch], Floats],
        report: LogFunction,
    ) -> list[Floats]:
        """Apply `values_of` to batches without gradients; return per-token values by trajectory."""
        return retry_on_oom(
            self,
            trajectories,
            lambda: self._map_batches(trajectories, values_of),
            report,
            NO_GRAD_FACTOR,
        )

    def _map_batches(
        self, trajectories: Sequence[Trajectory], values_of: Callable[[Batch], Floats]
    ) -> list[Floats]:
        import torch

        found: dict[int, Floats] = {}
        with torch.no_grad():
            for batch in make_batches(trajectories, self.cells * NO_GRAD_FACTOR, self.pad):
                flat = values_of(batch)
                first = 0
                for at in batch.indices:
                    count = trajectories[at].generated_count
                    found[at] = flat[first : first + count]
                    first += count
        return [found[at] for at in range(len(trajectories))]


def check_trainable(model: Any) -> None:
    """Raise ConfigError for a model whose log-probabilities would be computed wrongly."""
    config = model.config.get_text_config()
    for name, neutral in _LOGIT_TRANSFORMS.items():
        value = getattr(config, name, neutral)
        if value not in (None, neutral):
            raise ConfigError(
                f"a {config.model_type} model cannot be trained: {name} = {value} changes its "
                "logits after the head; use a Qwen2, Llama or Mistral model"
            )
    lacking = [
        name for name in _REQUIRED_ARGUMENTS if name not in signature(model.forward).parameters
    ]
    if lacking or model.base_model is model:
        raise ConfigError(
            f"a {config.model_type} model cannot be trained: it has no "
            f"{' and no '.join(lacking) or 'separate head'}; use a Qwen2, Llama or Mistral model"
        )


def lora_target_modules(model: Any, wanted: Sequence[str]) -> list[str] | str:
    """Return the LoRA target modules: the Llama family's, else all linear layers."""
    names = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    return list(wanted) if names >= set(wanted) else "all-linear"


def _token_logprobs(head: Any, hidden: Any, tokens: Any, temperature: float) -> Any:
    """Compute token log-probabilities; logits are recomputed in the backward pass."""
    from torch.utils.checkpoint import checkpoint

    def score(states: Any) -> Any:
        logits = head(states).float() / temperature
        return logits.gather(-1, tokens[:, None])[:, 0] - logits.logsumexp(-1)

    return checkpoint(score, hidden, use_reentrant=False)
