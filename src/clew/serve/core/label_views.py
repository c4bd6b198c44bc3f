"""Copies of a knowledge base without the documents that a reader may not see.

A graph element merges what many documents say: its description, its aliases, its neighbours. So
hidden documents are not filtered from results but removed, with everything that only they
support, from a copy that is derived again. What is read there cannot come from them.
"""

import asyncio
import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

from clew.engine import KnowledgeBase
from clew.errors import ClewError, Locked, StoreError
from clew.index.derive import derive_arrays
from clew.ingest.build import TABLES_KEY
from clew.kb_address import KbLocation
from clew.labels import KINDS_OF_LABELS, REVISION_KEY, find_hidden, read_revision
from clew.llm.embed import Embedder
from clew.serve.core.folders import make_private
from clew.store.protocol import LATE_KINDS, PARTLY_EMBEDDED, Change, DocumentSource, Store
from clew.store.resolved_entities import RESOLUTION_KIND, SENSES_KIND
from clew.store.write_lock import WriterLock
from clew.stores.opening import is_folder_of_one
from clew.stores.partial import (
    copy_tables,
    forget_values,
    open_copy,
    read_documents,
    read_generation,
)
from clew.text.unicode import digest
from clew.tree.manage import TreeManager

_KEPT_KINDS = (RESOLUTION_KIND, SENSES_KIND)
_KEPT_MANIFEST = ("embedder", "dim", TABLES_KEY, PARTLY_EMBEDDED, *LATE_KINDS)
_PATIENCE = 600.0  # seconds to wait for another process that makes the same copy
_COPY_VERSION = "2"
_LOCK_FILE = "views.lock"
_UNFINISHED = ".new"  # ends the name of a copy that is being made and still holds everything


class Outdated(ClewError):  # noqa: N818  (reads as what happened)
    """A document or a label changed while it was looked at; look again."""


@dataclass(frozen=True)
class VisibleDocuments:
    """Which names of one generation a reader may see."""

    generation: int
    revision: str
    hidden: tuple[str, ...]
    content: str = ""
    """Digest of all documents: a workspace made anew may have the same generation."""

    @property
    def id(self) -> str:
        """Names the copy: the same hidden names of the same generation share one."""
        found = digest(_COPY_VERSION, str(self.generation), self.content, *self.hidden)[:24]
        return f"{self.generation}-{found}"


async def find_visible(base: KnowledgeBase, granted: Collection[str]) -> VisibleDocuments:
    """Return what a reader with these labels may see of the newest generation."""
    if lost := await base.store.find_losses(KINDS_OF_LABELS):
        raise StoreError(f"of some document it is unknown who may see it: {lost[0]}")
    revision = await read_revision(base.store)
    async with base.store.snapshot() as now:
        generation = now.generation
    if not revision:  # no document was ever labelled
        return VisibleDocuments(generation, revision, ())
    sources = await base.store.sources()
    hidden = await find_hidden(base.store, list(sources), granted)
    return VisibleDocuments(generation, revision, tuple(hidden), _digest_sources(sources))


def _digest_sources(sources: Mapping[str, DocumentSource]) -> str:
    return digest(*(part for name in sorted(sources) for part in (name, *astuple(sources[name]))))


async def make_view(base: KnowledgeBase, visible: VisibleDocuments, parent: Path) -> Path:
    """Return the folder of the copy without the hidden documents; make it if there is none.

    Raises `Outdated` if the knowledge base is no longer the one in which they were found.
    """
    folder = parent / visible.id
    if is_folder_of_one(folder):
        return folder
    await asyncio.to_thread(make_private, parent)
    async with WriterLock(parent / _LOCK_FILE, _PATIENCE):
        if not is_folder_of_one(folder):
            temporary = parent / f"{visible.id}{_UNFINISHED}"
            await asyncio.to_thread(_remove_unfinished, parent)
            await asyncio.to_thread(make_private, temporary)
            try:
                await _fill(base, visible, temporary)
                await asyncio.to_thread(temporary.rename, folder)
            finally:  # not in a thread: a cancelled request would not wait for it
                shutil.rmtree(temporary, ignore_errors=True)
    return folder


def remove_abandoned(views: Path) -> None:
    """Remove unfinished copies of all workspaces, unless another process is making one."""
    for parent in views.glob("*/"):
        try:
            with WriterLock(parent / _LOCK_FILE, 0):
                _remove_unfinished(parent)
        except Locked:
            continue


async def remove_earlier_views(parent: Path, generation: int, patience: float = _PATIENCE) -> None:
    """Remove all copies of earlier generations, also one that is being made or in use."""
    if not await asyncio.to_thread(parent.exists):
        return
    async with WriterLock(parent / _LOCK_FILE, patience):
        await asyncio.to_thread(_remove_earlier, parent, generation)


def list_copies(parent: Path, kb: KbLocation) -> tuple[int, frozenset[Path]]:
    """Return the generation of a knowledge base, and its finished copies of earlier ones."""
    found = [path for path in parent.glob("*-*/") if is_folder_of_one(path)]
    if not found:
        return 0, frozenset()
    newest = read_generation(kb)
    generation = sys.maxsize if newest is None else newest
    return generation, frozenset(path for path in found if _number(path) < generation)


def hold_removed_texts(copies: Collection[Path], kb: KbLocation) -> bool:
    """Whether a copy holds a document that the knowledge base has no more."""
    held = read_documents(kb)
    return any(not read_documents(path) <= held for path in copies)


def _number(copy: Path) -> int:
    """The generation of which a copy was made; that of anything else is before all."""
    made = copy.name.partition("-")[0]
    return int(made) if made.isdecimal() else -1


def _remove_earlier(parent: Path, generation: int) -> None:
    _remove_unfinished(parent)
    for path in parent.glob("*/"):
        if _number(path) < generation:
            shutil.rmtree(path, ignore_errors=True)


def _remove_unfinished(parent: Path) -> None:
    """Remove what is left of copies whose making failed; the lock must be held."""
    for path in parent.glob(f"*{_UNFINISHED}"):
        shutil.rmtree(path, ignore_errors=True)


def remove_old_views(parent: Path, keep: int, used: Collection[KbLocation]) -> None:
    """Remove all but the newest copies; one that is in use stays."""
    found = [path for path in parent.iterdir() if path.is_dir() and path.suffix != _UNFINISHED]
    found.sort(key=_time_made, reverse=True)
    for path in found[keep:]:
        if path not in used:
            shutil.rmtree(path, ignore_errors=True)


def _time_made(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process has just removed it
        return 0.0


async def _fill(base: KnowledgeBase, visible: VisibleDocuments, folder: Path) -> None:
    copied = await copy_tables(base.store, folder, REVISION_KEY)
    state = (copied.generation, copied.value, _digest_sources(copied.sources))
    if state != (visible.generation, visible.revision, visible.content):
        raise Outdated
    # Replies, summaries and locations may repeat hidden documents.
    await asyncio.to_thread(forget_values, folder, _KEPT_KINDS, _KEPT_MANIFEST)
    await asyncio.to_thread(_link_vectors, base.settings.folder, folder)
    store = await asyncio.to_thread(open_copy, folder, _PATIENCE)
    try:
        await store.accept_losses()  # sums of its own: most stored values stay behind
        await _remove_hidden(store, visible.hidden)
        await _build_trees(store, await TreeManager(base.store).tree_names(), base.embed)
    finally:
        await store.close()


async def _remove_hidden(store: Store, hidden: Collection[str]) -> None:
    # `rebuild`: nothing of the arrays that were derived from all documents is taken over.
    known = await store.sources()
    present = [name for name in hidden if name in known]
    await store.write(Change(remove=present, bulk=(), rebuild=True), derive_arrays)


async def _build_trees(store: Store, trees: list[str], embed: Embedder | None) -> None:
    """Build the trees again over what is visible, with quoted summaries: no model is called."""
    if trees and (await store.counts()).chunks:
        await TreeManager(store, embed).build(trees)


def _link_vectors(source: Path, folder: Path) -> None:
    """Share the vectors, which are found by the hash of a text; summaries get their own."""
    for place in (source / "vectors").glob("*/"):
        (folder / "vectors" / place.name).mkdir(parents=True)
        for file in place.iterdir():
            if not file.name.startswith("community."):
                (folder / "vectors" / place.name / file.name).symlink_to(file.resolve())
    if (source / "encoder").exists():
        (folder / "encoder").symlink_to((source / "encoder").resolve())
