"""A training example for contrastive learning of the encoder."""

from dataclasses import dataclass

TextGroup = tuple[str, ...]
"""Texts whose vectors are summed: a passage alone, or the relations of a path."""


@dataclass(frozen=True, slots=True)
class ContrastiveExample:
    """A question, its positives and hard negatives; other questions' texts are negatives too."""

    question: str
    positives: tuple[TextGroup, ...]
    negatives: tuple[TextGroup, ...] = ()
