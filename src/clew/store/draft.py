"""Rows of a write that do not depend on the database, prepared while documents still arrive."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from clew.store import sqlite_rows as rows
from clew.store.merge import (
    FactMentions,
    Mention,
    embedded_text,
    group_fact_mentions,
    group_mentions,
    label_code,
    name_form_rows,
    name_hash,
)
from clew.store.protocol import Addition
from clew.store.text_index import precount_words
from clew.types import LITERAL_TYPES, Extraction


class PreparedExtraction(NamedTuple):
    """One extraction as mentions and row cells without keys."""

    mentions: dict[str, Mention]
    mention_cells: list[rows.Row]
    fact_mentions: FactMentions
    fact_mention_cells: list[rows.Row]


def prepare_extraction(extraction: Extraction) -> PreparedExtraction:
    """Convert an extraction to mentions and row cells."""
    mentions, sayings = group_mentions(extraction), group_fact_mentions(extraction)
    return PreparedExtraction(
        mentions,
        [rows.mention_to_cells(mention) for mention in mentions.values()],
        sayings,
        [rows.fact_mention_to_cells(saying) for _, saying in sayings.values()],
    )


@dataclass(eq=False)
class PreparedAdditions:
    """Additions in order, each prepared on arrival."""

    additions: list[Addition] = field(default_factory=list)
    _prepared: dict[int, PreparedExtraction] = field(default_factory=dict)
    """By the extraction's `id()`, which is stable because `additions` keeps the object alive."""

    def add(self, addition: Addition) -> None:
        """Add one, keeping its prepared rows in place of its extractions."""
        stubs = tuple([Extraction(failed=one.failed) for one in addition.extractions])
        self.additions.append(replace(addition, extractions=stubs))
        for extraction, stub in zip(addition.extractions, stubs, strict=True):
            prepared = prepare_extraction(extraction)
            # Spans are already in the row cells, and merging does not need them.
            bare = {key: mention._replace(spans=()) for key, mention in prepared.mentions.items()}
            self._prepared[id(stub)] = prepared._replace(mentions=bare)
            for mention in prepared.mentions.values():
                # Fills the LRU caches of these functions.
                if mention.type not in LITERAL_TYPES:
                    name_form_rows(mention.surface, mention.aliases)
                name_hash(mention.surface)
            for _, saying in prepared.fact_mentions.values():
                label_code(saying.relation)
        for chunk in addition.chunks:
            precount_words(embedded_text(chunk))

    def __call__(self, extraction: Extraction) -> PreparedExtraction:
        """Return the prepared extraction, preparing it now if necessary."""
        return self._prepared.get(id(extraction)) or prepare_extraction(extraction)
