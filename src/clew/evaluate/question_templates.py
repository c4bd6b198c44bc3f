"""Template questions from graph paths: bridge, chain, comparison, common, unanswerable, fact.

A hop is a fact read as a directed step from its subject to another member.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clew.index.view import View
from clew.store.protocol import Snapshot
from clew.text.names import name_key, read_relation
from clew.text.unicode import split_words
from clew.types import HEAD, LITERAL_TYPES, SUBJECT, Entity, Fact

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


_YEAR = re.compile(r"(?<!\d)([1-9]\d{2,3})(?!\d)")
# A longer word and a short one right before a year: "born in", "founded on", "né en".
_EVENT = re.compile(r"([^\W\d_]{4,})\s+[^\W\d_]{1,3}\s*$")
_MAX_EVENTS = 8  # distinct dated events used in questions
_MAX_TRIES = 40  # attempts per question


@dataclass(frozen=True)
class TemplateQuestion:
    """A question with its answer and the facts that support it."""

    type: str
    text: str
    answer: str
    steps: tuple[FactStep, ...]
    hidden: tuple[str, ...] = ()
    """Names of the intermediate hops."""
    answerable: bool = True
    starts: tuple[str, ...] = ()
    """Names that the question must mention, as its starting points."""


def generate_chains(
    steps: FactStepIndex, hops: int, rng: random.Random
) -> Iterator[TemplateQuestion]:
    """Generate questions from walks of `hops` facts, each about the target of the one before."""
    starts = sorted(steps.by_source)
    rng.shuffle(starts)
    for start in starts:
        if not is_named_entity(steps.entities[start]):
            continue
        for _ in range(_MAX_TRIES // hops):
            path = _random_walk(steps, start, hops, rng)
            question = _build_chain_question(steps, path) if path else None
            if question is not None:
                yield question
                break


def _random_walk(
    steps: FactStepIndex, start: str, hops: int, rng: random.Random
) -> list[FactStep] | None:
    path: list[FactStep] = []
    seen = {start}
    current = start
    for hop in range(hops):
        candidates = [
            step
            for step in steps.by_source.get(current, ())
            if step.target.id not in seen and (hop == hops - 1 or _can_continue(steps, step.target))
        ]
        if not candidates:
            return None
        step = rng.choice(candidates)
        path.append(step)
        seen.add(step.target.id)
        current = step.target.id
    return path


def _can_continue(steps: FactStepIndex, entity: Entity) -> bool:
    return is_named_entity(entity) and entity.id in steps.by_source


def _build_chain_question(
    steps: FactStepIndex, path: Sequence[FactStep]
) -> TemplateQuestion | None:
    hidden = tuple(step.target.name for step in path[:-1])
    answer = path[-1].target.name
    if all(step.relation for step in path):
        if any(len(_same_relation_targets(steps, step)) > 1 for step in path):
            return None  # one of the steps has two answers
        text = f"What is {_nest_relations(path)}?"
    else:
        text = _build_cloze_question(path)
    if _reveals(text, [answer, *hidden]):
        return None
    kind = "bridge" if len(path) == 2 else "chain"
    return TemplateQuestion(kind, text, answer, tuple(path), hidden, starts=(path[0].source.name,))


def generate_single_facts(steps: FactStepIndex, rng: random.Random) -> Iterator[TemplateQuestion]:
    """Generate questions on one fact each; a sentence that several pages say asks for none."""
    every = [step for source in sorted(steps.by_source) for step in steps.by_source[source]]
    said = Counter(text for _, text in {(step.fact, step.text) for step in every})
    answers = Counter(cloze for cloze, _ in {(one.cloze_text(), one.target.id) for one in every})
    rng.shuffle(every)
    for step in every:
        question = _build_chain_question(steps, [step]) if step.relation else None
        if question is not None:
            yield replace(question, type="fact")
        cloze, answer = step.cloze_text(), step.target.name
        if not step.relation and said[step.text] == answers[cloze] == 1:
            text = f"It is said: “{cloze}” What is missing?"
            if not _reveals(text, [answer]):
                yield TemplateQuestion("fact", text, answer, (step,))


def _same_relation_targets(steps: FactStepIndex, step: FactStep) -> set[str]:
    """Return all targets of relations that read the same from the same source."""
    said = read_relation(step.relation)
    return {
        other.target.id
        for other in steps.by_source[step.source.id]
        if read_relation(other.relation) == said
    }


def _nest_relations(path: Sequence[FactStep]) -> str:
    phrase = path[0].source.name
    for step in path:
        phrase = f"the {read_relation(step.relation)} of {phrase}"
    return phrase


def _build_cloze_question(path: Sequence[FactStep]) -> str:
    """Build a cloze question: each sentence is about what fills the gap before it."""
    first, *rest = path
    parts = [f"Of {first.source.name} it is said: “{first.cloze_text()}”"]
    names = [first.target.name]
    for step in rest:
        parts.append(f"Of what is missing there it is said: “{step.cloze_text(names)}”")
        names.append(step.target.name)
    return " ".join([*parts, "What is missing in the last sentence?"])


def _reveals(text: str, names: Sequence[str]) -> bool:
    normalised = f" {name_key(text)} "
    return any(f" {name_key(name)} " in normalised for name in names)


def generate_comparisons(steps: FactStepIndex, rng: random.Random) -> Iterator[TemplateQuestion]:
    """Generate questions on which of two entities has the earlier year of the same event."""
    dated: dict[str, dict[str, tuple[int, FactStep]]] = defaultdict(dict)
    for entity in sorted(steps.by_source):
        if is_named_entity(steps.entities[entity]):
            for step in steps.by_source[entity]:
                event = _parse_dated_event(step)
                if event:
                    dated[event[0]].setdefault(entity, (event[1], step))
    events = [
        t
        for t in _most_common_events({t: len(group) for t, group in dated.items()})
        if len(dated[t]) > 1
    ]
    pairs: set[tuple[str, ...]] = set()
    for _ in range(_MAX_TRIES * max(1, len(events))):
        if not events:
            return
        event_name = rng.choice(events)
        one, other = rng.sample(sorted(dated[event_name]), 2)
        (year, first), (other_year, second) = dated[event_name][one], dated[event_name][other]
        names = first.source.name, second.source.name
        pair = (event_name, *sorted((one, other)))
        if year == other_year or pair in pairs or _reveals(names[0], [names[1]]):
            continue
        pairs.add(pair)
        text = f"Which has the earlier year with “{event_name}”: {names[0]} or {names[1]}?"
        answer = names[0] if year < other_year else names[1]
        yield TemplateQuestion("comparison", text, answer, (first, second), starts=names)


def _most_common_events(counts: Mapping[str, int]) -> list[str]:
    """Return the most frequent dated words (born, founded …); rare ones are no events."""
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return ranked[:_MAX_EVENTS]


def _parse_dated_event(step: FactStep) -> tuple[str, int] | None:
    """Return the event and year of a fact: its relation, or the long word before the year."""
    if step.target.type not in LITERAL_TYPES and not step.relation:
        return None
    year = _YEAR.search(step.target.name)
    if year is None:
        return None
    if step.relation:
        return read_relation(step.relation), int(year[1])
    event = _EVENT.search(step.text[: step.text.index(step.target.name)])
    return (event[1], int(year[1])) if event and event[1].islower() else None


def generate_common_names(steps: FactStepIndex, rng: random.Random) -> Iterator[TemplateQuestion]:
    """Generate questions on two entities whose facts share exactly one target."""
    about: dict[str, list[FactStep]] = defaultdict(list)
    for entity in sorted(steps.by_source):
        for step in steps.by_source[entity]:
            if is_named_entity(step.target) and is_named_entity(step.source):
                about[step.target.id].append(step)
    shared = sorted(name for name, incoming in about.items() if 2 <= len(incoming) <= 12)
    rng.shuffle(shared)
    for name in shared:
        by_source = {step.source.id: step for step in about[name]}
        if len(by_source) < 2:
            continue
        one, other = rng.sample(sorted(by_source), 2)
        if steps.targets(one) & steps.targets(other) != {name}:
            continue
        first, second = by_source[one], by_source[other]
        names = first.source.name, second.source.name
        text = f"Which name stands in the sources both on {names[0]} and on {names[1]}?"
        if not _reveals(text, [first.target.name]):
            yield TemplateQuestion("common", text, first.target.name, (first, second), starts=names)


def generate_unanswerable(steps: FactStepIndex, rng: random.Random) -> Iterator[TemplateQuestion]:
    """Generate questions on the year of an event that no fact of the entity mentions."""
    dated = Counter(
        event[0]
        for group in steps.by_source.values()
        for step in group
        if (event := _parse_dated_event(step))
    )
    events = _most_common_events(dated)
    entities = sorted(
        entity for entity in steps.by_source if is_named_entity(steps.entities[entity])
    )
    for _ in range(_MAX_TRIES * 50):
        if not events or not entities:
            return
        entity, event_name = rng.choice(entities), rng.choice(events)
        if not set(split_words(event_name)) & steps.fact_words[entity]:
            name = steps.entities[entity].name
            text = f"Which year do the sources give with “{event_name}” for {name}?"
            yield TemplateQuestion("unanswerable", text, "", (), answerable=False, starts=(name,))
