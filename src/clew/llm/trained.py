"""Folders that `clew train` wrote: whether one holds a model, and how that was trained to talk."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from clew.errors import ConfigError

FILE = "clew.json"
R1 = "none"
"""The recipe that trains without a knowledge base."""
CONFIGS = ("adapter_config.json", "config.json")
"""One of them stands beside weights."""
_WEIGHTS = ("*.safetensors", "*.bin")


@dataclass(frozen=True)
class Trained:
    """How episodes went in training: the served agent has to go about it the same way."""

    recipe: str = ""
    turns: int = 5
    brief: bool = False
    step_tokens: int = 256
    k: int | None = None
    characters: int | None = None
    """Of knowledge a query; None is the agent's own number, and so is a `k` of None."""

    def write(self, folder: Path) -> None:
        """Put it beside the weights."""
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")


def model_folder(named: Path) -> Path | None:
    """Where the weights lie in a run's folder, or in a model's; None where there are none yet."""
    for folder in (named / "model", named):
        has_config = any((folder / name).is_file() for name in CONFIGS)
        if has_config and any(any(folder.glob(kind)) for kind in _WEIGHTS):
            return folder
    return None


def folder_named(name: str) -> Path | None:
    """The folder `--model` names; None where it names a model of an endpoint."""
    path = Path(name).expanduser()
    if path.is_dir() and model_folder(path) is not None:
        return path
    if path.is_dir():
        raise ConfigError(
            f"{name} holds no finished model; `clew train` writes one at its end: run it again "
            "to finish, or name another folder"
        )
    if _like_a_path(name):
        raise ConfigError(
            f"there is no folder {name}, so it holds no finished model; name the --out folder of "
            "`clew train`, or a model as its endpoint calls it"
        )
    return None


def _like_a_path(name: str) -> bool:
    """Endpoints have names with slashes too (OWNER/MODEL): those begin with no folder of here."""
    if name.startswith((".", "~", "/")) or name.endswith("/") or "\\" in name:
        return True
    first, slash, _ = name.partition("/")
    return bool(slash) and Path(first).is_dir()


def trained_as(named: Path) -> Trained | None:
    """How the model in this folder was trained; None where nothing says so."""
    folder = model_folder(named)
    file = folder / FILE if folder is not None else None
    if file is None or not file.is_file():
        return None
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
        return Trained(**{one.name: held[one.name] for one in fields(Trained) if one.name in held})
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{file} cannot be read ({error}); mend it or delete it") from error
