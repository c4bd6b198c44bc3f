"""A made-up corpus: passages of about 100 tokens whose names meet again in other passages."""

import random
from collections.abc import Iterator

from clew.text import digest
from clew.types import Document

_ONSETS = "b d f g h k l m n p r s t v br dr kl st tr".split()
_RHYMES = "a e i o u an el in or us".split()
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
            lines.append(
                f"After the long winter of {chance.randint(1700, 2020)} the people of {one} said "
                f"that it {chance.choice(_DEEDS)} {other}, and nobody there has denied it since."
            )
        text = " ".join(lines)
        yield Document(digest(own, text), text, own, (f"passage-{number}",))


def _name(chance: random.Random) -> str:
    sounds = [chance.choice(_ONSETS) + chance.choice(_RHYMES) for _ in range(4)]
    return f"{(sounds[0] + sounds[1]).title()} {(sounds[2] + sounds[3]).title()}"


def _names(chance: random.Random, count: int) -> list[str]:
    return [_name(chance) for _ in range(count)]
