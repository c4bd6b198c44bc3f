"""Questions from paths, without a model: bridges, chains, comparisons, common names, and gaps."""

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
_EVENTS = 8  # kinds of dated events that are asked for
_TRIES = 40  # paths looked at for one question


@dataclass(frozen=True)
class Made:
    """A question with its answer and the facts that lead there."""

    type: str
    text: str
    answer: str
    steps: tuple[Step, ...]
    hidden: tuple[str, ...] = ()
    """Names that have to be found on the way."""
    answerable: bool = True
    starts: tuple[str, ...] = ()
    """Names that the question gives: without them nobody knows where to begin."""


def chains(steps: Steps, hops: int, rng: random.Random) -> Iterator[Made]:
    """Walks of `hops` facts, each about what the one before names."""
    starts = sorted(steps.of)
    rng.shuffle(starts)
    for start in starts:
        if not nameable(steps.names[start]):
            continue
        for _ in range(_TRIES // hops):
            path = _walk(steps, start, hops, rng)
            made = _chained(steps, path) if path else None
            if made is not None:
                yield made
                break


def _walk(steps: Steps, start: str, hops: int, rng: random.Random) -> list[Step] | None:
    path: list[Step] = []
    seen = {start}
    at = start
    for hop in range(hops):
        ahead = [
            step
            for step in steps.of.get(at, ())
            if step.target.id not in seen and (hop == hops - 1 or _goes_on(steps, step.target))
        ]
        if not ahead:
            return None
        step = rng.choice(ahead)
        path.append(step)
        seen.add(step.target.id)
        at = step.target.id
    return path


def _goes_on(steps: Steps, entity: Entity) -> bool:
    return nameable(entity) and entity.id in steps.of


def _chained(steps: Steps, path: Sequence[Step]) -> Made | None:
    hidden = tuple(step.target.name for step in path[:-1])
    answer = path[-1].target.name
    if all(step.relation for step in path):
        if any(len(_same(steps, step)) > 1 for step in path):
            return None  # two answers to one of the steps
        text = f"What is {_of(path)}?"
    else:
        text = _puzzle(path)
    if _gives_away(text, [answer, *hidden]):
        return None
    kind = "bridge" if len(path) == 2 else "chain"
    return Made(kind, text, answer, tuple(path), hidden, starts=(path[0].source.name,))


def _same(steps: Steps, step: Step) -> set[str]:
    """Everything that the same relation names of the same thing."""
    return {s.target.id for s in steps.of[step.source.id] if s.relation == step.relation}


def _of(path: Sequence[Step]) -> str:
    told = path[0].source.name
    for step in path:
        told = f"the {step.relation.replace('_', ' ')} of {told}"
    return told


def _puzzle(path: Sequence[Step]) -> str:
    """Each sentence with its gap; the next sentence is about what fills the last one."""
    first, *rest = path
    parts = [f"Of {first.source.name} it is said: “{first.clue()}”"]
    names = [first.target.name]
    for step in rest:
        parts.append(f"Of what is missing there it is said: “{step.clue(names)}”")
        names.append(step.target.name)
    return " ".join([*parts, "What is missing in the last sentence?"])


def _gives_away(text: str, names: Sequence[str]) -> bool:
    said = f" {name_key(text)} "
    return any(f" {name_key(name)} " in said for name in names)


def comparisons(steps: Steps, rng: random.Random) -> Iterator[Made]:
    """Two things of which the same is dated: which came first?"""
    dated: dict[str, dict[str, tuple[int, Step]]] = defaultdict(dict)
    for entity in sorted(steps.of):
        if nameable(steps.names[entity]):
            for step in steps.of[entity]:
                told = _dated(step)
                if told:
                    dated[told[0]].setdefault(entity, (told[1], step))
    triggers = [
        t for t in _commonest({t: len(held) for t, held in dated.items()}) if len(dated[t]) > 1
    ]
    pairs: set[tuple[str, ...]] = set()
    for _ in range(_TRIES * max(1, len(triggers))):
        if not triggers:
            return
        trigger = rng.choice(triggers)
        one, other = rng.sample(sorted(dated[trigger]), 2)
        (year, first), (other_year, second) = dated[trigger][one], dated[trigger][other]
        names = first.source.name, second.source.name
        pair = (trigger, *sorted((one, other)))
        if year == other_year or pair in pairs or _gives_away(names[0], [names[1]]):
            continue
        pairs.add(pair)
        text = f"Which has the earlier year with “{trigger}”: {names[0]} or {names[1]}?"
        answer = names[0] if year < other_year else names[1]
        yield Made("comparison", text, answer, (first, second), starts=names)


def _commonest(counts: Mapping[str, int]) -> list[str]:
    """What is dated of many things is an event (born, founded, released); a rare word is none."""
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return ranked[:_EVENTS]


def _dated(step: Step) -> tuple[str, int] | None:
    """What a year in a fact is about: its relation, or the word of weight that stands before it."""
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
    """Two things whose sources share exactly one name."""
    about: dict[str, list[Step]] = defaultdict(list)
    for entity in sorted(steps.of):
        for step in steps.of[entity]:
            if nameable(step.target) and nameable(step.source):
                about[step.target.id].append(step)
    shared = sorted(name for name, held in about.items() if 2 <= len(held) <= 12)
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
    """The year of something that no fact on a thing speaks of: to be refused."""
    dated = Counter(
        told[0] for held in steps.of.values() for step in held if (told := _dated(step))
    )
    triggers = _commonest(dated)
    entities = sorted(entity for entity in steps.of if nameable(steps.names[entity]))
    for _ in range(_TRIES * 50):
        if not triggers or not entities:
            return
        entity, trigger = rng.choice(entities), rng.choice(triggers)
        if not set(words(trigger)) & steps.said[entity]:
            name = steps.names[entity].name
            text = f"Which year do the sources give with “{trigger}” for {name}?"
            yield Made("unanswerable", text, "", (), answerable=False, starts=(name,))
