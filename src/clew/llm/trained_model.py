"""Model folders written by `clew train`, and the episode settings stored with them."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from clew.errors import ConfigError

TRAINED_CONFIG_FILE = "clew.json"
NO_KB_RECIPE = "none"
"""Recipe name for training without a knowledge base."""
MODEL_CONFIG_FILES = ("adapter_config.json", "config.json")
"""One of these files lies next to the weights."""
_WEIGHT_PATTERNS = ("*.safetensors", "*.bin")


@dataclass(frozen=True)
class TrainedConfig:
    """Episode settings used in training; the served agent must use the same."""

    recipe: str = ""
    turns: int = 5
    brief: bool = False
    step_tokens: int = 256
    k: int | None = None
    characters: int | None = None
    """Characters of knowledge per query; None (also for `k`) is the agent's default."""
    show: str = ""
    """Form of the knowledge; empty for models trained before there was a choice."""

    def write(self, folder: Path) -> None:
        """Write the settings next to the weights."""
        (folder / TRAINED_CONFIG_FILE).write_text(
            json.dumps(asdict(self), indent=1), encoding="utf-8"
        )


def find_model_folder(path: Path) -> Path | None:
    """The folder with the weights in a run's or model's folder; None if there are none yet."""
    for folder in (path / "model", path):
        has_config = any((folder / name).is_file() for name in MODEL_CONFIG_FILES)
        if has_config and any(any(folder.glob(kind)) for kind in _WEIGHT_PATTERNS):
            return folder
    return None


def resolve_model_folder(name: str) -> Path | None:
    """The folder `--model` names; None if it names a model at an endpoint."""
    path = Path(name).expanduser()
    if path.is_dir() and find_model_folder(path) is not None:
        return path
    if path.is_dir():
        raise ConfigError(
            f"{name} contains no finished model; `clew train` writes it at the end: run it again "
            "to finish, or name another folder"
        )
    if _looks_like_path(name):
        raise ConfigError(
            f"there is no folder {name} with a finished model; name the --out folder of "
            "`clew train`, or a model by its name at the endpoint"
        )
    return None


def _looks_like_path(name: str) -> bool:
    """Whether a name looks like a path; OWNER/MODEL names do not start with an existing folder."""
    if name.startswith((".", "~", "/")) or name.endswith("/") or "\\" in name:
        return True
    first, slash, _ = name.partition("/")
    return bool(slash) and Path(first).is_dir()


def read_trained_config(path: Path) -> TrainedConfig | None:
    """Read the episode settings of the model in this folder; None if not stored."""
    folder = find_model_folder(path)
    file = folder / TRAINED_CONFIG_FILE if folder is not None else None
    if file is None or not file.is_file():
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return TrainedConfig(
            **{f.name: data[f.name] for f in fields(TrainedConfig) if f.name in data}
        )
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{file} cannot be read ({error}); correct it or delete it") from error
