"""Short texts of many kinds and questions about them, written by hand for the reader.

`notes.jsonl.gz` holds one text or a few that belong together a line: `docs` with title and text,
and `asks` with wordings, and either `answer` (a part of the text of `doc`; `sentence` says which
where it stands there twice; `via` another text that the question goes through), `says` (yes or no,
with the `sentence` that decides) or `none` (with what is `near` to an answer).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.reader.examples import Example, Passage, Pool, read_lines

NOTES = Path(__file__).with_name("notes.jsonl.gz")
_HELD = 8  # every eighth line is held out
_SIMILAR = 6  # texts of neighbouring lines that are read beside one
_CLOSED = re.compile(
    r"(?:so |and |but |please,? |is it true that |i wonder (?:if|whether) )?"
    r"(?:is|are|was|were|do|does|did|can|could|may|must|has|have|had|will|would|should|am)(?:n't)?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class NoteAsk:
    """One question in several wordings."""

    wordings: tuple[str, ...]
    doc: int
    example: Example
    statement: tuple[str, str] | None = None
    """The sentence that decides a question to be answered by yes or no, and which it is."""
    near: str = ""
    """What seems to answer a question that the texts do not answer."""

    @property
    def none(self) -> bool:
        """Whether the texts do not answer it."""
        return self.example.answer is None and self.statement is None

    @property
    def is_closed(self) -> bool:
        """Whether yes or no would be an answer."""
        return self.statement is not None or _CLOSED.match(self.wordings[0]) is not None


@dataclass(frozen=True, slots=True)
class Note:
    """Texts that belong together, and the questions about them."""

    passages: tuple[Passage, ...]
    asks: tuple[NoteAsk, ...]
    similar: tuple[Passage, ...]
    """Texts of neighbouring lines."""
    held: bool


def read_notes(file: Path = NOTES) -> list[Note]:
    """Read all notes."""
    rows = list(read_lines(file))
    every = [_make_passages(number, row) for number, row in enumerate(rows)]
    found = []
    for number, row in enumerate(rows):
        near = every[max(0, number - _SIMILAR // 2) : number + _SIMILAR // 2 + 1]
        similar = tuple(one for some in near if some is not every[number] for one in some)
        asks = tuple(_make_ask(ask, every[number]) for ask in row["asks"])
        found.append(Note(every[number], asks, similar, number % _HELD == 0))
    return found


def load_notes(pool: Pool, file: Path = NOTES) -> list[Example]:
    """Add the questions with a span, or none, and the texts to a pool; return those held out."""
    held: list[Example] = []
    for note in read_notes(file):
        near = tuple(one.id for one in (*note.passages, *note.similar))
        pool.passages |= {
            one.id: Passage(one.id, one.title, one.text, "note", _without(near, one.id))
            for one in note.passages
        }
        for example in _list_examples(note):
            if note.held:
                held.append(example)
            elif len(example.passages) > 1:
                pool.two_hop.append(example)
            else:
                pool.written.append(example)
    return held


def _without(ids: tuple[str, ...], own: str) -> tuple[str, ...]:
    return tuple(one for one in ids if one != own)


def _list_examples(note: Note) -> Iterator[Example]:
    for ask in note.asks:
        if ask.statement is None and not (ask.none and ask.is_closed):
            one = ask.example
            for question in ask.wordings:
                yield Example(question, one.passages, one.answer, one.kind, one.golds)


def _make_passages(number: int, row: dict[str, Any]) -> tuple[Passage, ...]:
    return tuple(
        Passage(f"note-{number}-{at}", doc["title"], doc["text"], "note")
        for at, doc in enumerate(row["docs"])
    )


def _make_ask(ask: dict[str, Any], passages: tuple[Passage, ...]) -> NoteAsk:
    at = ask.get("doc", 0)
    texts, answer, golds = (passages[at],), None, ()
    statement = (ask["sentence"], ask["says"]) if ask.get("says") else None
    if statement is None and not ask.get("none"):
        first = _find_answer(passages[at].text, ask)
        golds = (ask["answer"],)
        if (via := ask.get("via")) is not None and via != at:
            texts = (passages[via], passages[at])
        answer = (len(texts) - 1, first, first + len(ask["answer"]))
    wordings, near = tuple(ask["q"]), str(ask.get("near", ""))
    example = Example(wordings[0], texts, answer, "human", golds)
    return NoteAsk(wordings, at, example, statement, near)


def _find_answer(text: str, ask: dict[str, Any]) -> int:
    sentence = ask.get("sentence", "")
    start = text.find(sentence) if sentence else 0
    return text.find(ask["answer"], max(start, 0))
