"""Reject candidates for a "where" question that are not places."""

import re
from collections.abc import Iterable

from clew.types import HEAD, Entity, Fact, Participant

_ASKS_WHERE = re.compile(r"\W*(?:(?:and|in|at|from)\s+)?where\b", re.I)
# A life event or dates in brackets: the person stands before them.
_LIFE_EVENT = re.compile(r"\b(?:born|died?)\b|\([^()]*\d{4}\s*[–—-]", re.I)
_PLACE_PREPOSITION = re.compile(r"\b(?:in|at|to|from|near|of)\s+(?:the\s+)?$", re.I)


def asks_where(question: str) -> bool:
    """Whether a question asks for a place by its first word."""
    return _ASKS_WHERE.match(question) is not None


def is_located_entity(entity: Entity, facts: Iterable[Fact]) -> bool:
    """Whether facts describe an entity as being somewhere, not as a place where something is."""
    mentioning = [fact for fact in facts if entity.name.casefold() in fact.text.casefold()]
    if any(_is_head(entity, fact) for fact in mentioning):
        return True
    return bool(mentioning) and all(_is_life_subject(entity, fact.text) for fact in mentioning)


def _is_head(entity: Entity, fact: Fact) -> bool:
    """Whether the entity is the head of a triple."""
    return bool(fact.relation) and Participant(entity.id, HEAD) in fact.participants


def _is_life_subject(entity: Entity, text: str) -> bool:
    """Whether the entity is the subject of a life event: N in "N was born in Kiel"."""
    life = _LIFE_EVENT.search(text)
    at = text.casefold().find(entity.name.casefold())
    return (
        life is not None and 0 <= at < life.start() and _PLACE_PREPOSITION.search(text[:at]) is None
    )
