"""Graphs that a search derives from a generation, kept beside its arrays for the next process.

They lie in `arrays/<generation>.kept/`, which the next write removes: what is derived of another
generation is never read. Where nothing can be written, every process makes its own.
"""

import re
from contextlib import suppress
from pathlib import Path

from clew.errors import DamagedArrays
from clew.store.array_files import MappedArrays, save_arrays
from clew.store.protocol import Array, Arrays

_SEAL_SUFFIX = ".seal"
_OTHER_SIGNS = re.compile(r"[^A-Za-z0-9.]+")


def load_kept(arrays: Arrays, name: str) -> Arrays | None:
    """Arrays that were kept under a name for this generation; None if there are none."""
    folder = _find_folder(arrays, name)
    if folder is None:
        return None
    with suppress(OSError, DamagedArrays, ValueError):
        seal = folder.with_name(folder.name + _SEAL_SUFFIX).read_text(encoding="ascii")
        kept = MappedArrays(folder, seal)
        return {part: kept[part] for part in kept}
    return None


def keep(arrays: Arrays, name: str, kept: dict[str, Array]) -> None:
    """Keep arrays under a name for as long as this generation is the last one."""
    folder = _find_folder(arrays, name)
    if folder is None:
        return
    with suppress(OSError):  # a folder that is read-only, or gone with its generation
        seal = save_arrays(folder, kept, durable=False)
        written = folder.with_name(folder.name + ".new")
        written.write_text(seal, encoding="ascii")
        written.replace(folder.with_name(folder.name + _SEAL_SUFFIX))


def _find_folder(arrays: Arrays, name: str) -> Path | None:
    """Where arrays with this name are kept; None for a generation that is in no folder."""
    if not isinstance(arrays, MappedArrays) or not arrays.folder.is_dir():
        return None
    own = arrays.folder
    return own.with_name(f"{own.name}.kept") / _OTHER_SIGNS.sub("-", name)
