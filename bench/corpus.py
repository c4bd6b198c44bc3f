"""A made-up corpus: passages of about 100 tokens whose names meet again in other passages."""

import random
import re
from collections.abc import Iterator

from clew.text import digest
from clew.types import Document

_ONSETS = "b d f g h k l m n p r s t v br dr kl st tr".split()
_RHYMES = "a e i o u an el in or us".split()
_NAME = re.compile("[A-Z][a-z]+ [A-Z][a-z]+")
_DEEDS = (
    "was founded by",
    "lies near",
    "trades with",
    "was mapped by",
    "supplies",
    "was named after",
    "quarrelled with",
    "was taught by",
)
_WHEN = ("after the winter of", "as told in", "by a treaty of", "until the flood of")


def documents(count: int, first: int = 0) -> Iterator[Document]:
    """Passages `first` to `first + count`, the same in every run."""
    names = _names(random.Random(7), 4000)
    for number in range(first, first + count):
        chance = random.Random(number)
        own = f"{_name(chance)} {number}"
        # Low numbers come more often, as names do in real text.
        met = [names[int(len(names) * chance.random() ** 2)] for _ in range(6)]
        lines = [f"{own} {chance.choice(_DEEDS)} {met[0]} in {chance.randint(1700, 2020)}."]
        for one, other in zip(met, met[1:], strict=False):
            year = chance.randint(1700, 2020)
            lines.append(f"{one} {chance.choice(_DEEDS)} {other} {chance.choice(_WHEN)} {year}.")
        text = " ".join(lines)
        yield Document(digest(own, text), text, own, (f"passage-{number}",))


def questions(count: int) -> Iterator[str]:
    """Questions on names that stand together in a passage; no two are the same."""
    for number, document in enumerate(documents(count)):
        names = _NAME.findall(document.text)
        yield f"what joins {names[0]} to {names[-1]}, as told in record {number}?"


def _name(chance: random.Random) -> str:
    sounds = [chance.choice(_ONSETS) + chance.choice(_RHYMES) for _ in range(4)]
    return f"{(sounds[0] + sounds[1]).title()} {(sounds[2] + sounds[3]).title()}"


def _names(chance: random.Random, count: int) -> list[str]:
    return [_name(chance) for _ in range(count)]
