"""Identifiers as people read them: the words of a relation, the last part of an IRI."""

import re
from functools import lru_cache
from urllib.parse import unquote

from clew.text import clean

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_JOINTS = re.compile(r"[_\s]+")
_IRI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:\S+$")


@lru_cache(maxsize=4096)
def relation_words(relation: str) -> str:
    """`starred_actors` and `starredActors` as the words they are made of."""
    plain = local_name(relation)
    if " " not in plain and any(map(str.islower, plain)):
        plain = _HUMP.sub(lambda _: " ", plain)
        plain = " ".join(w if w.isupper() and len(w) > 1 else w.lower() for w in plain.split(" "))
    words = _JOINTS.sub(" ", plain).strip()
    return words or relation


@lru_cache(maxsize=65_536)
def local_name(iri: str) -> str:
    """What an IRI ends in, decoded; anything else as it is."""
    if not _IRI.match(iri):
        return iri
    last = re.split(r"[/#]", iri.rstrip("/#"))[-1]
    if ":" in last and "/" not in iri:
        last = last.rsplit(":", 1)[-1]
    readable = _JOINTS.sub(" ", clean(unquote(last))).strip()
    return readable or iri


def resource_name(identifier: str) -> str:
    """`<iri>` by what the IRI ends in; literals and blank nodes as they are."""
    if identifier.startswith("<") and identifier.endswith(">"):
        return local_name(identifier[1:-1])
    return identifier


def same(identifier: str) -> str:
    """For formats whose identifiers are the names themselves."""
    return identifier
