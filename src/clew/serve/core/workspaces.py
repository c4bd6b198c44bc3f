"""Workspaces: several knowledge bases under one root, a bounded number of them open at once.

All methods that use a knowledge base run on the engine's loop, so nothing here needs a lock.
"""

import asyncio
import errno
import secrets
import shutil
import sqlite3
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import ClewError, Locked
from clew.kb_address import KbLocation
from clew.labels import read_revision
from clew.serve.core.folders import Folders
from clew.serve.core.label_views import (
    Outdated,
    VisibleDocuments,
    find_visible,
    hold_removed_texts,
    list_copies,
    make_view,
    remove_earlier_views,
    remove_old_views,
)
from clew.serve.core.problems import Problem
from clew.serve.core.shared_limit import share_model_calls
from clew.stores.opening import is_folder_of_one

_LOOK_SECONDS = 2.0  # between two looks for removals in a database
OpenKb = Callable[[Settings, bool], Awaitable[KnowledgeBase]]
"""Opens the knowledge base of the settings; the flag allows to create it."""


async def open_knowledge_base(settings: Settings, create: bool) -> KnowledgeBase:
    """Open a knowledge base as the command line does."""
    return await KnowledgeBase.open(settings, create=create)


@dataclass
class _OpenBase:
    base: KnowledgeBase
    users: int = 0
    visible: dict[frozenset[str], VisibleDocuments] = field(default_factory=dict)


@dataclass
class WatchedBase:
    """A knowledge base as a reader may see it, and whether that still held while it was read.

    A copy never changes. The whole base does: a document that is hidden from the reader may be
    written after it was found that there is none.
    """

    base: KnowledgeBase
    _visible: VisibleDocuments | None = None
    _look: Callable[[], Awaitable[VisibleDocuments]] | None = None

    async def confirm(self) -> None:
        """Raise `Outdated` if a generation since the start may have held a hidden document."""
        if self._visible is None or self._look is None:
            return
        now = await self._look()
        # Of several new generations, one that is gone already may have held one. Labels are
        # stored before their documents: without a revision there has never been any.
        skipped = now.generation not in (self._visible.generation, self._visible.generation + 1)
        if now.hidden or (now.revision and skipped):
            raise Outdated
        self._visible = now


class WorkspacePool:
    """Opens knowledge bases on demand; the one used longest ago is closed when too many are."""

    def __init__(
        self, settings: Settings, folders: Folders, open_kb: OpenKb = open_knowledge_base
    ) -> None:
        self.folders = folders
        self._settings = settings
        self._open_kb = open_kb
        self._open: OrderedDict[KbLocation, _OpenBase] = OrderedDict()
        self._opening: dict[KbLocation, asyncio.Lock] = {}
        self._seen_copies: dict[Path, tuple[int, frozenset[Path]]] = {}
        """Generation and copies of earlier ones without a removed document, by folder."""
        self._next_look = 0.0
        self._limit = share_model_calls(folders, settings.serve.model_calls)

    @property
    def open_count(self) -> int:
        """How many knowledge bases are open."""
        return len(self._open)

    @asynccontextmanager
    async def use(
        self, name: str, labels: frozenset[str] | None = None, *, apart: bool = False
    ) -> AsyncIterator[KnowledgeBase]:
        """Open a workspace, restricted to what a reader with these labels may see.

        Raises `Outdated` at the end if what was read may have been hidden: read it again.
        """
        async with self.watch(name, labels, apart=apart) as seen:
            try:
                yield seen.base
            except Exception:  # its message may quote what was read
                await seen.confirm()
                raise
            await seen.confirm()

    @asynccontextmanager
    async def watch(
        self, name: str, labels: frozenset[str] | None = None, *, apart: bool = False
    ) -> AsyncIterator[WatchedBase]:
        """The same for a reader who sends parts, and confirms each before it is sent.

        With `apart`, a copy is read also where nothing is hidden, if anything was ever labelled.
        """
        async with self._use_location(self.folders.location(name)) as whole:
            if labels is None:
                yield WatchedBase(whole.base)
                return
            visible = await self._find_visible(whole, labels)
            if not visible.hidden and not (apart and visible.revision):
                look = partial(self._find_visible, whole, labels)
                yield WatchedBase(whole.base, visible, look)
                return
            parent = self.folders.state / "views" / name
            view = await make_view(whole.base, visible, parent)
            if view not in self._open:
                most = self._settings.serve.label_views
                used: set[KbLocation] = {view, *self._open}
                await asyncio.to_thread(remove_old_views, parent, most, used)
                await self._close_removed()
            try:
                async with self._use_location(view) as restricted:
                    yield WatchedBase(restricted.base)
            except (ClewError, OSError, sqlite3.Error) as error:
                if is_folder_of_one(view):
                    raise
                self._forget(view)  # removed while it was opened or read: another is made
                raise Outdated from error

    async def create(self, name: str) -> bool:
        """Make an empty workspace, whole or not at all; return False if there is one."""
        folder = self.folders.workspace(name)
        if self.folders.exists(name):
            return False
        temporary = self.folders.state / "new" / secrets.token_hex(8)
        try:
            base = await self._open_location(temporary, create=True)
            await base.close()
            await asyncio.to_thread(temporary.rename, folder)
        except OSError as error:
            if self.folders.exists(name):  # somebody else has just made it
                return False
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise Problem(409, "there is a folder of this name that is no workspace") from error
        finally:
            await asyncio.to_thread(shutil.rmtree, temporary, ignore_errors=True)
        return True

    async def remove_earlier_copies(self, name: str) -> None:
        """Remove the copies of earlier states of a workspace at once, as after a removal."""
        parent = self.folders.state / "views" / name
        async with self._use_location(self.folders.location(name)) as whole:
            async with whole.base.store.snapshot() as now:
                generation = now.generation
            await remove_earlier_views(parent, generation)
        await self._close_removed()

    async def remove_outdated_copies(self) -> None:
        """Remove copies with documents that were removed beside this server."""
        if self.folders.database is not None:  # a server that is asked not too often
            if monotonic() < self._next_look:
                return
            self._next_look = monotonic() + _LOOK_SECONDS
        views = self.folders.state / "views"
        for parent in await asyncio.to_thread(lambda: list(views.glob("*/"))):
            kb = self.folders.location(parent.name)
            found = await asyncio.to_thread(list_copies, parent, kb)
            generation, copies = found
            if not copies or self._seen_copies.get(parent) == found:
                continue
            if await asyncio.to_thread(hold_removed_texts, copies, kb):
                with suppress(Locked):  # one is being made: next time
                    await remove_earlier_views(parent, generation, 0.0)
            else:
                self._seen_copies[parent] = found
        await self._close_removed()

    async def _close_removed(self) -> None:
        """Close copies that are gone, so that their files are too; one in use is closed after."""
        views = self.folders.state / "views"
        for folder in list(self._open):
            if isinstance(folder, Path) and folder.is_relative_to(views):
                if await asyncio.to_thread(is_folder_of_one, folder):
                    continue
                held = self._open.get(folder)
                self._forget(folder)
                if held is not None and not held.users:
                    await held.base.close()

    async def close(self) -> None:
        """Close everything."""
        for one in self._open.values():
            await one.base.close()
        self._open.clear()

    async def _find_visible(self, whole: _OpenBase, labels: frozenset[str]) -> VisibleDocuments:
        """Return what is visible; computed again when a document or a label has changed."""
        known = whole.visible.get(labels)
        if known is not None and await _is_current(whole.base, known):
            return known
        found = await find_visible(whole.base, labels)
        if not await _is_current(whole.base, found):  # its parts may be of different moments
            raise Outdated
        whole.visible = {k: v for k, v in whole.visible.items() if v.generation == found.generation}
        whole.visible[labels] = found
        return found

    @asynccontextmanager
    async def _use_location(self, folder: KbLocation) -> AsyncIterator[_OpenBase]:
        async with self._opening.setdefault(folder, asyncio.Lock()):
            held = self._open.get(folder)
            if held is None:
                await self._make_room()
                held = _OpenBase(await self._open_location(folder))
                self._open[folder] = held
            held.users += 1
        self._open.move_to_end(folder)
        try:
            yield held
        finally:
            held.users -= 1
            if not held.users and self._open.get(folder) is not held:  # forgotten meanwhile
                await held.base.close()

    def _forget(self, folder: KbLocation) -> None:
        """Open this folder anew next time; whoever still uses it closes it."""
        self._open.pop(folder, None)
        self._opening.pop(folder, None)

    async def _open_location(self, folder: KbLocation, *, create: bool = False) -> KnowledgeBase:
        settings = self._settings.model_copy(update={"kb": folder})
        base = await self._open_kb(settings, create)
        base.models.limit = self._limit
        await base.store.follow()
        return base

    async def _make_room(self) -> None:
        """Close idle knowledge bases until one more may be opened."""
        for folder in [path for path, one in self._open.items() if not one.users]:
            if len(self._open) < self._settings.serve.open_workspaces:
                return
            await self._open.pop(folder).base.close()
            self._opening.pop(folder, None)
        if len(self._open) >= self._settings.serve.open_workspaces:
            raise Problem(
                429, "all workspaces that may be open are in use; try again", retry_after=1
            )


async def _is_current(base: KnowledgeBase, known: VisibleDocuments) -> bool:
    if await read_revision(base.store) != known.revision:
        return False
    async with base.store.snapshot() as now:
        return now.generation == known.generation
