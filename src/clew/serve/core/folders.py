"""Where the workspaces of a server and its own files are."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from clew.errors import ClewError
from clew.kb_address import DatabaseAddress, KbLocation
from clew.stores.opening import is_folder_of_one

DEFAULT_WORKSPACE = "default"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_STATE_FOLDER = ".server"


def keep_to_owner() -> None:
    """Let nobody else read what this process, or one that it starts, creates from now on."""
    os.umask(0o077)


def make_private(folder: Path) -> None:
    """Make a folder and the missing ones above it for their owner alone."""
    for missing in reversed([folder, *folder.parents]):
        if not missing.exists():
            missing.mkdir(mode=0o700, exist_ok=True)


class UnknownWorkspace(ClewError):  # noqa: N818  (reads as what happened)
    """There is no workspace of this name, or its name is not one."""


def is_workspace_name(name: str) -> bool:
    """Whether a workspace may have this name."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True)
class Folders:
    """Where workspaces and the server's own files are."""

    root: Path
    single: bool = False
    """The root is itself the knowledge base, served as the workspace `default`."""
    database: DatabaseAddress | None = None
    """If given, that knowledge base is the workspace; the root holds the server's own files."""

    @property
    def state(self) -> Path:
        """Keys, jobs, uploads and label views."""
        return self.root / _STATE_FOLDER

    def workspace(self, name: str) -> Path:
        """The folder of a workspace; its name is checked, as it is a part of a path."""
        if not is_workspace_name(name):
            raise UnknownWorkspace(name)
        if self.single:
            if name != DEFAULT_WORKSPACE:
                raise UnknownWorkspace(name)
            return self.root
        return self.root / name

    def location(self, name: str) -> KbLocation:
        """Where the knowledge base of a workspace is."""
        return self.workspace(name) if self.database is None else self.database

    def exists(self, name: str) -> bool:
        """Whether a workspace of this name exists."""
        return self.database is not None or is_folder_of_one(self.workspace(name))

    def names(self) -> list[str]:
        """The workspaces, sorted."""
        if self.single:
            return [DEFAULT_WORKSPACE]
        found = self.root.iterdir() if self.root.exists() else ()
        return sorted(p.name for p in found if _NAME.fullmatch(p.name) and self.exists(p.name))
