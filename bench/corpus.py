"""Synthetic corpus: passages of about 100 tokens that share names."""

import random
import re
from collections.abc import Iterator

from clew.text.unicode import digest
from clew.types import Document

_ONSETS = "b d f g h k l m n p r s t v br dr kl st tr".split()
_RHYMES = "a e i o u an el in or us".split()
_NAME = re.compile("[A-Z][a-z]+ [A-Z][a-z]+")
_RELATION_PHRASES = (
    "was founded by",
    "lies near",
    "trades with",
    "was mapped by",
    "supplies",
    "was named after",
    "quarrelled with",
    "was taught by",
)
_TIME_PHRASES = ("after the winter of", "as told in", "by a treaty of", "until the flood of")


def make_documents(count: int, first: int = 0) -> Iterator[Document]:
    """Yield passages `first` to `first + count`, the same in every run."""
    names = _make_names(random.Random(7), 4000)
    for number in range(first, first + count):
        rng = random.Random(number)
        title = f"{_make_name(rng)} {number}"
        # Low-numbered names are more frequent, as in real text.
        others = [names[int(len(names) * rng.random() ** 2)] for _ in range(6)]
        lines = [
            f"{title} {rng.choice(_RELATION_PHRASES)} {others[0]} in {rng.randint(1700, 2020)}."
        ]
        for one, other in zip(others, others[1:], strict=False):
            year = rng.randint(1700, 2020)
            lines.append(
                f"{one} {rng.choice(_RELATION_PHRASES)} {other} {rng.choice(_TIME_PHRASES)} {year}."
            )
        text = " ".join(lines)
        yield Document(digest(title, text), text, title, (f"passage-{number}",))


def make_questions(count: int) -> Iterator[str]:
    """Yield distinct questions on names that co-occur in a passage."""
    for number, document in enumerate(make_documents(count)):
        names = _NAME.findall(document.text)
        yield f"what joins {names[0]} to {names[-1]}, as told in record {number}?"


def _make_name(chance: random.Random) -> str:
    sounds = [chance.choice(_ONSETS) + chance.choice(_RHYMES) for _ in range(4)]
    return f"{(sounds[0] + sounds[1]).title()} {(sounds[2] + sounds[3]).title()}"


def _make_names(chance: random.Random, count: int) -> list[str]:
    return [_make_name(chance) for _ in range(count)]
