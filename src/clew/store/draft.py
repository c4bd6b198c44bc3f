"""What a write needs that does not depend on what is there: worked out while more is on its way."""

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
    """One extraction as the tables take it: what it says, and its rows' cells without keys."""

    mentions: dict[str, Mention]
    mention_cells: list[rows.Row]
    sayings: Said
    saying_cells: list[rows.Row]


def drafted(extraction: Extraction) -> Drafted:
    """Work it out."""
    mentions, sayings = mentions_of(extraction), sayings_of(extraction)
    return Drafted(
        mentions,
        [rows.mention_cells(mention) for mention in mentions.values()],
        sayings,
        [rows.saying_cells(saying) for _, saying in sayings.values()],
    )


@dataclass(eq=False)
class Draft:
    """Additions in order, each worked out when it comes."""

    additions: list[Addition] = field(default_factory=list)
    _made: dict[int, Drafted] = field(default_factory=dict)
    """By the extraction's identity: the additions keep them alive."""

    def take(self, addition: Addition) -> None:
        """Take one in, and remember what writing it will ask for, in place of what was said."""
        rest = tuple([Extraction(failed=one.failed) for one in addition.extractions])
        self.additions.append(replace(addition, extractions=rest))
        for extraction, stub in zip(addition.extractions, rest, strict=True):
            made = drafted(extraction)
            # Where a name stands is in its row's cells by now, and merging does not ask for it.
            bare = {key: mention._replace(spans=()) for key, mention in made.mentions.items()}
            self._made[id(stub)] = made._replace(mentions=bare)
            for mention in made.mentions.values():
                # These remember by name what they gave, whoever asks again.
                if mention.type not in LITERALS:
                    forms_of(mention.surface, mention.aliases)
                name_hash(mention.surface)
            for _, saying in made.sayings.values():
                label_code(saying.relation)
        for chunk in addition.chunks:
            note_words(embedded_text(chunk))

    def __call__(self, extraction: Extraction) -> Drafted:
        """What was worked out, or is now."""
        return self._made.get(id(extraction)) or drafted(extraction)
