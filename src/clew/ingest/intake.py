"""Classifies the items of an add as new, changed, unchanged, skipped or removed; O(1) per item."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from clew.ingest.readers.source import FileEnd, Skipped
from clew.store.protocol import DocumentSource, KeyValueStore
from clew.types import Document

GRAPHS_KIND = "graph"  # kind of key-value entry: imported graphs, by name
_NAME_TAKEN = "has the name of another document of this add; give every row an id of its own"


@dataclass
class ItemClassifier:
    """Classifies read items: new, changed or unchanged; skipped; removed from their file."""

    known: Mapping[str, DocumentSource]
    status: Callable[[Document], str]
    status_counts: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)
    _ids_by_name: dict[str, str] = field(default_factory=dict)  # document ids of this add, by name
    _finished_files: set[str] = field(default_factory=set)

    def classify(self, item: Document | Skipped | FileEnd) -> Document | None:
        """Record an item; return the document if it has to be extracted, else None."""
        if isinstance(item, Skipped):
            self.skipped.append(item)
        elif isinstance(item, FileEnd):
            self._finished_files.add(item.name)
        elif item.names:
            return self._classify_document(item)
        else:
            shown = item.title or item.text[:40].strip()
            self.skipped.append(Skipped(shown, "has no name; give it one"))
        return None

    def _classify_document(self, document: Document) -> Document | None:
        """Classify a document; the first one under a name keeps it, so that reruns agree."""
        is_new = False
        taken = []
        for name in document.names:
            holder = self._ids_by_name.get(name)
            if holder is None:
                self._ids_by_name[name] = document.id
                is_new = True
            elif holder != document.id:
                taken.append(name)
        if taken:
            self.skipped.append(Skipped(taken[0], _NAME_TAKEN))
            free = tuple([name for name in document.names if name not in taken])
            if not free:
                return None
            document = replace(document, names=free)
        status = self.status(document) if is_new else "unchanged"
        self.status_counts[status] += 1
        return None if status == "unchanged" else document

    async def find_removed_rows(self, memory: KeyValueStore) -> list[str]:
        """Return the names of known rows that are no longer in their fully read files."""
        found = {
            name: self._finished_files.intersection(possible_files(name))
            for name in self._missing_names()
        }
        # Parts of an imported graph are named like rows, but were not read by this add.
        graphs = await memory.get(GRAPHS_KIND, list(set().union(*found.values()))) if found else {}
        return [name for name, files in found.items() if not files & graphs.keys()]

    def _missing_names(self) -> Iterator[str]:
        for name in self.known if self._finished_files else ():
            if name not in self._ids_by_name and any(
                file in self._finished_files for file in possible_files(name)
            ):
                yield name


def possible_files(name: str) -> Iterator[str]:
    """Yield the file names a document name may refer to: itself, or a file it is a row of."""
    yield name
    at = name.find("#")
    while at >= 0:
        yield name[:at]
        at = name.find("#", at + 1)
