"""Facts as directed steps from their subject to another member, the hops of a question."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.store.protocol import Snapshot
from clew.text import words
from clew.types import HEAD, LITERALS, SUBJECT, Entity, Fact
from clew.view import View

_MOST_FACTS = 200_000  # in memory; larger knowledge bases are sampled
_LONGEST = 320  # characters of a sentence used in a question
_SHORTEST = 20
GAP = "____"
_BEFORE, _AFTER = 8, 5  # words around a gap


@dataclass(frozen=True, slots=True)
class Step:
    """A fact read in one direction: its subject is `source` and it mentions `target`."""

    fact: int  # position
    source: Entity
    target: Entity
    text: str
    relation: str

    def clue(self, hidden: Sequence[str] = ()) -> str:
        """Return the words around the gap left by the target; names in `hidden` become `…`.

        Whole sentences would be found by their wording alone.
        """
        text = self.text.replace(self.target.name, GAP, 1)
        for name in hidden:
            text = text.replace(name, "…")
        before, _, after = text.partition(GAP)
        left, right = before.split(" "), after.split(" ")
        if len(left) > _BEFORE:
            left = ["…", *left[-_BEFORE:]]
        if len(right) > _AFTER:
            right = [*right[:_AFTER], "…"]
        return f"{' '.join(left)}{GAP}{' '.join(right)}"


@dataclass
class Steps:
    """All steps by source entity."""

    of: dict[str, list[Step]] = field(default_factory=lambda: defaultdict(list))
    names: dict[str, Entity] = field(default_factory=dict)
    said: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Entity id → the words of all facts it takes part in."""

    def targets(self, entity: str) -> set[str]:
        """Return the targets of an entity's steps."""
        return {step.target.id for step in self.of.get(entity, ())}


async def all_steps(snapshot: Snapshot, view: View, seed: int) -> Steps:
    """Read the facts and convert each to its steps."""
    keys = view.keys("fact").tolist()
    positions = list(range(len(keys)))
    if len(keys) > _MOST_FACTS:
        positions = sorted(random.Random(seed).sample(positions, _MOST_FACTS))
    facts = await snapshot.facts([keys[at] for at in positions])
    entities = await snapshot.entities(view.keys("entity").tolist())
    index = Steps(names={entity.id: entity for entity in entities.values()})
    for at in positions:
        fact = facts.get(keys[at])
        if fact is not None:
            _add(index, at, fact)
    return index


def _add(index: Steps, position: int, fact: Fact) -> None:
    fact_words = set(words(fact.text))
    for member in fact.participants:
        index.said[member.entity] |= fact_words
    source = next((m.entity for m in fact.participants if m.role in (SUBJECT, HEAD)), None)
    if source is None or source not in index.names:
        return
    text = " ".join(fact.text.split())
    usable = bool(fact.relation) or _SHORTEST <= len(text) <= _LONGEST
    for member in fact.participants:
        target = index.names.get(member.entity)
        if target is None or member.entity == source or not usable:
            continue
        if not fact.relation and text.count(target.name) != 1:
            continue  # the gap must be unique in the text
        index.of[source].append(Step(position, index.names[source], target, text, fact.relation))


def nameable(entity: Entity) -> bool:
    """Whether a question can use this entity as a hop: not a date or a number."""
    return entity.type not in LITERALS and len(entity.name) > 2
