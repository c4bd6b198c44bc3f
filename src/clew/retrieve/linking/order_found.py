"""Order what was found for a reader: by the question, or by how it is linked to what it names."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TypeVar

import numpy as np

from clew.context import Context
from clew.index.view import View
from clew.layout import EvidenceKind, EvidenceOrder
from clew.retrieve.facts import score_facts
from clew.retrieve.linking.link_names import link_names
from clew.text.names import tokenize
from clew.types import Found, Hit

_SUBJECT_SHARE = 0.5  # weight of a sentence's subject beside its text
_MAX_SHARED_FACTS = 50  # of an entity that links facts
_BY_LINKS: frozenset[EvidenceOrder] = frozenset(("linked", "linked-first"))
Ranked = TypeVar("Ranked")


async def order_found(
    ctx: Context, found: Found, orders: Mapping[EvidenceKind, EvidenceOrder]
) -> Found:
    """Order facts and paths by similarity to the question, a path by the mean of its facts.

    By links only those remain that name something the question names, and the facts that share a
    name with these, or they come first; if the question names nothing, all remain.
    """
    if ctx.embed is None:
        return found
    on_paths = [fact for path in found.paths for fact in path.facts]
    at = np.unique(np.array([*(hit.at for hit in found.facts), *on_paths], np.int64))
    scores = await score_facts(ctx, await ctx.vector(), _SUBJECT_SHARE, at)
    near: dict[int, float] = dict(zip(at.tolist(), scores.tolist(), strict=True))
    facts, paths = list(found.facts), list(found.paths)
    if orders.get("facts", "found") != "found":
        facts.sort(key=lambda hit: -near[hit.at])
    if orders.get("paths", "found") != "found":
        paths.sort(key=lambda path: -fmean([near[fact] for fact in path.facts] or [-1.0]))
    named = _find_named(ctx) if _BY_LINKS & set(orders.values()) else frozenset()
    if named and orders.get("facts") in _BY_LINKS:
        linked = _select_linked(ctx.view, facts, named)
        facts = linked if orders["facts"] == "linked" else _put_first(linked, facts)
    if named and orders.get("paths") in _BY_LINKS:
        through = [path for path in paths if named & set(path.entities)]
        paths = through if orders["paths"] == "linked" else _put_first(through, paths)
    return replace(found, facts=tuple(facts), paths=tuple(paths))


def _put_first(first: Sequence[Ranked], everything: Sequence[Ranked]) -> list[Ranked]:
    return [*first, *(one for one in everything if one not in first)]


def _find_named(ctx: Context) -> frozenset[int]:
    """Return the entities that the question names, or that the caller gives."""
    texts = (ctx.question, *ctx.given_entities)
    links = [link for text in texts for link in link_names(ctx.view, text, tokenize(text))]
    return frozenset(int(entity) for link in links for entity in link.entities)


def _select_linked(view: View, facts: Sequence[Hit], named: frozenset[int]) -> list[Hit]:
    """Return the facts with something that is named, then those that share a rare name with them.

    What many facts share, a year or a country's adjective, does not link them.
    """
    members, degrees = view.links("fact_entity"), view.links("entity_fact").degrees()
    names = {hit.at: frozenset(members.row(hit.at).tolist()) for hit in facts}
    direct = [hit for hit in facts if names[hit.at] & named]
    mentioned = frozenset().union(*(names[hit.at] for hit in direct))
    rare = {entity for entity in mentioned if degrees[entity] <= _MAX_SHARED_FACTS}
    return [*direct, *(hit for hit in facts if not names[hit.at] & named and names[hit.at] & rare)]
