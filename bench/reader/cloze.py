"""Cloze questions without a model: a sentence with one name or number left out.

Read against another passage in which the same name stands with several words of the sentence, they
teach the encoder to find spans before the few real questions do.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from bench.reader.examples import Example, Passage

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_NAME = re.compile(
    r"\b(?:[A-Z][\w'’-]+(?: (?:of|de|von|van|the|and) (?=[A-Z]))?(?: [A-Z][\w'’-]+)*"
    r"|\d[\d,.]*\d|\d+)\b"
)
_WORD = re.compile(r"[a-z]{4,}")
_BLANKS = ("what", "which", "who", "___", "what", "[MASK]")
MIN_SHARED = 2  # words of the sentence that the other passage must have too


def write_clozes(passages: Sequence[Passage], most: int, seed: int) -> list[Example]:
    """Clozes answered by the same passage or a similar one, at most so many."""
    rng = random.Random(seed)
    by_id = {one.id: one for one in passages}
    order = list(passages)
    rng.shuffle(order)
    made: list[Example] = []
    per_passage = max(2, -(-most // max(1, len(order))))
    for passage in order:
        found = list(_clozes_of(passage, by_id, rng))
        rng.shuffle(found)
        made += found[:per_passage]
        if len(made) >= most:
            break
    return made[:most]


def _clozes_of(
    passage: Passage, by_id: dict[str, Passage], rng: random.Random
) -> Iterator[Example]:
    sentences = _SENTENCE.split(passage.text)
    others = [by_id[one] for one in passage.similar if one in by_id]
    for number, sentence in enumerate(sentences):
        names = [m for m in _NAME.finditer(sentence) if m.start() > 0 and len(m.group()) > 2]
        if not names or not 6 <= len(sentence.split()) <= 45:
            continue
        name = rng.choice(names)
        asked = sentence[: name.start()] + rng.choice(_BLANKS) + sentence[name.end() :]
        rest = " ".join(sentences[:number] + sentences[number + 1 :])
        words = set(_WORD.findall(sentence.lower()))
        for text in (Passage(passage.id, passage.title, rest, passage.source), *others):
            yield from _read_against(asked, name.group(), words, text, rng)


def _read_against(
    asked: str, name: str, words: set[str], passage: Passage, rng: random.Random
) -> Iterator[Example]:
    """The cloze over a passage: the occurrence with most words around it, or no answer."""
    places = [m.start() for m in re.finditer(re.escape(name), passage.text)]
    if not places:
        if rng.random() < 0.15:
            yield Example(asked, (passage,), None, "cloze")
        return
    near: dict[int, int] = defaultdict(int)
    for at in places:
        around = passage.text[max(0, at - 150) : at + len(name) + 150].lower()
        near[at] = len(words & set(_WORD.findall(around)))
    best = max(places, key=lambda at: near[at])
    if near[best] >= MIN_SHARED:
        yield Example(asked, (passage,), (0, best, best + len(name)), "cloze")
