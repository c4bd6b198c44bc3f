"""Things of a graph compared by a number or a date: which of two has more, which of all has most.

Whatever may be compared is said to the query scorer in the words of tables, beside the question;
told is the likeliest, where it is likelier than the best path.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from clew.agents.answering.path_check import Verdict
from clew.agents.core.messages import NO, YES
from clew.agents.logic.measured import (
    is_measure,
    is_time,
    rank_values,
    say_check,
    say_extreme,
    say_measure,
    say_things,
)
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.graph.csr import Floats, Ints
from clew.graph.paths import follow_codes
from clew.graph.traverse import FactGraph, expand_entities
from clew.retrieve.asked_form import wants_check
from clew.retrieve.graph_cache import build_traversal
from clew.retrieve.pack import fetch_entity_labels
from clew.retrieve.paths.judged import (
    SCORED_LANGUAGES,
    name_entities,
    open_route,
    score_texts,
    to_odds,
)
from clew.retrieve.paths.ranked import path_codes
from clew.retrieve.paths.relation_paths import ASKED_MARK
from clew.retrieve.relation_vectors import load_short_texts, sample_ends
from clew.text.names import name_key
from clew.types import Found, Path

_TWO = 2
_MOST_RELATIONS = 256  # of a graph with more, nothing is compared
_MOST_THINGS = 512  # that have a measure; of more, no extreme is told
_LOOKED_AT = 4  # ends of a relation that tell whether it is a measure
_MOST_SETS = 4  # relation paths whose ends are compared
_MOST_NAMES = 3
_MOST_BESIDE = 7  # things that the one told is compared with, and whose values are quoted
_LEAST_CHANCE = 0.5
_CLEAR_ODDS = 0.5  # log odds by which a comparison must be likelier than those that say otherwise


@dataclass(frozen=True)
class Value:
    """What something has of a measure, and the fact that says so."""

    text: str
    entity: int
    fact: int


@dataclass(frozen=True)
class Measure:
    """A relation that leads to numbers or dates, and what each thing has of it."""

    words: str
    values: dict[int, Value]
    names: dict[int, str]
    """What the things are called."""

    def read(self, things: Sequence[int]) -> dict[str, str]:
        """Return the values of some things, by their names."""
        return {self.names[at]: self.values[at].text for at in things}


@dataclass(frozen=True)
class Compared:
    """A comparison of some things: what the scorer reads, and what it answers."""

    said: tuple[str, ...]
    """One text, and the one that says the opposite where the words tell which is meant."""
    short: str
    things: tuple[int, ...]
    """Those whose values decide; of an extreme the one that is told."""
    measure: Measure
    others: tuple[int, ...] = ()
    """What an extreme is compared with, if few."""

    def answers_otherwise(self, other: "Compared") -> bool:
        """Whether another comparison gives another answer."""
        if self.short or other.short:
            return self.short != other.short
        return self.things != other.things


async def compare_things(ctx: Context, found: Found) -> Verdict:
    """Return the comparison that a question asks for; nothing where it asks for a path."""
    path = found.paths[0].asked if found.paths else -1.0 if found.names else 0.0
    if path < 0 or len(found.names) > _MOST_NAMES or not ctx.can_score(*SCORED_LANGUAGES):
        return Verdict()
    measures = await load_measures(ctx)
    maker = await Comparer.create(ctx, found, measures)
    compared = list(maker.list_two() if wants_check(ctx.question) else maker.list_all())
    if not compared:
        return Verdict()
    chances = await _score(ctx, compared)
    best = int(chances.argmax())
    chance = float(chances[best])
    others = (
        float(own)
        for one, own in zip(compared, chances.tolist(), strict=True)
        if one.answers_otherwise(compared[best])
    )
    rival = max(to_odds(path), to_odds(max(others, default=0.0)) + _CLEAR_ODDS)
    if chance < _LEAST_CHANCE or to_odds(chance) <= rival:
        return Verdict()
    return _conclude(compared[best], chance)


async def _score(ctx: Context, compared: Sequence[Compared]) -> Floats:
    """Return how probable it is that a question asks for each comparison."""
    texts = list(dict.fromkeys(text for one in compared for text in one.said))
    scored = await score_texts(ctx, (ctx.question,), texts)
    chances = dict(zip(texts, scored.tolist(), strict=True))
    return np.array([max(chances[text] for text in one.said) for one in compared], np.float32)


def _conclude(one: Compared, chance: float) -> Verdict:
    """Return the paths from what is compared to its value, or from the value to what is told."""

    def lead(thing: int) -> Path:
        value = one.measure.values[thing]
        ends = (thing, value.entity) if one.short else (value.entity, thing)
        return Path(ends, (value.fact,), chance, ASKED_MARK, asked=chance)

    told, beside = tuple(map(lead, one.things)), tuple(map(lead, one.others))
    return Verdict(one.short, told, beside, compared=True)


@dataclass(frozen=True)
class Comparer:
    """Lists what may be compared in a graph."""

    check: bool
    age: str
    """Whether the old or the young are asked for: of dates the scorer confuses them."""
    measures: Sequence[Measure]
    named: tuple[tuple[int, ...], ...]
    """The entities of each name of the question, in its order."""
    sets: dict[str, tuple[int, ...]]
    """The ends of relation paths, by these said with their end left open."""

    @classmethod
    async def create(cls, ctx: Context, found: Found, measures: Sequence[Measure]) -> "Comparer":
        """Look up what a question names, and the ends of the best paths."""
        keys = sorted({name_key(name) for name in found.names}, key=name_key(ctx.question).find)
        named = tuple(tuple(ctx.view.find_by_name_or_alias(key).tolist()) for key in keys)
        sets = await _list_sets(ctx, found)
        check, age = wants_check(ctx.question), _find_age(ctx.question)
        return cls(check, age, measures, named, sets)

    def list_all(self) -> Iterator[Compared]:
        """Yield which of two that are named has more or less, and which of all or of some."""
        yield from self.list_two()
        for measure in self.measures:
            yield from self._list_best(measure, tuple(measure.values), "")
            for said, ends in self.sets.items():
                some = tuple(at for at in ends if at in measure.values)
                if len(some) > 1 and len(some) < len(measure.values):
                    yield from self._list_best(measure, some, said)

    def list_two(self) -> Iterator[Compared]:
        """Yield which of two that are named has more or less, or whether the first has."""
        for measure in self.measures:
            known = [[at for at in some if at in measure.values] for some in self.named]
            for one, other in combinations([some[0] for some in known if some], _TWO):
                if self.check:
                    yield from self._list_checks(measure, one, other)
                else:
                    yield from self._list_best(measure, (one, other), "")

    def _list_checks(self, measure: Measure, one: int, other: int) -> Iterator[Compared]:
        values = measure.read((one, other))
        dated, known = is_time(list(values.values())), list[Compared]()
        for best in ("min", "max"):
            winners = rank_values(values, best)
            short = YES if winners == [measure.names[one]] else NO
            said = say_check(
                *(list(values), measure.words, best), dated=dated, answer=short.casefold()
            )
            if winners and len(values) == _TWO:
                known.append(Compared((said,), short, (one, other), measure))
        yield from self._choose(known, dated=dated)

    def _list_best(self, measure: Measure, things: Sequence[int], said: str) -> Iterator[Compared]:
        values = measure.read(things)
        dated, known = is_time(list(values.values())), list[Compared]()
        by_name = {measure.names[at]: at for at in things}
        for best in ("min", "max"):
            winners = rank_values(values, best)
            told = tuple(by_name[name] for name in winners)
            text = say_extreme(
                *(said or say_things(list(values)), measure.words, best),
                dated=dated,
                answer=", ".join(winners),
            )
            others = tuple(at for at in things if at not in told)
            if told and len(values) > 1 and others:
                few = others if len(others) <= _MOST_BESIDE else ()
                known.append(Compared((text,), "", told, measure, few))
        yield from self._choose(known, dated=dated)

    def _choose(self, known: Sequence[Compared], *, dated: bool) -> Sequence[Compared]:
        """Return the earliest and the latest, or the one of both that is the older or younger."""
        if not (dated and self.age and len(known) == _TWO):
            return known
        earliest, latest = known
        meant = earliest if self.age == "earlier" else latest
        return (replace(meant, said=(*earliest.said, *latest.said)),)


def _find_age(question: str) -> str:
    """Return whether what is earlier or later is asked for by its age ("older"), "" for neither."""
    table = table_for(question)
    said = [match.group() for match in table.ages.finditer(question)]
    found = {one.how for one in table.operators for word in said if one.words.search(word)}
    order = found & {"earlier", "later"}
    return order.pop() if len(order) == 1 else ""


async def _list_sets(ctx: Context, found: Found) -> dict[str, tuple[int, ...]]:
    """Return the ends of the best relation paths, by these said with their end left open."""
    ways, texts = build_traversal(ctx.view), await load_short_texts(ctx)
    codes = path_codes(ways, found.paths)
    known = {
        (path.entities[0], *row): path
        for path, row in zip(found.paths, codes.tolist(), strict=True)
    }
    led = []
    for start, *steps in list(known)[:_MOST_SETS]:
        taken = [code for code in steps if 0 <= code < 2 * len(texts)]
        routes = follow_codes(ways, start, np.array(taken, np.int64))
        if len(taken) == sum(code >= 0 for code in steps) and len(routes):
            led.append(routes)
    names = await name_entities(ctx, led)
    return {
        open_route(one, names, texts): tuple(dict.fromkeys(one.entities[:, -1].tolist()))
        for one in led
    }


async def load_measures(ctx: Context) -> list[Measure]:
    """Return the relations of a graph that lead to numbers or dates, with what things have."""
    memo = ctx.view.memo
    if "measures" not in memo:
        ways, texts = build_traversal(ctx.view), await load_short_texts(ctx)
        some = range(len(texts) if len(texts) <= _MOST_RELATIONS else 0)
        read = [await _read_measure(ctx, ways, label, texts[label]) for label in some]
        memo["measures"] = [one for one in read if one is not None]
    found: list[Measure] = memo["measures"]
    return found


async def _read_measure(ctx: Context, ways: FactGraph, label: int, text: str) -> Measure | None:
    """Return what things have of a relation, None if that is neither number nor date."""
    ends = sample_ends(ctx, ways, label * 2)[:_LOOKED_AT]
    if not all(is_measure(name) for name in (await _fetch_names(ctx, ends)).values()):
        return None
    things = sample_ends(ctx, ways, label * 2 + 1, _MOST_THINGS + 1)
    if not 1 < len(things) <= _MOST_THINGS:
        return None
    edges = expand_entities(ways, things)
    edges = edges.select(edges.code == label * 2)
    names = await _fetch_names(ctx, np.union1d(things, edges.target))
    values: dict[int, Value] = {}
    rows = (edges.source.tolist(), edges.target.tolist(), edges.fact.tolist())
    for source, target, fact in zip(*rows, strict=True):
        if is_measure(names[target]):
            values.setdefault(int(things[source]), Value(names[target], target, fact))
    known = {at: names[at] for at in values}
    return Measure(say_measure([text]), values, known) if len(values) > 1 else None


async def _fetch_names(ctx: Context, entities: Ints) -> dict[int, str]:
    labels = await fetch_entity_labels(ctx, entities.tolist())
    return {at: label.name for at, label in labels.items()}
