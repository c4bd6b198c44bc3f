"""What questions over small graphs mean, where a step may have several names or directions.

A step of an ask is a relation or a list of alternatives. What it means is said in all ways that the
graph holds: a path for each choice of alternatives, what two paths share, or things compared by the
end of one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

from bench.query_scorer.asked import SmallGraph, Step, list_directions
from clew.agents.logic.measured import (
    is_time,
    rank_values,
    say_check,
    say_extreme,
    say_measure,
    say_things,
)
from clew.retrieve.paths.judged import open_path, say_both
from clew.text.names import name_key, relation_segments, relations_to_words

Path = tuple[Step, ...]
_MOST_WAYS = 8  # in which one meaning is said
_MOST_PRODUCTS = 256  # choices of alternatives that are looked at


class Unfounded(ValueError):  # noqa: N818  (reads as what happened)
    """An ask does not fit its graph."""


@dataclass(frozen=True)
class Meaning:
    """The right texts of an ask, the answers they give, and the right paths by their start."""

    said: tuple[str, ...]
    answers: frozenset[frozenset[str]]
    paths: tuple[tuple[str, Path], ...] = ()
    unjudged: frozenset[tuple[str, Path]] = field(default_factory=frozenset)
    """Paths that say a part of what is meant: neither right nor wrong."""


def read_meaning(graph: SmallGraph, ask: dict[str, Any]) -> Meaning | None:
    """Return what an ask means, None where the graph does not say it."""
    names = [ask[key] for key in ("topic", "is") if key in ask]
    names += [*ask.get("compare", []), *ask.get("of", [])]
    if unknown := [name for name in names if str(name) not in graph.steps]:
        raise Unfounded(f"not in the graph: {', '.join(map(str, unknown))}")
    if ask["path"] == "none":
        return None
    if "compare" in ask:
        return _read_comparison(graph, ask)
    if "extreme" in ask:
        return _read_extreme(graph, ask)
    if "and" in ask:
        return _read_both(graph, ask)
    if ask.get("get") == "check":
        return next(iter(read_check(graph, ask).values()))
    return _read_paths(graph, ask)


def read_check(graph: SmallGraph, ask: dict[str, Any]) -> dict[str, Meaning]:
    """Return what a question of yes or no means from each of its two names, if there is a path."""
    turned = [
        [f"{'' if back else '^'}{relation}" for relation, back in read_step(step)]
        for step in ask["path"][::-1]
    ]
    found = {}
    for topic, path in ((ask["topic"], ask["path"]), (ask["is"], turned)):
        try:
            found[str(topic)] = _read_paths(graph, {"topic": topic, "path": path})
        except Unfounded:
            continue
    if not found:
        raise Unfounded(f"no path from {ask['topic']} or {ask['is']}")
    return found


def _read_paths(graph: SmallGraph, ask: dict[str, Any]) -> Meaning:
    topic, paths = str(ask["topic"]), list_right(graph, ask)
    ends = [find_ends(graph, topic, path) for path in paths]
    said = tuple(graph.say(topic, path) for path in paths[:_MOST_WAYS])
    answers = frozenset([*ends, frozenset().union(*ends)])
    return Meaning(said, answers, tuple((topic, path) for path in paths))


def list_right(graph: SmallGraph, ask: dict[str, Any]) -> list[Path]:
    """Return the paths that an ask means and that lead somewhere."""
    start = str(ask["topic"])
    choices = islice(product(*map(read_step, ask["path"])), _MOST_PRODUCTS)
    found = [path for path in choices if graph.follow(start, path)]
    if not found:
        raise Unfounded(f"no path from {start}")
    return found


def read_step(step: str | Sequence[str]) -> list[Step]:
    """Return the alternatives of a step."""
    some = [step] if isinstance(step, str) else step
    return [(one.removeprefix("^"), one.startswith("^")) for one in some]


def find_ends(graph: SmallGraph, topic: str, path: Path) -> frozenset[str]:
    """Return the ends of a path."""
    return frozenset(route[-1] for route in graph.follow(topic, path))


def say_shared(graph: SmallGraph, one: tuple[str, Path], other: tuple[str, Path]) -> str:
    """Say the ends that two paths share; "" without any."""
    first, second = graph.follow(*one), graph.follow(*other)
    ends = {route[-1] for route in second}
    shared = list(dict.fromkeys(route[-1] for route in first if route[-1] in ends))
    if not shared:
        return ""
    opened = [
        _open(graph, next(r for r in routes if r[-1] == shared[0]), path)
        for routes, (_, path) in ((first, one), (second, other))
    ]
    return say_both(opened[0], opened[1], shared)


def _open(graph: SmallGraph, route: Sequence[str], path: Path) -> str:
    return open_path(graph.list_facts(route, path), list_directions(path))


def _read_both(graph: SmallGraph, ask: dict[str, Any]) -> Meaning:
    second = ask["and"]
    one = [(str(ask["topic"]), path) for path in list_right(graph, ask)]
    other = [(str(second["topic"]), path) for path in list_right(graph, second)]
    said = [text for a in one for b in other if (text := say_shared(graph, a, b))]
    if not said:
        raise Unfounded("the two paths share no end")
    shared = {end for p in one for end in find_ends(graph, *p)} & {
        end for p in other for end in find_ends(graph, *p)
    }
    some = tuple(dict.fromkeys(said))[:_MOST_WAYS]
    return Meaning(some, frozenset([frozenset(shared)]), (), frozenset([*one, *other]))


def find_value(graph: SmallGraph, name: str, paths: Sequence[Path]) -> tuple[str, Path] | None:
    """Return the first end of the first path that leads anywhere, and that path."""
    for path in paths:
        routes = graph.follow(name, path)
        if routes:
            return routes[0][-1], path
    return None


def measure_words(path: Path) -> str:
    """Say what the end of a path measures."""
    return say_measure(relations_to_words([relation_segments(name)[-1] for name, _ in path]))


def order_names(question: str, names: Sequence[str]) -> list[str]:
    """Return names in the order of a question; where one is not found, as they are."""
    words = name_key(question).split()
    places = []
    for name in names:
        own = [words.index(word) for word in name_key(name).split() if words.count(word) == 1]
        places.append(min(own, default=-1))
    if min(places, default=-1) < 0 or len(set(places)) < len(places):
        return list(names)
    return [name for _, name in sorted(zip(places, names, strict=True))]


def order_compared(ask: dict[str, Any], question: str) -> dict[str, Any]:
    """Return an ask that compares two, by name in the order of a wording."""
    names = [str(name) for name in ask["compare"]]
    ordered, get = order_names(question, names), ask.get("get", "more")
    turned = {"check-more": "check-less", "check-less": "check-more"}
    return {**ask, "compare": ordered, "get": get if ordered == names else turned.get(get, get)}


def _read_comparison(graph: SmallGraph, ask: dict[str, Any]) -> Meaning:
    choices = list(islice(product(*map(read_step, ask["path"])), _MOST_PRODUCTS))
    names = [str(name) for name in ask["compare"]]
    found = {name: find_value(graph, name, choices) for name in names}
    values = {name: one[0] for name, one in found.items() if one is not None}
    get = ask.get("get", "more")
    best = "max" if get.endswith("more") else "min"
    winners = rank_values(values, best) if len(values) == len(names) == 2 else []
    if len(winners) != 1 and not (winners and get.startswith("check")):
        raise Unfounded("not to be compared")
    paths = dict.fromkeys(one[1] for one in found.values() if one is not None)
    check = get.startswith("check")
    said = [say_compared(names, values, path, best, check=check) for path in paths]
    return Meaning(tuple(dict.fromkeys(said)), frozenset())


def say_compared(
    names: Sequence[str], values: dict[str, str], path: Path, best: str, *, check: bool
) -> str:
    """Say which of two has more, or whether the first has."""
    dated, winners = is_time(list(values.values())), rank_values(values, best)
    measure = measure_words(path)
    if check:
        answer = "yes" if winners == [names[0]] else "no"
        return say_check(names, measure, best, dated=dated, answer=answer)
    return say_extreme(say_things(names), measure, best, dated=dated, answer=", ".join(winners))


def _read_extreme(graph: SmallGraph, ask: dict[str, Any]) -> Meaning:
    choices = list(islice(product(*map(read_step, ask["path"])), _MOST_PRODUCTS))
    found = {str(name): find_value(graph, str(name), choices) for name in ask["of"]}
    values = {name: one[0] for name, one in found.items() if one is not None}
    winners = rank_values(values, ask["extreme"])
    if len(winners) != 1 or len(values) < 2:
        raise Unfounded("no single extreme")
    paths = list(dict.fromkeys(one[1] for one in found.values() if one is not None))
    said = [
        say_best(list(values), values, path, ask["extreme"], things)
        for path in paths
        for things in ("", *list_sets(graph, frozenset(values)))
    ]
    return Meaning(tuple(dict.fromkeys(said))[:_MOST_WAYS], frozenset([frozenset(winners)]))


def say_best(
    names: Sequence[str], values: dict[str, str], path: Path, best: str, things: str = ""
) -> str:
    """Say which of some things has the largest or smallest value."""
    dated, answer = is_time(list(values.values())), ", ".join(rank_values(values, best))
    said = things or say_things(names)
    return say_extreme(said, measure_words(path), best, dated=dated, answer=answer)


def list_sets(graph: SmallGraph, things: frozenset[str]) -> Iterator[str]:
    """Yield the single steps that lead to just these things, said with their end left open."""
    for name, steps in graph.steps.items():
        for step, ends in steps.items():
            if frozenset(ends) == things and len(things) > 1:
                yield _open(graph, [name, ends[0]], (step,))


def list_measures(graph: SmallGraph) -> dict[Step, dict[str, str]]:
    """Return the relations by whose ends several things can be compared, with these."""
    found: dict[Step, dict[str, str]] = {}
    for name, steps in graph.steps.items():
        for step, ends in steps.items():
            if not step[1]:
                found.setdefault(step, {})[name] = ends[0]
    return {
        step: values
        for step, values in found.items()
        if len(values) > 1 and rank_values(values, "max")
    }
