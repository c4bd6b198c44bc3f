"""Reject candidates for a "where" question that are not places."""

import re
from collections.abc import Iterable

from clew.types import HEAD, Entity, Fact, Participant

_WHERE = re.compile(r"\W*(?:(?:and|in|at|from)\s+)?where\b", re.I)
# A life event or dates in brackets: the person stands before them.
_LIFE = re.compile(r"\b(?:born|died?)\b|\([^()]*\d{4}\s*[–—-]", re.I)
_PLACED = re.compile(r"\b(?:in|at|to|from|near|of)\s+(?:the\s+)?$", re.I)


def asks_where(question: str) -> bool:
    """Whether a question asks for a place by its first word."""
    return _WHERE.match(question) is not None


def no_place(entity: Entity, facts: Iterable[Fact]) -> bool:
    """Whether facts describe an entity as being somewhere, not as a place where something is."""
    mentioning = [fact for fact in facts if entity.name.casefold() in fact.text.casefold()]
    if any(_heads(entity, fact) for fact in mentioning):
        return True
    return bool(mentioning) and all(_lives(entity, fact.text) for fact in mentioning)


def _heads(entity: Entity, fact: Fact) -> bool:
    """Whether the entity is the head of a triple."""
    return bool(fact.relation) and Participant(entity.id, HEAD) in fact.participants


def _lives(entity: Entity, text: str) -> bool:
    """Whether the entity is the subject of a life event: N in "N was born in Kiel"."""
    life = _LIFE.search(text)
    at = text.casefold().find(entity.name.casefold())
    return life is not None and 0 <= at < life.start() and _PLACED.search(text[:at]) is None
