"""Quoted summary of one entity: answers "Tell me about X" without a model."""

import re
from collections.abc import Sequence

from clew.agents.planning.own_part import own_parts
from clew.agents.writing.support import Place, citation
from clew.sentences import sentence_spans
from clew.types import Citation, Passage

_MOST = 4  # sentences quoted
# Beside the name an open request has only such words.
_ASKS_NOTHING = re.compile(
    r"\W*(?:(?:please|kindly|can|could|you|i|want|tell|give|show|explain|describe|introduce|say|"
    r"write|summari[sz]e|what|who|is|are|was|were|do|does|know|me|us|about|of|on|to|the|an?|"
    r"more|everything|something|all|there)\b\W*)*",
    re.IGNORECASE,
)


def asks_nothing(rest: str) -> bool:
    """Whether a question, without its names, asks for nothing in particular."""
    return _ASKS_NOTHING.fullmatch(rest) is not None


def portrait(name: str, passages: Sequence[Passage]) -> tuple[Citation, ...]:
    """Quote the first sentences of the sections about `name`."""
    found: list[Citation] = []
    for passage in passages:
        for start, end in own_parts(name, passage):
            found += [
                citation(passage, Place(start + a, start + b, 1.0))
                for a, b in sentence_spans(passage.text[start:end])
            ]
    return tuple(found[:_MOST])
