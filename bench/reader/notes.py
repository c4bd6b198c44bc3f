"""Short texts of many kinds and questions about them, written by hand for the reader.

`notes.jsonl.gz` holds one text or a few that belong together a line: `docs` with title and text,
and `asks` with wordings, and either `answer` (a part of the text of `doc`; `sentence` says which
where it stands there twice; `via` another text that the question goes through) or `none`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.reader.examples import Example, Passage, Pool, read_lines

NOTES = Path(__file__).with_name("notes.jsonl.gz")
_HELD = 8  # every eighth line is held out
_SIMILAR = 6  # texts of neighbouring lines that are read beside one


def load_notes(pool: Pool, file: Path = NOTES) -> list[Example]:
    """Add the questions and texts to a pool; return those held out."""
    held: list[Example] = []
    lines = [(number, row) for number, row in enumerate(read_lines(file))]
    ids = [[f"note-{number}-{at}" for at in range(len(row["docs"]))] for number, row in lines]
    for number, row in lines:
        near = ids[max(0, number - _SIMILAR // 2) : number + _SIMILAR // 2 + 1]
        others = [one for some in near for one in some]
        passages = [
            Passage(own, doc["title"], doc["text"], "note", tuple(o for o in others if o != own))
            for own, doc in zip(ids[number], row["docs"], strict=True)
        ]
        pool.passages |= {one.id: one for one in passages}
        for example in _list_examples(row, passages):
            if number % _HELD == 0:
                held.append(example)
            elif len(example.passages) > 1:
                pool.two_hop.append(example)
            else:
                pool.written.append(example)
    return held


def _list_examples(row: dict[str, Any], passages: list[Passage]) -> Iterator[Example]:
    for ask in row["asks"]:
        at = ask.get("doc", 0)
        answer, golds = None, ()
        texts: tuple[Passage, ...] = (passages[at],)
        if not ask.get("none"):
            first = _find_answer(passages[at].text, ask)
            golds = (ask["answer"],)
            if (via := ask.get("via")) is not None and via != at:
                texts = (passages[via], passages[at])
            answer = (len(texts) - 1, first, first + len(ask["answer"]))
        for question in ask["q"]:
            yield Example(question, texts, answer, "human", golds)


def _find_answer(text: str, ask: dict[str, Any]) -> int:
    sentence = ask.get("sentence", "")
    start = text.find(sentence) if sentence else 0
    return text.find(ask["answer"], max(start, 0))
