"""Questions over small graphs beside right and wrong queries: paths, shared ends, comparisons.

Wrong are other paths from what a question names, nearly the right one above all, what two paths
share that are not both meant, and comparisons by another measure or the other way round.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

from bench.query_scorer.asked import SmallGraph, Step, is_held
from bench.query_scorer.divided import (
    Meaning,
    Path,
    Unfounded,
    find_ends,
    list_measures,
    order_compared,
    order_names,
    read_check,
    read_meaning,
    say_best,
    say_compared,
    say_shared,
)
from clew.retrieve.asked_form import read_form
from clew.text.names import name_key

Item = tuple[str, int, str]
"""What is compared with a question, whether it is right, and "path"."""
_PATHS, _LONGEST, _FRONT = 20, 3, 60
_FARTHEST, _NEIGHBOURS = 4, 10  # relations of a path near the right one; how many of these
_NEAR = 2  # right paths whose neighbours are listed
_SHARED, _COMPARED, _BEST = 6, 6, 2  # wrong queries of each kind
_BEST_OF_EXTREME = 8  # … where an extreme is asked for


@dataclass
class GraphWriter:
    """Makes the items of questions over graphs; counts what was written."""

    rng: random.Random
    counts: Counter[str] = field(default_factory=Counter)

    def write(self, lines: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the questions with their items."""
        for line in lines:
            graph, held = SmallGraph.read(line), is_held(line["graph"])
            for ask in line["asks"]:
                try:
                    meaning = read_meaning(graph, ask)
                except Unfounded:
                    self.counts["without an answer"] += 1
                    continue
                for question, items in self._write_ask(graph, ask, meaning):
                    self.counts["questions over graphs"] += 1
                    none = meaning is None
                    yield {"q": question, "held": held, "none": none, "items": items}

    def _write_ask(
        self, graph: SmallGraph, ask: dict[str, Any], meaning: Meaning | None
    ) -> Iterator[tuple[str, list[Item]]]:
        if ask.get("get") == "check" and meaning is not None:
            yield from self._write_check(graph, ask)
            return
        if "compare" in ask and meaning is not None:
            yield from self._write_comparison(graph, ask)
            return
        maker = ItemMaker(self.rng, graph, _list_topics(ask), meaning)
        for question in ask["q"]:
            yield question, maker.make(question, is_extreme="extreme" in ask)

    def _write_check(
        self, graph: SmallGraph, ask: dict[str, Any]
    ) -> Iterator[tuple[str, list[Item]]]:
        """Yield a question of yes or no as the product asks it: with one of its names left open."""
        names, meanings = [str(ask["topic"]), str(ask["is"])], read_check(graph, ask)
        makers = {
            name: ItemMaker(self.rng, graph, [name], meaning) for name, meaning in meanings.items()
        }
        for question in ask["q"]:
            opened = read_form(question, names).by_name
            some = makers.items() if opened else list(makers.items())[:1]
            for name, maker in some:
                about = opened.get(name_key(name), question)
                yield about, maker.make(about)

    def _write_comparison(
        self, graph: SmallGraph, ask: dict[str, Any]
    ) -> Iterator[tuple[str, list[Item]]]:
        """Yield what compares two that are named, in the order of each wording."""
        for question in ask["q"]:
            ordered = order_compared(ask, question)
            meaning = read_meaning(graph, ordered)
            maker = ItemMaker(self.rng, graph, _list_topics(ordered), meaning)
            yield question, maker.make(question)


def _list_topics(ask: dict[str, Any]) -> list[str]:
    """Return the names that an ask is about."""
    some = [ask["topic"]] if "topic" in ask else list(ask.get("compare", []))
    return [str(name) for name in [*some, *([ask["and"]["topic"]] if "and" in ask else [])]]


@dataclass
class ItemMaker:
    """Makes the right and wrong items of a question about some names of a graph."""

    rng: random.Random
    graph: SmallGraph
    topics: list[str]
    meaning: Meaning | None

    def __post_init__(self) -> None:
        """List the paths from the names."""
        right = self.meaning or Meaning((), frozenset())
        self.said, self.answers, self.right = right.said, right.answers, right.paths
        self.known = {*right.paths, *right.unjudged}
        self.parts = sorted(right.unjudged)
        paths = [
            (topic, path)
            for topic in self.topics
            for path in self.graph.list_paths(topic, _LONGEST, _FRONT)
        ]
        self.wrong = [one for one in paths if self._is_wrong(*one)]
        self.measures = list_measures(self.graph)

    def _is_wrong(self, topic: str, path: Path) -> bool:
        known = (topic, path) in self.known
        return not known and find_ends(self.graph, topic, path) not in self.answers

    def make(self, question: str, *, is_extreme: bool = False) -> list[Item]:
        """Return the items of one wording."""
        near = sorted(self.wrong, key=lambda one: -self._measure_path(one[1]))
        paths = list(dict.fromkeys([*self._list_neighbours(), *near]))[:_PATHS]
        texts = [self.graph.say(topic, path) for topic, path in paths]
        named = [*self.topics, *self._find_names(question)]
        texts += self._sample(self._list_shared(list(dict.fromkeys(named))), _SHARED)
        texts += self._sample(self._list_compared(self._order(question, named)), _COMPARED)
        texts += self._sample(self._list_best(), _BEST_OF_EXTREME if is_extreme else _BEST)
        wrong = [text for text in dict.fromkeys(texts) if text not in self.said]
        return [*((text, 0, "path") for text in wrong), *((text, 1, "path") for text in self.said)]

    def _order(self, question: str, names: Sequence[str]) -> list[str]:
        """Return the names in the order of a question; what is compared as it is."""
        some = list(dict.fromkeys(names))
        return some if len(self.topics) == 2 else order_names(question, some)

    def _sample(self, texts: Iterable[str], most: int) -> list[str]:
        some = [text for text in dict.fromkeys(texts) if text not in self.said]
        return self.rng.sample(some, min(most, len(some)))

    def _find_names(self, question: str) -> list[str]:
        """Return the names of the graph that a question has."""
        asked = f" {name_key(question)} "
        return [name for name in self.graph.steps if f" {name_key(name)} " in asked]

    def _list_shared(self, names: Sequence[str]) -> Iterator[str]:
        """Yield what a path that is near shares with one from another name, if it is not meant."""
        if len(names) < 2:
            return
        first = [*self.right, *self.parts] or self._sample_paths(names[0])
        for one in first:
            for other in (name for name in names if name != one[0]):
                others = [part for part in self.parts if part[0] == other]
                wrong = [two for two in self._sample_paths(other) if two not in others]
                for two in wrong:
                    shared = find_ends(self.graph, *one) & find_ends(self.graph, *two)
                    if shared and shared not in self.answers:
                        yield say_shared(self.graph, one, two)

    def _sample_paths(self, name: str) -> list[tuple[str, Path]]:
        """Return some short paths from a name."""
        paths = self.graph.list_paths(name, 2, _FRONT)
        return [(name, path) for path in self.rng.sample(paths, min(8, len(paths)))]

    def _list_compared(self, names: Sequence[str]) -> Iterator[str]:
        """Yield whether one of two has more, and which, by every measure that both have."""
        for (step, values), (a, b) in product(self.measures.items(), combinations(names[:3], 2)):
            if a in values and b in values:
                own = {a: values[a], b: values[b]}
                for best, check in product(("max", "min"), (True, False)):
                    yield say_compared([a, b], own, (step,), best, check=check)

    def _list_best(self) -> Iterator[str]:
        """Yield which of all things has most of a measure, or least, unless that is meant."""
        for step, values in self.measures.items():
            for best in ("max", "min"):
                said = say_best(list(values), values, (step,), best)
                if frozenset(said.rpartition(" = ")[2].split(", ")) not in self.answers:
                    yield said

    def _list_neighbours(self) -> list[tuple[str, Path]]:
        """Return some paths that are nearly a right one."""
        right = [*self.right, *self.parts]
        some = self.rng.sample(right, min(_NEAR, len(right)))
        found = [(topic, path) for topic, gold in some for path in self._change(topic, gold)]
        return found[:_NEIGHBOURS]

    def _change(self, topic: str, gold: Path) -> list[Path]:
        """Return a path cut, longer by one, there and back, or with its last step turned."""
        ends = find_ends(self.graph, topic, gold)
        steps = sorted({step for end in ends for step in self.graph.steps.get(end, {})})
        longer = [(*gold, step) for step in steps]
        back = [(*gold, *_there_and_back(step)) for step in steps]
        turned = [(*gold[:-1], (relation, not back)) for relation, back in gold[-1:]]
        again = [(*gold, (relation, not back)) for relation, back in gold[-1:]]
        twice = [(*gold[:at], *_there_and_back(gold[at]), *gold[at:]) for at in range(len(gold))]
        cut = [(*gold[:at], *gold[at + 1 :]) for at in range(len(gold))] + [gold[:-2], gold[2:]]
        for some in (longer, back):
            self.rng.shuffle(some)
        every = dict.fromkeys([*turned, *again, *cut, *twice, *longer[:3], *back[:3]])
        return [
            path
            for path in every
            if 0 < len(path) <= _FARTHEST
            and self.graph.follow(topic, path)
            and self._is_wrong(topic, path)
        ]

    def _measure_path(self, path: Path) -> float:
        """Return how close a path is to a right one, or how short; partly by chance."""
        golds = [gold for _, gold in [*self.right, *self.parts]]
        if not golds:
            return self.rng.random() - 0.7 * (len(path) > 1)
        near = max(_count_shared(path, gold) for gold in golds)
        return near + 2 * self.rng.random()


def _count_shared(path: Path, gold: Path) -> float:
    turned = [(relation, not backward) for relation, backward in gold]
    shared = sum(step in gold for step in path) + sum(step in turned for step in path)
    return shared - 0.5 * abs(len(path) - len(gold))


def _there_and_back(step: Step) -> tuple[Step, Step]:
    relation, backward = step
    return step, (relation, not backward)
