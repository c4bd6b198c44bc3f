"""What an encoder learns from: a question, what fits it, and what only seems to."""

from dataclasses import dataclass

Meaning = tuple[str, ...]
"""Texts whose vectors add up: a passage alone, or the relations of a path."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One question; what is right or wrong for another question counts against it as well."""

    asked: str
    right: tuple[Meaning, ...]
    wrong: tuple[Meaning, ...] = ()
