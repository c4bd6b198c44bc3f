"""What may answer a question that asks where: not whom a sentence tells of."""

import re
from collections.abc import Iterable

from clew.types import HEAD, Entity, Fact, Participant

_WHERE = re.compile(r"\W*(?:(?:and|in|at|from)\s+)?where\b", re.I)
# A verb of a life, or its dates in brackets: who lived it stands before them.
_LIFE = re.compile(r"\b(?:born|died?)\b|\([^()]*\d{4}\s*[–—-]", re.I)
_PLACED = re.compile(r"\b(?:in|at|to|from|near|of)\s+(?:the\s+)?$", re.I)


def asks_where(question: str) -> bool:
    """Whether a question asks for a place by its first word."""
    return _WHERE.match(question) is not None


def no_place(entity: Entity, facts: Iterable[Fact]) -> bool:
    """Whether facts tell of an entity as the one that is somewhere, not as where it is."""
    told = [fact for fact in facts if entity.name.casefold() in fact.text.casefold()]
    if any(_heads(entity, fact) for fact in told):
        return True
    return bool(told) and all(_lives(entity, fact.text) for fact in told)


def _heads(entity: Entity, fact: Fact) -> bool:
    """A triple tells where its head is."""
    return bool(fact.relation) and Participant(entity.id, HEAD) in fact.participants


def _lives(entity: Entity, text: str) -> bool:
    """ "N was born in Kiel" tells where N was, who stands before the verb without "in"."""
    life = _LIFE.search(text)
    at = text.casefold().find(entity.name.casefold())
    return life is not None and 0 <= at < life.start() and _PLACED.search(text[:at]) is None
