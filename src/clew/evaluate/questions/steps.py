"""Facts as directed steps from their subject to another member, the hops of a question."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.store.protocol import Snapshot
from clew.text import split_words
from clew.types import HEAD, LITERAL_TYPES, SUBJECT, Entity, Fact
from clew.view import View

_MAX_FACTS = 200_000  # in memory; larger knowledge bases are sampled
_MAX_SENTENCE_CHARS = 320  # characters of a sentence used in a question
_MIN_SENTENCE_CHARS = 20
GAP = "____"
_WORDS_BEFORE, _WORDS_AFTER = 8, 5  # words around a gap


@dataclass(frozen=True, slots=True)
class FactStep:
    """A fact read in one direction: its subject is `source` and it mentions `target`."""

    fact: int  # position
    source: Entity
    target: Entity
    text: str
    relation: str

    def cloze_text(self, hidden: Sequence[str] = ()) -> str:
        """Return the words around the gap left by the target; names in `hidden` become `…`.

        Whole sentences would be found by their wording alone.
        """
        text = self.text.replace(self.target.name, GAP, 1)
        for name in hidden:
            text = text.replace(name, "…")
        before, _, after = text.partition(GAP)
        left, right = before.split(" "), after.split(" ")
        if len(left) > _WORDS_BEFORE:
            left = ["…", *left[-_WORDS_BEFORE:]]
        if len(right) > _WORDS_AFTER:
            right = [*right[:_WORDS_AFTER], "…"]
        return f"{' '.join(left)}{GAP}{' '.join(right)}"


@dataclass
class FactStepIndex:
    """All steps by source entity."""

    by_source: dict[str, list[FactStep]] = field(default_factory=lambda: defaultdict(list))
    entities: dict[str, Entity] = field(default_factory=dict)
    fact_words: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Entity id → the words of all facts it takes part in."""

    def targets(self, entity: str) -> set[str]:
        """Return the targets of an entity's steps."""
        return {step.target.id for step in self.by_source.get(entity, ())}


async def load_steps(snapshot: Snapshot, view: View, seed: int) -> FactStepIndex:
    """Read the facts and convert each to its steps."""
    keys = view.keys("fact").tolist()
    positions = list(range(len(keys)))
    if len(keys) > _MAX_FACTS:
        positions = sorted(random.Random(seed).sample(positions, _MAX_FACTS))
    facts = await snapshot.facts([keys[at] for at in positions])
    entities = await snapshot.entities(view.keys("entity").tolist())
    index = FactStepIndex(entities={entity.id: entity for entity in entities.values()})
    for at in positions:
        fact = facts.get(keys[at])
        if fact is not None:
            _add_fact(index, at, fact)
    return index


def _add_fact(index: FactStepIndex, position: int, fact: Fact) -> None:
    fact_words = set(split_words(fact.text))
    for member in fact.participants:
        index.fact_words[member.entity] |= fact_words
    source = next((m.entity for m in fact.participants if m.role in (SUBJECT, HEAD)), None)
    if source is None or source not in index.entities:
        return
    text = " ".join(fact.text.split())
    usable = bool(fact.relation) or _MIN_SENTENCE_CHARS <= len(text) <= _MAX_SENTENCE_CHARS
    for member in fact.participants:
        target = index.entities.get(member.entity)
        if target is None or member.entity == source or not usable:
            continue
        if not fact.relation and text.count(target.name) != 1:
            continue  # the gap must be unique in the text
        index.by_source[source].append(
            FactStep(position, index.entities[source], target, text, fact.relation)
        )


def is_named_entity(entity: Entity) -> bool:
    """Whether a question can use this entity as a hop: not a date or a number."""
    return entity.type not in LITERAL_TYPES and len(entity.name) > 2
