"""Template questions from graph paths: bridge, chain, comparison, common, unanswerable."""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clew.evaluate.questions.steps import Step, Steps, nameable
from clew.names import name_key
from clew.text import words
from clew.types import LITERALS, Entity

_YEAR = re.compile(r"(?<!\d)([1-9]\d{2,3})(?!\d)")
# A longer word and a short one right before a year: "born in", "founded on", "né en".
_EVENT = re.compile(r"([^\W\d_]{4,})\s+[^\W\d_]{1,3}\s*$")
_EVENTS = 8  # distinct dated events used in questions
_TRIES = 40  # attempts per question


@dataclass(frozen=True)
class Made:
    """A question with its answer and the facts that support it."""

    type: str
    text: str
    answer: str
    steps: tuple[Step, ...]
    hidden: tuple[str, ...] = ()
    """Names of the intermediate hops."""
    answerable: bool = True
    starts: tuple[str, ...] = ()
    """Names that the question must mention, as its starting points."""


def chains(steps: Steps, hops: int, rng: random.Random) -> Iterator[Made]:
    """Generate questions from walks of `hops` facts, each about the target of the one before."""
    starts = sorted(steps.of)
    rng.shuffle(starts)
    for start in starts:
        if not nameable(steps.names[start]):
            continue
        for _ in range(_TRIES // hops):
            path = _walk(steps, start, hops, rng)
            question = _chained(steps, path) if path else None
            if question is not None:
                yield question
                break


def _walk(steps: Steps, start: str, hops: int, rng: random.Random) -> list[Step] | None:
    path: list[Step] = []
    seen = {start}
    current = start
    for hop in range(hops):
        candidates = [
            step
            for step in steps.of.get(current, ())
            if step.target.id not in seen and (hop == hops - 1 or _goes_on(steps, step.target))
        ]
        if not candidates:
            return None
        step = rng.choice(candidates)
        path.append(step)
        seen.add(step.target.id)
        current = step.target.id
    return path


def _goes_on(steps: Steps, entity: Entity) -> bool:
    return nameable(entity) and entity.id in steps.of


def _chained(steps: Steps, path: Sequence[Step]) -> Made | None:
    hidden = tuple(step.target.name for step in path[:-1])
    answer = path[-1].target.name
    if all(step.relation for step in path):
        if any(len(_same(steps, step)) > 1 for step in path):
            return None  # one of the steps has two answers
        text = f"What is {_of(path)}?"
    else:
        text = _puzzle(path)
    if _gives_away(text, [answer, *hidden]):
        return None
    kind = "bridge" if len(path) == 2 else "chain"
    return Made(kind, text, answer, tuple(path), hidden, starts=(path[0].source.name,))


def _same(steps: Steps, step: Step) -> set[str]:
    """Return all targets of this relation from the same source."""
    return {s.target.id for s in steps.of[step.source.id] if s.relation == step.relation}


def _of(path: Sequence[Step]) -> str:
    phrase = path[0].source.name
    for step in path:
        phrase = f"the {step.relation.replace('_', ' ')} of {phrase}"
    return phrase


def _puzzle(path: Sequence[Step]) -> str:
    """Build a cloze question: each sentence is about what fills the gap before it."""
    first, *rest = path
    parts = [f"Of {first.source.name} it is said: “{first.clue()}”"]
    names = [first.target.name]
    for step in rest:
        parts.append(f"Of what is missing there it is said: “{step.clue(names)}”")
        names.append(step.target.name)
    return " ".join([*parts, "What is missing in the last sentence?"])


def _gives_away(text: str, names: Sequence[str]) -> bool:
    normalised = f" {name_key(text)} "
    return any(f" {name_key(name)} " in normalised for name in names)


def comparisons(steps: Steps, rng: random.Random) -> Iterator[Made]:
    """Generate questions on which of two entities has the earlier year of the same event."""
    dated: dict[str, dict[str, tuple[int, Step]]] = defaultdict(dict)
    for entity in sorted(steps.of):
        if nameable(steps.names[entity]):
            for step in steps.of[entity]:
                event = _dated(step)
                if event:
                    dated[event[0]].setdefault(entity, (event[1], step))
    events = [
        t for t in _commonest({t: len(group) for t, group in dated.items()}) if len(dated[t]) > 1
    ]
    pairs: set[tuple[str, ...]] = set()
    for _ in range(_TRIES * max(1, len(events))):
        if not events:
            return
        event_name = rng.choice(events)
        one, other = rng.sample(sorted(dated[event_name]), 2)
        (year, first), (other_year, second) = dated[event_name][one], dated[event_name][other]
        names = first.source.name, second.source.name
        pair = (event_name, *sorted((one, other)))
        if year == other_year or pair in pairs or _gives_away(names[0], [names[1]]):
            continue
        pairs.add(pair)
        text = f"Which has the earlier year with “{event_name}”: {names[0]} or {names[1]}?"
        answer = names[0] if year < other_year else names[1]
        yield Made("comparison", text, answer, (first, second), starts=names)


def _commonest(counts: Mapping[str, int]) -> list[str]:
    """Return the most frequent dated words (born, founded …); rare ones are no events."""
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return ranked[:_EVENTS]


def _dated(step: Step) -> tuple[str, int] | None:
    """Return the event and year of a fact: its relation, or the long word before the year."""
    if step.target.type not in LITERALS and not step.relation:
        return None
    year = _YEAR.search(step.target.name)
    if year is None:
        return None
    if step.relation:
        return step.relation.replace("_", " "), int(year[1])
    event = _EVENT.search(step.text[: step.text.index(step.target.name)])
    return (event[1], int(year[1])) if event and event[1].islower() else None


def common_names(steps: Steps, rng: random.Random) -> Iterator[Made]:
    """Generate questions on two entities whose facts share exactly one target."""
    about: dict[str, list[Step]] = defaultdict(list)
    for entity in sorted(steps.of):
        for step in steps.of[entity]:
            if nameable(step.target) and nameable(step.source):
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
        if not _gives_away(text, [first.target.name]):
            yield Made("common", text, first.target.name, (first, second), starts=names)


def unanswerable(steps: Steps, rng: random.Random) -> Iterator[Made]:
    """Generate questions on the year of an event that no fact of the entity mentions."""
    dated = Counter(
        event[0] for group in steps.of.values() for step in group if (event := _dated(step))
    )
    events = _commonest(dated)
    entities = sorted(entity for entity in steps.of if nameable(steps.names[entity]))
    for _ in range(_TRIES * 50):
        if not events or not entities:
            return
        entity, event_name = rng.choice(entities), rng.choice(events)
        if not set(words(event_name)) & steps.said[entity]:
            name = steps.names[entity].name
            text = f"Which year do the sources give with “{event_name}” for {name}?"
            yield Made("unanswerable", text, "", (), answerable=False, starts=(name,))
