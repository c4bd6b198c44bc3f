"""Says which of several entities with one name an answer is about, and what holds of the others."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clew.context import Context, TraceStep
from clew.graph.csr import Ints
from clew.graph.paths import follow_codes
from clew.graph.traverse import expand_entities
from clew.retrieve.graph_cache import build_traversal
from clew.retrieve.pack import fetch_entity_labels
from clew.retrieve.paths.ranked import path_codes
from clew.retrieve.relation_vectors import load_short_texts
from clew.types import Found

_NUMBERED = re.compile(r"\s*\([\w:/#.-]*\d[\w:/#.-]*\)\Z")  # as nodes of one name are told apart
_MAX_NAMED = 6  # entities of one name that are told apart
_MAX_ENDS = 8  # of each of them that are told


@dataclass(frozen=True, slots=True)
class Namesakes:
    """The entities that one name of a question may mean, the one that was followed first."""

    labels: tuple[str, ...]
    """Each with what tells it apart."""
    ends: tuple[tuple[str, ...], ...]
    """Where the path that is told leads from each of them."""
    more: int = 0

    @property
    def differ(self) -> bool:
        """Whether the answer depends on which one is meant."""
        return len({ends for ends in map(frozenset, self.ends) if ends}) > 1

    def describe(self) -> str:
        """Return which one is meant, and which others have the name."""
        others = ", ".join(self.labels[1:]) + (f" and {self.more} more" if self.more else "")
        return f"the name is taken for {self.labels[0]}; it may also mean {others}"

    def tell_all(self, *, count: bool) -> str:
        """Return what holds of each."""
        told = [
            f"{label}: {len(ends) if count else ', '.join(ends[:_MAX_ENDS])}"
            for label, ends in zip(self.labels, self.ends, strict=True)
            if ends
        ]
        return "; ".join(told)


async def find_namesakes(ctx: Context, found: Found) -> Namesakes | None:
    """Return what the start of the first path shares its name with, None for one of its own.

    Those that are found are written to the trace.
    """
    first = found.paths[0] if found.paths else None
    group = next((one for one in found.namesakes if first and first.entities[0] in one), ())
    if first is None or len(group) < 2:
        return None
    same = [first.entities[0], *(at for at in group if at != first.entities[0])]
    ways = build_traversal(ctx.view)
    codes = path_codes(ways, (first,))[0]
    if (ways.fact_of_code(codes) >= 0).any():
        return None
    led = [follow_codes(ways, at, codes).entities[:, -1] for at in same]
    # The one that was followed, then those that the question makes sense of.
    order = sorted(range(len(same)), key=lambda at: (at > 0, not len(led[at])))
    labels = await tell_apart(ctx, [same[at] for at in order[:_MAX_NAMED]])
    ends = [await _name_all(ctx, led[at]) for at in order[:_MAX_NAMED]]
    told = Namesakes(tuple(labels), tuple(ends), max(0, len(same) - _MAX_NAMED))
    ctx.trace.append(TraceStep("namesakes", "", told.describe(), 0.0))
    return told


async def _name_all(ctx: Context, entities: Ints) -> tuple[str, ...]:
    ends = list(dict.fromkeys(entities.tolist()))
    labels = await fetch_entity_labels(ctx, ends)
    return tuple(labels[at].name for at in ends)


async def tell_apart(ctx: Context, entities: Sequence[int]) -> list[str]:
    """Return the names of entities; those with one name have a fact or a type beside it."""
    keys = ctx.view.keys("entity")[list(entities)].tolist()
    fetched = await ctx.snapshot.entities(keys)
    names = [_NUMBERED.sub("", fetched[key].name) for key in keys]
    if len(set(names)) == len(names):
        return [fetched[key].name for key in keys]
    types = [fetched[key].type for key in keys]
    facts = await _find_own_facts(ctx, entities)
    beside = [fact or kind for fact, kind in zip(facts, types, strict=True)]
    return [f"{name} ({said})" if said else name for name, said in zip(names, beside, strict=True)]


async def _find_own_facts(ctx: Context, entities: Sequence[int]) -> list[str]:
    """Return for each entity a fact that none of the others has, "" for none."""
    texts, at = await load_short_texts(ctx), np.array(entities, np.int64)
    edges = expand_entities(build_traversal(ctx.view), at)
    edges = edges.select((edges.code % 2 == 0) & (edges.code >> 1 < len(texts)))
    said = [
        {
            (int(code), int(target))
            for code, target in zip(
                edges.code[edges.source == one], edges.target[edges.source == one], strict=True
            )
        }
        for one in range(len(at))
    ]
    shared = [code for own in said for code in {code for code, _ in own}]
    found = []
    for own in said:
        others = set().union(*(other for other in said if other is not own))
        # A relation that most of them have tells best: "located in", not a fact of one alone.
        best = min(own - others, key=lambda one: (-shared.count(one[0]), one), default=None)
        if best is None:
            found.append("")
            continue
        label = (await fetch_entity_labels(ctx, [best[1]]))[best[1]].name
        found.append(f"{texts[best[0] >> 1]} {label}")
    return found
