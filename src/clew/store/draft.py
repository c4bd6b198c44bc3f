"""Rows of a write that do not depend on the database, prepared while documents still arrive."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from clew.store import sqlite_rows as rows
from clew.store.merge import (
    Mention,
    Said,
    embedded_text,
    forms_of,
    label_code,
    mentions_of,
    name_hash,
    sayings_of,
)
from clew.store.protocol import Addition
from clew.store.text_index import note_words
from clew.types import LITERALS, Extraction


class Drafted(NamedTuple):
    """One extraction as mentions and row cells without keys."""

    mentions: dict[str, Mention]
    mention_cells: list[rows.Row]
    sayings: Said
    saying_cells: list[rows.Row]


def drafted(extraction: Extraction) -> Drafted:
    """Convert an extraction to mentions and row cells."""
    mentions, sayings = mentions_of(extraction), sayings_of(extraction)
    return Drafted(
        mentions,
        [rows.mention_cells(mention) for mention in mentions.values()],
        sayings,
        [rows.saying_cells(saying) for _, saying in sayings.values()],
    )


@dataclass(eq=False)
class Draft:
    """Additions in order, each prepared on arrival."""

    additions: list[Addition] = field(default_factory=list)
    _made: dict[int, Drafted] = field(default_factory=dict)
    """By the extraction's `id()`, which is stable because `additions` keeps the object alive."""

    def take(self, addition: Addition) -> None:
        """Add one, keeping its prepared rows in place of its extractions."""
        stubs = tuple([Extraction(failed=one.failed) for one in addition.extractions])
        self.additions.append(replace(addition, extractions=stubs))
        for extraction, stub in zip(addition.extractions, stubs, strict=True):
            prepared = drafted(extraction)
            # Spans are already in the row cells, and merging does not need them.
            bare = {key: mention._replace(spans=()) for key, mention in prepared.mentions.items()}
            self._made[id(stub)] = prepared._replace(mentions=bare)
            for mention in prepared.mentions.values():
                # Fills the LRU caches of these functions.
                if mention.type not in LITERALS:
                    forms_of(mention.surface, mention.aliases)
                name_hash(mention.surface)
            for _, saying in prepared.sayings.values():
                label_code(saying.relation)
        for chunk in addition.chunks:
            note_words(embedded_text(chunk))

    def __call__(self, extraction: Extraction) -> Drafted:
        """Return the prepared extraction, preparing it now if necessary."""
        return self._made.get(id(extraction)) or drafted(extraction)
