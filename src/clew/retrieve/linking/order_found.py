"""Order what was found for a reader: by the question, or by how it is linked to what it names."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from clew.context import Context
from clew.layout import EvidenceKind, EvidenceOrder
from clew.retrieve.facts import fact_subjects, score_facts
from clew.retrieve.linking.link_names import link_names
from clew.text.names import tokenize
from clew.types import Found

_SUBJECT_SHARE = 0.5  # weight of a sentence's subject beside its text
_TRIPLE = 2  # participants


async def order_found(
    ctx: Context, found: Found, orders: Mapping[EvidenceKind, EvidenceOrder]
) -> Found:
    """Order facts and paths by similarity to the question, a path by the mean of its facts.

    By links only those remain that are about something the question names, and the facts about
    what these mention; if there are none, all remain.
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
    if "linked" in orders.values():
        links = _FactLinks(ctx, _find_named(ctx))
        if orders.get("facts") == "linked":
            direct = [hit for hit in facts if links.is_direct(hit.at)]
            about = links.find_mentioned([hit.at for hit in direct])
            further = [hit for hit in facts if hit not in direct and links.is_about(hit.at, about)]
            facts = [*direct, *further] or facts
        if orders.get("paths") == "linked":
            paths = [path for path in paths if links.named & set(path.entities)] or paths
    return replace(found, facts=tuple(facts), paths=tuple(paths))


def _find_named(ctx: Context) -> frozenset[int]:
    """Return the entities that the question names."""
    links = link_names(ctx.view, ctx.question, tokenize(ctx.question))
    return frozenset(int(entity) for link in links for entity in link.entities)


@dataclass(frozen=True)
class _FactLinks:
    """Who takes part in which fact, seen from the entities that a question names."""

    ctx: Context
    named: frozenset[int]

    def is_direct(self, fact: int) -> bool:
        """Whether something that the question names takes part in a fact."""
        return bool(self.named & self._members(fact))

    def find_mentioned(self, facts: list[int]) -> frozenset[int]:
        """Return what else takes part in some facts."""
        return frozenset().union(*map(self._members, facts)) - self.named

    def is_about(self, fact: int, entities: frozenset[int]) -> bool:
        """Whether a sentence's subject, or one end of a triple, is among these."""
        members = self._members(fact)
        if len(members) <= _TRIPLE:
            return bool(members & entities)
        about = fact_subjects(self.ctx.view)
        index = int(about.index[fact])
        return index < len(about.entities) and int(about.entities[index]) in entities

    def _members(self, fact: int) -> frozenset[int]:
        return frozenset(self.ctx.view.links("fact_entity").row(fact).tolist())
