"""Merges a trained LoRA adapter into its base model, for servers that need whole models."""

import json
import shutil
from pathlib import Path
from typing import Any

from clew.errors import ConfigError
from clew.llm.trained import TRAINED_CONFIG_FILE
from clew.train.policy import require_train_extra


def merge_adapter(run: Path, target: Path) -> dict[str, Any]:
    """Write base plus adapter as one model folder: summed in float32, saved in the base's dtype."""
    require_train_extra()
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = run / "model" if (run / "model").is_dir() else run
    config_file = folder / "adapter_config.json"
    if not config_file.is_file():
        raise ConfigError(
            f"{folder} holds no adapter: name the --out folder of a `clew train` run with a "
            "lora_rank (a run without one has the whole model there already)"
        )
    if target.exists() and not target.is_dir():
        raise ConfigError(f"{target} is a file; name a folder to be made")
    if target.is_dir() and any(target.iterdir()):
        raise ConfigError(f"{target} is not empty; name a folder to be made")
    base = str(json.loads(config_file.read_text("utf-8"))["base_model_name_or_path"])
    try:
        model = AutoModelForCausalLM.from_pretrained(base, dtype="auto")
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise ConfigError(f"the adapter's base {base} cannot be loaded: {first}") from error
    dtype = model.dtype
    merged = PeftModel.from_pretrained(model.to(torch.float32), str(folder)).merge_and_unload()
    merged.to(dtype).save_pretrained(str(target))
    AutoTokenizer.from_pretrained(str(folder)).save_pretrained(str(target))
    if (folder / TRAINED_CONFIG_FILE).is_file():
        shutil.copy(folder / TRAINED_CONFIG_FILE, target / TRAINED_CONFIG_FILE)
    return {"base": base, "dtype": str(dtype).removeprefix("torch."), "folder": str(target)}
