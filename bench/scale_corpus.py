"""Synthetic world of any size: people, firms and ships with repeated names and known answers.

Each passage is about one subject, which other passages mention. A few towns and trades are very
frequent and most are rare, as in real text. A passage is the same in every world that has it.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from clew.text.unicode import digest
from clew.types import Document

_GIVEN = (
    "Ada Agnes Albert Alma Anders Anton Astrid August Beatrix Bernard Bertha Boris Carla Casper "
    "Clara Conrad Dagmar Daniel Doris Edgar Edith Elsa Emil Erika Ernst Esther Felix Flora Frida "
    "Georg Gerda Greta Gustav Hannah Harald Hedda Hugo Ida Ingrid Irene Ivan Jakob Johanna Josef "
    "Karin Klaus Lars Laura Leon Lotte Ludwig Magda Marta Max Miriam Nadia Nils Nora Olga Oscar "
    "Otto Paula Peter Petra Ralf Rosa Rudolf Sara Selma Simon Sofia Stefan Sven Tilda Thea Tomas "
    "Ulla Ursula Viktor Vera Walter Wanda Werner Yvonne Zelda Zoltan"
).split()
_STARTS = (
    "Ahl Bar Berg Birk Bran Dahl Eck Ek Fal Fors Gran Gul Hag Hall Hart Heid Holm Horn Kal Kar "
    "Klint Kron Lind Lund Mal Mar Nor Nyl Ost Palm Quist Ros Rud Sand Sel Sjo Stark Sten Strand "
    "Sund Tal Thor Ulf Vall Vik Wal West Wik Zell"
).split()
_ENDS = (
    "berg born by dal dorf feld gren haus heim holt lund mann mark mer nes quist sen stad strom "
    "vik wald"
).split()
_TRADES = (
    "clockmaker botanist shipwright cartographer glassblower printer surveyor organist brewer "
    "engraver"
).split()
_GOODS = "salt glass rope paper tin wool copper tar amber clocks".split()
_TOWNS = [
    f"{start}{end}" for start in _STARTS for end in ("haven", "ford", "wick", "mouth", "burg")
]


@dataclass(frozen=True)
class WorldQuestion:
    """A question, the passages that answer it, and the answer."""

    text: str
    gold: tuple[str, ...]
    answer: str


def make_passages(count: int, first: int = 0) -> Iterator[Document]:
    """Yield the passages `first` to `first + count`."""
    for number in range(first, first + count):
        title, text = name_subject(number), " ".join(_describe(number))
        yield Document(digest(title, text), text, title, (passage_name(number),))


def passage_name(number: int) -> str:
    """Name of a passage's document."""
    return f"passage-{number}"


def make_world_questions(count: int, passages: int) -> Iterator[WorldQuestion]:
    """Yield questions with one and with two steps, over all the passages."""
    rng = random.Random(5)
    for n in range(count):
        number = rng.randrange(max(4, passages // 4), passages)
        master = _master_of(number)
        subject, town = name_subject(number), _town_of(number)
        if n % 2:
            asked = f"In which town was the teacher of {subject} born?"
            gold = passage_name(number), passage_name(master)
            yield WorldQuestion(asked, gold, _town_of(master))
        else:
            yield WorldQuestion(f"In which town was {subject} born?", (passage_name(number),), town)


def name_subject(number: int) -> str:
    """Full name of a passage's subject: given names and family names repeat, the whole hardly."""
    rng = random.Random(f"name {number}")
    middle = rng.choice("ABCDEFGHIJKLMNOPRSTUVW")
    family = f"{rng.choice(_STARTS)}{rng.choice(_ENDS)}{rng.choice(('', '', 'er', 'sson'))}"
    return f"{rng.choice(_GIVEN)} {middle}. {family}"


def _describe(number: int) -> list[str]:
    rng = random.Random(f"facts {number}")
    subject, town = name_subject(number), _town_of(number)
    born = rng.randint(1650, 1950)
    friend = name_subject(rng.randrange(max(1, number))) if number else "nobody"
    firm = f"{rng.choice(_STARTS)}{rng.choice(_ENDS)} & Sons"
    ship = f"the {rng.choice(_STARTS)} {rng.choice(('Star', 'Queen', 'Gull', 'Crown'))}"
    goods, buyers, first, last = rng.choice(_GOODS), *(_pick_town(rng) for _ in range(3))
    return [
        f"{subject} was a {rng.choice(_TRADES)} born in {town} in {born}.",
        f"{subject} was taught by {name_subject(_master_of(number))} until {born + 21}.",
        f"In {born + 25} {subject} joined {firm}, which traded {goods} with {buyers}.",
        f"Letters to {friend} describe the voyage of {ship} from {first} to {last}.",
    ]


def _master_of(number: int) -> int:
    return random.Random(f"master {number}").randrange(max(1, number))


def _town_of(number: int) -> str:
    return _pick_town(random.Random(f"town {number}"))


def _pick_town(rng: random.Random) -> str:
    return _TOWNS[int(len(_TOWNS) * rng.random() ** 3)]
