"""A training example for contrastive learning of the encoder."""

from dataclasses import dataclass

Meaning = tuple[str, ...]
"""Texts whose vectors are summed: a passage alone, or the relations of a path."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A question, its positives and hard negatives; other questions' texts are negatives too."""

    asked: str
    right: tuple[Meaning, ...]
    wrong: tuple[Meaning, ...] = ()
