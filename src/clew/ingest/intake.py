"""What an add meets, told apart item by item; each costs the same however much there is."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from clew.ingest.readers.source import Ended, Skipped
from clew.store.protocol import Memory, Source
from clew.types import Document

GRAPHS = "graph"  # kind of memory: what was imported as a graph, by name
_TAKEN = "has the name of another document of this add; give every row an id of its own"


@dataclass
class Intake:
    """New, changed or unchanged; left out; or gone from the file that held it."""

    known: Mapping[str, Source]
    status: Callable[[Document], str]
    met: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)
    _named: dict[str, str] = field(default_factory=dict)  # documents of this add, by name
    _ended: set[str] = field(default_factory=set)

    def take(self, item: Document | Skipped | Ended) -> Document | None:
        """Note what comes next; given back is a document that has to be made."""
        if isinstance(item, Skipped):
            self.skipped.append(item)
        elif isinstance(item, Ended):
            self._ended.add(item.name)
        elif item.names:
            return self._sorted(item)
        else:
            shown = item.title or item.text[:40].strip()
            self.skipped.append(Skipped(shown, "has no name; give it one"))
        return None

    def _sorted(self, document: Document) -> Document | None:
        """The first that comes under a name has it: so it is the same one the next time."""
        fresh = False
        taken = []
        for name in document.names:
            held = self._named.get(name)
            if held is None:
                self._named[name] = document.id
                fresh = True
            elif held != document.id:
                taken.append(name)
        if taken:
            self.skipped.append(Skipped(taken[0], _TAKEN))
            own = tuple([name for name in document.names if name not in taken])
            if not own:
                return None
            document = replace(document, names=own)
        status = self.status(document) if fresh else "unchanged"
        self.met[status] += 1
        return None if status == "unchanged" else document

    async def gone(self, memory: Memory) -> list[str]:
        """Names of rows that their files, read to the end, no longer hold."""
        found = {name: self._ended.intersection(files_of(name)) for name in self._unmet()}
        # A graph's parts are named as rows are, but they are not what was read here.
        graphs = await memory.recall(GRAPHS, list(set().union(*found.values()))) if found else {}
        return [name for name, files in found.items() if not files & graphs.keys()]

    def _unmet(self) -> Iterator[str]:
        for name in self.known if self._ended else ():
            if name not in self._named and any(file in self._ended for file in files_of(name)):
                yield name


def files_of(name: str) -> Iterator[str]:
    """The files that a document of this name may be of: itself, or one it is a row of."""
    yield name
    at = name.find("#")
    while at >= 0:
        yield name[:at]
        at = name.find("#", at + 1)
