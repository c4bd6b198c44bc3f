"""Training examples of the reader: read from files, composed anew for every epoch, encoded."""

import gzip
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.reader.wording import vary_question
from clew.reader.windows import Window, WindowMaker

HELD_OUT_EVERY = 3  # every third article of SQuAD is kept for measuring
_NAMES = re.compile(r"\s[\"'“‘`-]*[A-Z0-9]|_|\w\.\w")
FIRST_TRAINING_QUESTION = 400  # of 2Wiki: those before it measure


@dataclass(frozen=True, slots=True)
class Passage:
    """A text with its title; `similar` are passages that look alike and say something else."""

    id: str
    title: str
    text: str
    source: str = ""
    similar: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A question over passages; `answer` is (passage, start, end), or None where there is none."""

    question: str
    passages: tuple[Passage, ...]
    answer: tuple[int, int, int] | None
    kind: str
    golds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Encoded:
    """One window as the model sees it; start and end 0 mean "no answer"."""

    ids: list[int]
    types: list[int]
    allowed: list[bool]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Mixture:
    """How examples of an epoch are composed."""

    together: float = 0.3
    """Share of questions about one passage that are read with others around it."""
    negatives: float = 0.4
    """Windows without the answer per answered question."""
    human: int = 6
    """Repetitions of each human question."""
    written: float = 1.0
    """Share of the written questions about one passage that an epoch draws."""
    two_hop: int = 3
    """Repetitions of each written question over two passages."""
    wiki: float = 0.08
    """Largest share of 2Wiki questions."""
    vary: float = 0.35
    """Share of questions whose wording is varied."""


@dataclass
class Pool:
    """All questions to draw from, with the passages by id."""

    passages: dict[str, Passage] = field(default_factory=dict)
    human: list[Example] = field(default_factory=list)
    written: list[Example] = field(default_factory=list)
    two_hop: list[Example] = field(default_factory=list)
    wiki: list[Example] = field(default_factory=list)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read JSON lines, gzipped or not; a last line cut off is left out."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:  # type: ignore[operator]
        try:
            for line in file:
                if line.endswith("\n"):
                    yield json.loads(line)
        except EOFError:  # a gzip file that was still being written
            return


def load_passages(path: Path) -> dict[str, Passage]:
    """Read the passages that `bench.reader.passages` collected."""
    return {
        row["id"]: Passage(
            row["id"], row["title"], row["text"], row["source"], tuple(row["similar"])
        )
        for row in read_lines(path)
        if row.get("text")
    }


def load_squad(folder: Path, *, held: bool) -> list[Example]:
    """SQuAD questions of the articles held out, or of the others."""
    corpus = {row["id"]: row for row in read_lines(folder / "corpus.jsonl")}
    articles = list(dict.fromkeys(row["title"] for row in corpus.values()))
    chosen = {
        title for number, title in enumerate(articles) if (number % HELD_OUT_EVERY == 1) is held
    }
    made = []
    for row in read_lines(folder / "questions.jsonl"):
        page = corpus[row["gold"][0]]
        if page["title"] not in chosen:
            continue
        passage = Passage(page["id"], page["title"], page["text"], "squad2")
        spans = row["spans"] if row["answerable"] else []
        answer = (0, *max(spans, key=spans.count)) if spans else None
        golds = tuple(row["answers"]) if spans else ()
        made.append(Example(row["question"], (passage,), answer, "human", golds))
    return made


def load_2wiki(
    folder: Path, first: int = FIRST_TRAINING_QUESTION, last: int = 10**9
) -> list[Example]:
    """2Wiki questions of these numbers whose answer stands in a gold passage."""
    corpus = {row["id"]: row for row in read_lines(folder / "corpus.jsonl")}
    made = []
    for number, row in enumerate(read_lines(folder / "questions.jsonl")):
        pages = [corpus[one] for one in row["gold"]]
        if not first <= number < last or row["answer"].lower() in ("yes", "no"):
            continue
        passages = tuple(Passage(str(p["id"]), p["title"], p["text"], "2wiki") for p in pages)
        for at in reversed(range(len(passages))):  # the last passage of a chain has the answer
            start = passages[at].text.find(row["answer"])
            if start >= 0:
                answer = (at, start, start + len(row["answer"]))
                made.append(Example(row["question"], passages, answer, "2wiki", (row["answer"],)))
                break
    return made


def load_written(
    files: Sequence[Path], passages: Mapping[str, Passage]
) -> tuple[list[Example], list[Example]]:
    """Questions the model wrote: about one passage (or none of it), and about two."""
    single, double = [], []
    for path in files:
        for row in read_lines(path):
            texts = tuple(passages[one] for one in row["passages"] if one in passages)
            if len(texts) != len(row["passages"]):
                continue
            span = row.get("answer")
            answer = (span[0], span[1], span[2]) if span else None
            kind = row["kind"]
            one = Example(row["question"], texts, answer, kind)
            (double if kind == "two-hop" else single).append(one)
    return single, double


def compose_epoch(pool: Pool, mixture: Mixture, rng: random.Random) -> list[Example]:
    """Draw the examples of one epoch: alone, with others around, and with no answer."""
    out: list[Example] = []
    for example in pool.written:
        if rng.random() < mixture.written:
            out += _compose_single(example, pool, mixture, rng)
    for example in pool.human * mixture.human:
        out += _compose_single(example, pool, mixture, rng)
    for example in pool.two_hop * mixture.two_hop:
        out += _compose_chain(example, pool, mixture, rng)
    room = int(mixture.wiki * len(out) / max(1e-9, 1 - mixture.wiki))
    chosen: list[Example] = []
    while pool.wiki and len(chosen) < min(room, 4 * len(pool.wiki)):
        chosen += _compose_chain(rng.choice(pool.wiki), pool, mixture, rng)
    out += chosen
    rng.shuffle(out)
    return [
        replace(one, question=vary_question(one.question, rng))
        if rng.random() < mixture.vary
        else one
        for one in out
    ]


def _compose_single(
    example: Example, pool: Pool, mixture: Mixture, rng: random.Random
) -> list[Example]:
    others = _find_distractors(example, pool, rng)
    out = [example]
    # "When was the film released?" can be asked of one page only.
    named = example.kind == "human" or _NAMES.search(example.question) is not None
    if others and named and rng.random() < mixture.together:
        out = [_surround(example, others[: rng.randint(1, 2)], rng)]
    if example.answer is not None and others and named and rng.random() < mixture.negatives:
        count = rng.choice((1, 1, 2, 3))
        out.append(Example(example.question, tuple(others[:count]), None, "negative"))
    return out


def _compose_chain(
    example: Example, pool: Pool, mixture: Mixture, rng: random.Random
) -> list[Example]:
    """A question over several passages: with distractors, and without the answering passage."""
    others = _find_distractors(example, pool, rng)
    out = [_surround(example, others[: rng.choice((0, 0, 1, 2))], rng)]
    if example.answer is not None and rng.random() < mixture.negatives:
        at, start, end = example.answer
        gold = example.passages[at].text[start:end].lower()
        rest = [one for number, one in enumerate(example.passages) if number != at]
        kept = [one for one in [*rest, *others[:1]] if gold not in one.text.lower()]
        if kept:
            out.append(Example(example.question, tuple(kept[:3]), None, "negative"))
    return out


def _find_distractors(example: Example, pool: Pool, rng: random.Random) -> list[Passage]:
    """Similar passages that do not contain the answer."""
    ids = [one for passage in example.passages for one in passage.similar]
    if not ids:
        ids = [one for passage in example.passages for one in _kin(passage, pool)]
    own = {passage.id for passage in example.passages}
    found = [pool.passages[one] for one in ids if one in pool.passages and one not in own]
    if example.answer is not None:
        at, start, end = example.answer
        gold = example.passages[at].text[start:end].lower()
        found = [one for one in found if gold not in one.text.lower()]
    rng.shuffle(found)
    return found


def _kin(passage: Passage, pool: Pool) -> tuple[str, ...]:
    known = pool.passages.get(f"{passage.source}-{passage.id}")
    return known.similar if known else ()


def _surround(example: Example, others: Sequence[Passage], rng: random.Random) -> Example:
    """Put other passages around those of the example, in any order."""
    order = [*range(len(example.passages) + len(others))]
    rng.shuffle(order)
    everything = [*example.passages, *others]
    answer = example.answer
    if answer is not None:
        answer = (order.index(answer[0]), answer[1], answer[2])
    return replace(example, passages=tuple(everything[at] for at in order), answer=answer)


def encode_example(maker: WindowMaker, example: Example, limit: int = 512) -> list[Encoded]:
    """Windows of the example; empty where the answer was cut off."""
    return [labelled for _, labelled in label_windows(maker, example, limit)]


def label_windows(
    maker: WindowMaker, example: Example, limit: int = 512
) -> list[tuple[Window, Encoded]]:
    """Windows of the example with their labels; empty where the answer was cut off."""
    texts = [one.text for one in example.passages]
    titles = [one.title for one in example.passages]
    if len(texts) == 1:
        windows = maker.separate(example.question, texts, titles)
    else:
        windows = [maker.together(example.question, texts, titles, limit)]
    found = [(window, _label_window(window, example.answer)) for window in windows]
    # A window without the answer says so, but one of them must have it.
    if example.answer is not None and not any(one.start for _, one in found):
        return []
    return found


def _label_window(window: Window, answer: tuple[int, int, int] | None) -> Encoded:
    start = end = 0
    if answer is not None:
        number, first, last = answer
        for at, passage in enumerate(window.passages):
            if passage == number and window.starts[at] < window.ends[at]:
                if window.starts[at] <= first < window.ends[at]:
                    start = at
                if window.starts[at] < last <= window.ends[at]:
                    end = at
        if not start or not end or end < start:
            start = end = 0
    allowed = [at == 0 or passage >= 0 for at, passage in enumerate(window.passages)]
    return Encoded(window.ids, window.types, allowed, start, end)
