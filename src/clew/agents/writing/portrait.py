"""Quoted summary of one entity: answers "Tell me about X" without a model."""

import re
from collections.abc import Sequence

from clew.agents.planning.own_part import find_sections
from clew.agents.writing.support import SupportSpan, make_citation
from clew.sentences import sentence_spans
from clew.types import Citation, Passage

_MAX_SUMMARY_SENTENCES = 4  # sentences quoted
# Beside the name an open request has only such words.
_OPEN_REQUEST = re.compile(
    r"\W*(?:(?:please|kindly|can|could|you|i|want|tell|give|show|explain|describe|introduce|say|"
    r"write|summari[sz]e|what|who|is|are|was|were|do|does|know|me|us|about|of|on|to|the|an?|"
    r"more|everything|something|all|there)\b\W*)*",
    re.IGNORECASE,
)


def is_open_request(rest: str) -> bool:
    """Whether a question, without its names, asks for nothing in particular."""
    return _OPEN_REQUEST.fullmatch(rest) is not None


def quote_entity_summary(name: str, passages: Sequence[Passage]) -> tuple[Citation, ...]:
    """Quote the first sentences of the sections about `name`."""
    found: list[Citation] = []
    for passage in passages:
        for start, end in find_sections(name, passage):
            found += [
                make_citation(passage, SupportSpan(start + a, start + b, 1.0))
                for a, b in sentence_spans(passage.text[start:end])
            ]
    return tuple(found[:_MAX_SUMMARY_SENTENCES])
