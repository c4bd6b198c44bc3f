"""Labels of documents (`team=legal`), and which of them a reader may see.

A document name is visible if for each label name on it the reader holds one of its values; a
name without labels is visible to everybody. Labels are stored before their document, so that
it is never visible without them, and they stay when it is removed. Until a document is written
again with other labels, its earlier ones are needed too: the text may still be the earlier one.
Every row has a copy beside it, written at once with it: a row that was lost hides everything.
"""

import json
import re
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from clew.errors import ConfigError, StoreError
from clew.store.protocol import KeyValueStore, Store
from clew.text.unicode import digest
from clew.types import Document

T = TypeVar("T")
LABELS_KIND = "label"
_EARLIER_KIND = "earlier-labels"  # by name: sets of labels that are needed as well
KINDS_OF_LABELS = (LABELS_KIND, _EARLIER_KIND, "manifest")
"""Kinds of stored values that say who may see what."""
LOST_LABEL = "lost=unknown"
"""What hides a document whose labels may have been lost, until it is labelled again."""
REVISION_KEY = "labels"  # manifest key: changes whenever a label does
_LABEL = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}=[\w.@:/+-]{1,64}", re.IGNORECASE)
_BATCH = 64  # documents whose labels are stored in one write
_COPY_MARK = "\x1f"  # begins the key of a copy; no document name has it
_DAMAGED = (
    "the labels of a document are damaged, so that it is unknown who may see it; `clew verify` "
    "says where, `clew restore FILE` restores a backup"
)


def check_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the labels sorted and without repeats; raise for one that is not `name=value`."""
    found = sorted(set(labels))
    for label in found:
        if not _LABEL.fullmatch(label):
            raise ConfigError(f"{label!r} is not a label; write name=value, such as team=legal")
    return tuple(found)


def is_visible(labels: Collection[str], granted: Collection[str]) -> bool:
    """Whether a reader with the granted labels may see what carries these labels."""
    values: dict[str, set[str]] = defaultdict(set)
    for label in labels:
        values[label.partition("=")[0]].add(label)
    return all(not some.isdisjoint(granted) for some in values.values())


def _copy_key(key: str) -> str:
    return _COPY_MARK + digest(key)


async def _get_sound(store: KeyValueStore, kind: str, keys: Sequence[str]) -> dict[str, str]:
    """Return stored values; raise if one differs from its copy, or is lost."""
    held = await store.get(kind, [*keys, *map(_copy_key, keys)])
    for key in keys:
        if held.get(_copy_key(key), held.get(key)) != held.get(key):
            raise StoreError(_DAMAGED)
    return {key: held[key] for key in keys if key in held}


async def _set_with_copies(store: KeyValueStore, kind: str, items: Mapping[str, str]) -> None:
    await store.set(kind, {**items, **{_copy_key(key): text for key, text in items.items()}})


async def read_labels(store: KeyValueStore, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the labels of those documents that have any, by name."""
    stored = await _get_sound(store, LABELS_KIND, names)
    found = {name: tuple(json.loads(text)) for name, text in stored.items()}
    return {name: labels for name, labels in found.items() if labels}


async def find_hidden(
    store: KeyValueStore, names: Sequence[str], granted: Collection[str]
) -> list[str]:
    """Return those names, sorted, that a reader with the granted labels may not see."""
    labels = await read_labels(store, names)
    earlier = await _read_earlier(store, names)
    return sorted(
        name
        for name in names
        if not all(
            is_visible(some, granted) for some in (labels.get(name, ()), *earlier.get(name, ()))
        )
    )


async def _read_earlier(
    store: KeyValueStore, names: Sequence[str]
) -> dict[str, list[tuple[str, ...]]]:
    stored = await _get_sound(store, _EARLIER_KIND, names)
    found = {name: [tuple(some) for some in json.loads(text)] for name, text in stored.items()}
    return {name: sets for name, sets in found.items() if sets}


async def hide_after_loss(store: Store) -> list[str]:
    """Hide, until they are labelled again, the documents whose labels may have been lost.

    Labels are taken from their copies where these are left. Which other documents had some is
    unknown: all without are hidden. Returns their names.
    """
    if not await store.find_losses(KINDS_OF_LABELS):
        return []
    names = sorted(await store.sources())
    hidden: list[str] = []
    for kind, value in ((LABELS_KIND, [LOST_LABEL]), (_EARLIER_KIND, [[LOST_LABEL]])):
        suspects = names if await store.find_losses([kind]) else ()
        hidden += await _replace_lost(store, kind, json.dumps(value), names, suspects)
    await _renew_revision(store)
    return sorted(set(hidden))


async def _replace_lost(
    store: KeyValueStore, kind: str, value: str, names: Sequence[str], suspects: Collection[str]
) -> list[str]:
    """Store `value` for the names whose value is not left, or unknown; return these names."""
    held = await store.get(kind, [*names, *map(_copy_key, names)])
    known, lost = {}, []
    for name in names:
        left = {held[key] for key in (name, _copy_key(name)) if key in held}
        if len(left) == 1:
            known[name] = left.pop()
        elif left or name in suspects:
            lost.append(name)
    await _set_with_copies(store, kind, {**known, **dict.fromkeys(lost, value)})
    return lost


async def read_revision(store: KeyValueStore) -> str:
    """Return a value that changes whenever a label does."""
    return (await _get_sound(store, "manifest", [REVISION_KEY])).get(REVISION_KEY, "")


async def _renew_revision(store: KeyValueStore) -> None:
    # Not a counter: adding to a number may be put off while another process writes.
    await _set_with_copies(store, "manifest", {REVISION_KEY: secrets.token_hex(8)})


async def save_labels(store: KeyValueStore, labels: Mapping[str, Collection[str]]) -> None:
    """Set the labels of documents by name, whether or not the documents exist yet."""
    await _store_labels(store, labels)
    await _settle(store, list(labels))


async def _store_labels(store: KeyValueStore, labels: Mapping[str, Collection[str]]) -> None:
    checked = {name: json.dumps(check_labels(some)) for name, some in labels.items()}
    stored = await _get_sound(store, LABELS_KIND, list(checked))
    changed = {name: text for name, text in checked.items() if stored.get(name, "[]") != text}
    if changed:
        # Before as well: labels without a revision would count as no labels, should this be killed.
        await _renew_revision(store)
        await _set_with_copies(store, LABELS_KIND, changed)
        await _renew_revision(store)


async def _settle(store: KeyValueStore, names: Sequence[str]) -> None:
    """Forget the earlier labels of documents."""
    earlier = await _read_earlier(store, names)
    if earlier:
        await _set_with_copies(store, _EARLIER_KIND, dict.fromkeys(earlier, "[]"))
        await _renew_revision(store)


class DocumentLabeller:
    """Labels documents on their way into a store."""

    def __init__(self, store: KeyValueStore) -> None:
        self._store = store
        self._changing: set[str] = set()

    async def attach(self, documents: AsyncIterator[T], labels: Sequence[str]) -> AsyncIterator[T]:
        """Pass documents on, each after its labels are stored; without labels nothing changes."""
        if not labels:
            async for item in documents:
                yield item
            return
        waiting: list[T] = []
        async for item in documents:
            waiting.append(item)
            if len(waiting) >= _BATCH:
                await self._save(waiting, labels)
                for one in waiting:
                    yield one
                waiting = []
        await self._save(waiting, labels)
        for one in waiting:
            yield one

    async def settle(self) -> None:
        """Say that the documents are written: their earlier labels are not needed any more."""
        await _settle(self._store, sorted(self._changing))
        self._changing.clear()

    async def _save(self, items: Sequence[object], labels: Sequence[str]) -> None:
        names = [name for item in items if isinstance(item, Document) for name in item.names]
        held = await read_labels(self._store, names)
        earlier = await _read_earlier(self._store, names)
        kept = {
            name: sorted({*earlier.get(name, ()), held[name]})
            for name in names
            if name in held and set(held[name]) != set(labels)
        }
        self._changing.update(kept, earlier)
        if kept:
            texts = {name: json.dumps(sets) for name, sets in kept.items()}
            await _set_with_copies(self._store, _EARLIER_KIND, texts)
        await _store_labels(self._store, dict.fromkeys(names, labels))
