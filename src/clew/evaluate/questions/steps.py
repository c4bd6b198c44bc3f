"""The knowledge base as steps a question can take: from what a fact is about to what it names."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.store.protocol import Snapshot
from clew.text import words
from clew.types import HEAD, LITERALS, SUBJECT, Entity, Fact
from clew.view import View

_MOST_FACTS = 200_000  # read into memory; of more a sample is taken
_LONGEST = 320  # characters of a sentence that a question can bear
_SHORTEST = 20
GAP = "____"
_BEFORE, _AFTER = 8, 5  # words around a gap


@dataclass(frozen=True, slots=True)
class Step:
    """A fact read in one direction: it is about `source` and names `target`."""

    fact: int  # position
    source: Entity
    target: Entity
    text: str
    relation: str

    def clue(self, hidden: Sequence[str] = ()) -> str:
        """The words around the gap where the target stood; names in `hidden` become an ellipsis.

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
    """All steps, by what they are about."""

    of: dict[str, list[Step]] = field(default_factory=lambda: defaultdict(list))
    names: dict[str, Entity] = field(default_factory=dict)
    said: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Entity → the words of all facts it takes part in."""

    def targets(self, entity: str) -> set[str]:
        """What the facts about an entity name."""
        return {step.target.id for step in self.of.get(entity, ())}


async def all_steps(snapshot: Snapshot, view: View, seed: int) -> Steps:
    """Read the facts and turn each into its steps."""
    keys = view.keys("fact").tolist()
    places = list(range(len(keys)))
    if len(keys) > _MOST_FACTS:
        places = sorted(random.Random(seed).sample(places, _MOST_FACTS))
    facts = await snapshot.facts([keys[at] for at in places])
    entities = await snapshot.entities(view.keys("entity").tolist())
    found = Steps(names={entity.id: entity for entity in entities.values()})
    for at in places:
        fact = facts.get(keys[at])
        if fact is not None:
            _add(found, at, fact)
    return found


def _add(found: Steps, at: int, fact: Fact) -> None:
    told = set(words(fact.text))
    for member in fact.participants:
        found.said[member.entity] |= told
    source = next((m.entity for m in fact.participants if m.role in (SUBJECT, HEAD)), None)
    if source is None or source not in found.names:
        return
    text = " ".join(fact.text.split())
    whole = bool(fact.relation) or _SHORTEST <= len(text) <= _LONGEST
    for member in fact.participants:
        target = found.names.get(member.entity)
        if target is None or member.entity == source or not whole:
            continue
        if not fact.relation and text.count(target.name) != 1:
            continue  # without its name in the text there is no gap to ask for
        found.of[source].append(Step(at, found.names[source], target, text, fact.relation))


def nameable(entity: Entity) -> bool:
    """Whether a question can start or pass here: a thing with a name, not a date or a number."""
    return entity.type not in LITERALS and len(entity.name) > 2
