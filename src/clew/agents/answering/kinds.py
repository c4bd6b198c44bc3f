"""Lists the things of a kind where a question names nothing: "list all owners".

A graph knows a kind by the type of its things, or by a relation that is called so.
"""

import numpy as np

from clew.agents.answering.path_check import Verdict
from clew.context import Context
from clew.graph.csr import Ints
from clew.graph.traverse import HEAD_CODE, TAIL_CODE, FactGraph
from clew.retrieve.breadth import wants_breadth
from clew.retrieve.claim_sides import Sides, read_tail
from clew.retrieve.graph_cache import build_traversal
from clew.retrieve.paths.relation_paths import ASKED_MARK
from clew.retrieve.question import content_words, tidy_question
from clew.retrieve.relation_vectors import load_short_texts
from clew.retrieve.verb_sides import share_start
from clew.types import Path

_MOST_FACTS = 4096  # facts of a relation whose ends are listed
_LIST_WORDS = 2  # content words of "list all owners"


def find_listed(question: str) -> str:
    """Return the noun for the things that a question wants listed, if it says nothing else."""
    words = content_words(tidy_question(question))
    if len(words) == 1 or len(words) == _LIST_WORDS and wants_breadth(question):
        return words[-1]
    return ""


async def list_kind(ctx: Context) -> Verdict:
    """Return all things of the kind that a question lists."""
    noun = find_listed(ctx.question)
    if not noun:
        return Verdict()
    if paths := await _list_of_type(ctx, noun):
        return Verdict(paths=paths)
    ways = build_traversal(ctx.view)
    for relation, label in enumerate(await load_short_texts(ctx)):
        tail = read_tail(label, Sides((noun,), "noun"))
        if tail.role == "noun" and tail.words and share_start(noun, tail.words[-1]):
            return Verdict(paths=_list_ends(ways, relation))
    return Verdict()


async def _list_of_type(ctx: Context, noun: str) -> tuple[Path, ...]:
    """Return the things whose type is called so."""
    types = ctx.view.types
    known, first = np.unique(types, return_index=True)
    keys = ctx.view.keys("entity")
    some = await ctx.snapshot.entities(keys[first].tolist())
    for kind, at in zip(known.tolist(), first.tolist(), strict=True):
        words = some[int(keys[at])].type.casefold().split()
        if kind >= 0 and words and share_start(noun, words[-1]):
            ends = np.flatnonzero(types == kind).tolist()
            return tuple(Path((end,), (), 1.0, ASKED_MARK) for end in ends)
    return ()


def _list_ends(ways: FactGraph, relation: int) -> tuple[Path, ...]:
    """Return for each thing that a relation leads to a fact that says so."""
    facts: Ints = np.flatnonzero(ways.labels == relation)[:_MOST_FACTS].astype(np.int64)
    at, edge = ways.members.edges_of(facts)
    roles, members = ways.members.weights[edge], ways.members.columns[edge]
    head = dict(
        zip(at[roles == HEAD_CODE].tolist(), members[roles == HEAD_CODE].tolist(), strict=True)
    )
    tails = zip(at[roles == TAIL_CODE].tolist(), members[roles == TAIL_CODE].tolist(), strict=True)
    paths = {
        tail: Path((head[place], tail), (int(facts[place]),), 1.0, ASKED_MARK)
        for place, tail in tails
        if place in head
    }
    return tuple(paths.values())
