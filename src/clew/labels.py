"""Labels of documents (`team=legal`), and which of them a reader may see.

A document name is visible if for each label name on it the reader holds one of its values; a
name without labels is visible to everybody. Labels are stored before their document, so that
it is never visible without them, and they stay when it is removed.
"""

import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from clew.errors import ConfigError
from clew.store.protocol import KeyValueStore
from clew.types import Document

T = TypeVar("T")
LABELS_KIND = "label"
_REVISION_KEY = "labels"  # manifest key: changes whenever a label does
_LABEL = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}=[\w.@:/+-]{1,64}", re.IGNORECASE)
_BATCH = 64  # documents whose labels are stored in one write


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


async def read_labels(store: KeyValueStore, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the labels of those documents that have any, by name."""
    stored = await store.get(LABELS_KIND, names)
    found = {name: tuple(json.loads(text)) for name, text in stored.items()}
    return {name: labels for name, labels in found.items() if labels}


async def read_revision(store: KeyValueStore) -> str:
    """Return a value that changes whenever a label does."""
    return (await store.get("manifest", [_REVISION_KEY])).get(_REVISION_KEY, "")


async def save_labels(store: KeyValueStore, labels: Mapping[str, Collection[str]]) -> None:
    """Set the labels of documents by name, whether or not the documents exist yet."""
    checked = {name: json.dumps(check_labels(some)) for name, some in labels.items()}
    stored = await store.get(LABELS_KIND, list(checked))
    changed = {name: text for name, text in checked.items() if stored.get(name, "[]") != text}
    if changed:
        await store.set(LABELS_KIND, changed)
        await store.increment("manifest", _REVISION_KEY, 1)


async def label_documents(
    store: KeyValueStore, documents: AsyncIterator[T], labels: Sequence[str]
) -> AsyncIterator[T]:
    """Pass documents on, each after its labels are stored; without labels nothing changes."""
    if not labels:
        async for item in documents:
            yield item
        return
    waiting: list[T] = []
    async for item in documents:
        waiting.append(item)
        if len(waiting) >= _BATCH:
            await _save_for(store, waiting, labels)
            for one in waiting:
                yield one
            waiting = []
    await _save_for(store, waiting, labels)
    for one in waiting:
        yield one


async def _save_for(store: KeyValueStore, items: Sequence[object], labels: Sequence[str]) -> None:
    names = [name for item in items if isinstance(item, Document) for name in item.names]
    await save_labels(store, dict.fromkeys(names, labels))
