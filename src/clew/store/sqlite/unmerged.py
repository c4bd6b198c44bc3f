"""Tell which entities a change leaves as they are, but for the number of their mentions.

An entity is merged from all its mentions: its name and type are the most frequent ones. A name that
a hundred thousand passages mention would be merged from as many rows for each passage that is
added. If the added mentions say what the entity says already, only their number changes.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from clew.store.sqlite.rows import Row

_SELECT_MENTIONS = (
    "SELECT entity, surface, type, description, aliases, attributes FROM mentions "
    "WHERE chunk IN (SELECT value FROM json_each(?))"
)
_SELECT_ENTITIES = (
    "SELECT key, name, type, description, aliases, attributes, support FROM entities "
    "WHERE key IN (SELECT value FROM json_each(?))"
)
_COUNT_TYPES = (
    "SELECT m.entity, total(m.type = e.type), total(m.type != '') FROM mentions m "
    "JOIN entities e ON e.key = m.entity "
    "WHERE m.entity IN (SELECT value FROM json_each(?)) GROUP BY m.entity"
)
_COUNT_SAME = "SELECT count(*) FROM (SELECT 1 FROM mentions WHERE entity = ? AND type = ? LIMIT ?)"
_SET_SUPPORT = (
    "UPDATE entities SET support = ?1, checksum = "
    "checksum(id, name, name_hash, type, description, aliases, attributes, ?1) WHERE key = ?2"
)


class _Said(NamedTuple):
    """What a mention says about its entity, or what the entity was merged to."""

    name: str
    type: str
    description: str
    aliases: str
    attributes: str


@dataclass
class ChangedMentions:
    """Mentions that a change adds or removes, by entity."""

    db: sqlite3.Connection
    _added: dict[int, Counter[_Said]] = field(default_factory=lambda: defaultdict(Counter))
    _removed: dict[int, Counter[_Said]] = field(default_factory=lambda: defaultdict(Counter))

    def note_removed(self, chunks: Iterable[int]) -> None:
        """Note the mentions in these chunks before they are deleted."""
        for entity, *cells in self.db.execute(_SELECT_MENTIONS, (json.dumps(list(chunks)),)):
            self._removed[entity][_Said(*cells)] += 1

    def note_added(self, rows: Iterable[Row], *, new: Container[int]) -> None:
        """Note inserted rows of `mentions`, but for those of new entities."""
        for entity, _, name, kind, description, _, _, _, aliases, attributes in rows:
            if entity not in new:
                said = _Said(name, kind, description, aliases, attributes)
                self._added[entity][said] += 1

    def update_supports(self, touched: Collection[int]) -> set[int]:
        """Count the mentions of entities that stay as they are; return those to be merged."""
        supports, types = dict[int, int](), dict[int, str]()
        for key, *cells, support in self.db.execute(
            _SELECT_ENTITIES, (json.dumps(sorted(touched)),)
        ):
            merged = _Said(*cells)
            if self._says_the_same(key, merged):
                supports[key] = support + self._added[key].total() - self._removed[key].total()
                types[key] = merged.type
        fewer = [key for key in supports if self._removed[key]]
        unsure = [key for key in fewer if not self._has_most(key, types[key], supports[key])]
        for key in self._find_doubtful(unsure):
            del supports[key]
        self.db.executemany(_SET_SUPPORT, ((count, key) for key, count in supports.items()))
        return set(touched) - supports.keys()

    def _says_the_same(self, key: int, merged: _Said) -> bool:
        """Whether no mention of this change decides anything but, perhaps, the type."""
        added, removed = self._added[key], self._removed[key]
        if not added and not removed:
            return False  # touched otherwise
        return all(_repeats(one, merged) for one in added) and all(
            # What is removed may have been the reason for a name or a description.
            not merged.aliases and one.name == merged.name and not one.description + one.attributes
            for one in removed
        )

    def _has_most(self, entity: int, kind: str, mentions: int) -> bool:
        """Whether more than half of all mentions have a type; no more of them are read."""
        wanted = mentions // 2 + 1
        [(found,)] = self.db.execute(_COUNT_SAME, (entity, kind, wanted))
        return bool(found == wanted)

    def _find_doubtful(self, keys: Collection[int]) -> list[int]:
        """Those that have no mention left, or no longer one type for more than half of them."""
        counted = self.db.execute(_COUNT_TYPES, (json.dumps(sorted(keys)),))
        sure = {key for key, same, typed in counted if 2 * same > typed}
        return [key for key in keys if key not in sure]


def _repeats(mention: _Said, merged: _Said) -> bool:
    """Whether an entity stays as it is with one more such mention."""
    return (
        mention.name == merged.name
        and mention.type in ("", merged.type)
        and mention.aliases in ("", merged.aliases)
        and not mention.attributes
        # Several descriptions are listed by how frequent they are.
        and (not mention.description or mention.description == merged.description)
        and "\n" not in mention.description
    )
