"""Checks that a model can be trained: its logits must be the head times the last state."""

from collections.abc import Sequence
from inspect import signature
from typing import Any

from clew.errors import ConfigError

_LOGIT_TRANSFORMS = {
    "final_logit_softcapping": None,  # Gemma 2
    "logits_scaling": 1.0,  # Granite
    "logit_scale": 1.0,  # Cohere
    "lm_head_multiplier": 1.0,  # Falcon H1
}
"""Config fields that transform logits after the head, with their neutral values."""
_REQUIRED_ARGUMENTS = ("position_ids", "logits_to_keep")


def check_trainable(model: Any) -> None:
    """Raise ConfigError for a model whose log-probabilities would be computed wrongly."""
    config = model.config.get_text_config()
    for name, neutral in _LOGIT_TRANSFORMS.items():
        value = getattr(config, name, neutral)
        if value not in (None, neutral):
            raise ConfigError(
                f"a {config.model_type} model cannot be trained: {name} = {value} alters its "
                "scores after the head; take one of the Qwen2, Llama or Mistral families"
            )
    lacking = [
        name for name in _REQUIRED_ARGUMENTS if name not in signature(model.forward).parameters
    ]
    if lacking or model.base_model is model:
        raise ConfigError(
            f"a {config.model_type} model cannot be trained: it takes no "
            f"{' and no '.join(lacking) or 'head apart from its body'}; take one of the Qwen2, "
            "Llama or Mistral families"
        )


def lora_target_modules(model: Any, wanted: Sequence[str]) -> list[str] | str:
    """Return the LoRA target modules: the Llama family's, else all linear layers."""
    names = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    return list(wanted) if names >= set(wanted) else "all-linear"
