"""What a search and an answer are worth, given the gold span of a question."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from bench.machine import read_jsonl
from clew.agents.base import Answer
from clew.types import Passage

_LABEL = re.compile(r"\| [^|:\n]{1,60}: ")  # of a value in a row, as readers write tables
UNANSWERABLE = "unanswerable"
COVERED = 0.8  # share of the gold span that a text must have in one piece
HALF = 0.5  # share of the items of a list, and of an accepted answer, that a headline must name
SHORT = 6  # characters below which an answer is too common a word to be looked for anywhere
CONFIDENT = 0.5  # an answer that states a confidence is named from here on


@dataclass(frozen=True)
class DocumentQuestion:
    """A question, the span that answers it and the short answers that are accepted."""

    id: str
    question: str
    file: str = ""
    quote: str = ""
    corpus: str = ""
    kind: str = ""
    split: str = "dev"
    also: tuple[str, ...] = ()
    """Other spans that answer it as well."""
    answers: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    """Everything that a complete answer to a list or a sequence of steps names."""
    cells: tuple[str, ...] = ()
    """Values of the gold row of a table, however a reader lays out rows."""
    twin_of: str = ""

    @property
    def spans(self) -> tuple[str, ...]:
        """All spans that answer the question."""
        return (self.quote, *self.also)


@dataclass(frozen=True)
class Score:
    """How one question went; None is what an unanswerable question does not have."""

    question: DocumentQuestion
    read: bool | None
    found: bool | None
    quoted: bool | None
    items: float | None
    wrong_headline: bool
    refused: bool
    milliseconds: float
    headline: str = field(default="", compare=False)
    answer: str = field(default="", compare=False)


def load_questions(folder: Path, corpus: str) -> list[DocumentQuestion]:
    """Read all questions of a corpus."""
    return [make_question(row) for row in read_jsonl(folder / f"{corpus}.jsonl")]


def make_question(row: dict[str, Any]) -> DocumentQuestion:
    """Make a question of its JSON object; lists become tuples."""
    fields: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in row.items()
    }
    return DocumentQuestion(**fields)


def squeeze(text: str) -> str:
    """Keep letters and digits only: spaces and marks depend on how a file is read."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def space_words(text: str) -> str:
    """Put one space around every word, and around every character of a script without spaces."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    marked = re.sub(r"([\u2e80-\u9fff\uf900-\ufaff])", r" \1 ", plain)
    return " ".join(["", *re.findall(r"[^\W_]+", marked), ""])


def split_cells(span: str) -> list[str]:
    """Return the cells of a span that is a row of a table, however readers lay it out; else []."""
    return [cell for cell in span.split("|") if squeeze(cell)] if span.lstrip()[:1] == "|" else []


def strip_labels(text: str) -> str:
    """Return a text whose table rows have values only, as they are laid out in the file."""
    return _LABEL.sub("| ", text)


def covers(text: str, span: str) -> bool:
    """Tell whether the text has most of the span in one piece, or all cells of a row in a line."""
    return _covers(text, span) or ("| " in text and _covers(strip_labels(text), span))


def _covers(text: str, span: str) -> bool:
    if cells := split_cells(span):
        lines = map(squeeze, text.split("\n"))
        return any(all(squeeze(cell) in line for cell in cells) for line in lines)
    whole, part = squeeze(text), squeeze(span)
    if not part:
        return False
    if part in whole:
        return True
    matcher = SequenceMatcher(None, whole, part, autojunk=False)
    return matcher.find_longest_match().size >= COVERED * len(part)


def mentions(text: str, answer: str) -> bool:
    """Tell whether the text has the answer as whole words, or a sign such as `-x` by itself."""
    words = space_words(answer)
    if len(words.strip()) >= 3:
        return words in space_words(text)
    return re.search(rf"(?<![\w-]){re.escape(answer)}(?!\w)", text) is not None


def holds_span(question: DocumentQuestion, passage: Passage) -> bool:
    """Tell whether a passage has a gold span, or the values of the gold row."""
    if question.cells:
        return all(mentions(passage.text, cell) for cell in question.cells)
    return any(covers(passage.text, span) for span in question.spans)


def is_read(question: DocumentQuestion, squeezed: str) -> bool:
    """Tell whether a gold span, or the gold row's values, are in the squeezed text of its file."""
    spans = [question.cells or split_cells(span) or [span] for span in question.spans]
    return any(all(squeeze(part) in squeezed for part in parts) for parts in spans)


def quotes_answer(question: DocumentQuestion, answer: Answer) -> bool:
    """Tell whether a citation overlaps the gold span, or the answer names what is accepted.

    A short accepted answer must be named as the answer or in a quote from the gold file.
    """
    quotes = [citation.quote for citation in answer.citations]
    if any(covers(quote, span) for quote in quotes for span in question.spans):
        return True
    file = question.file.removesuffix(".gz")
    near = [citation.quote for citation in answer.citations if file in citation.doc]
    return any(
        mentions(text, accepted)
        for accepted in question.answers
        for text in (
            answer.candidate,
            *near,
            *([answer.answer] if len(squeeze(accepted)) >= SHORT else []),
        )
    )


def accepts_headline(question: DocumentQuestion, headline: str) -> bool:
    """Tell whether the answer that is named is an accepted one, or quotes the gold span."""
    said = squeeze(headline)
    if any(mentions(headline, accepted) for accepted in question.answers):
        return True
    if any(mentions(a, headline) and len(said) >= HALF * len(squeeze(a)) for a in question.answers):
        return True
    if question.items and share_items(question, headline) >= HALF:
        return True
    return any(covers(headline, span) for span in question.spans)


def share_items(question: DocumentQuestion, text: str) -> float:
    """Return the share of the items that the text names."""
    return sum(mentions(text, item) for item in question.items) / len(question.items)


def score_answer(
    question: DocumentQuestion,
    passages: Sequence[Passage],
    answer: Answer,
    milliseconds: float,
    read: bool = True,
) -> Score:
    """Compare what was found and answered with the gold span."""
    refused = answer.verdict == "refused"
    confidence = getattr(answer, "confidence", None)
    sure = not isinstance(confidence, float) or confidence >= CONFIDENT
    headline = answer.candidate if sure and not refused else ""
    asked = question.kind != UNANSWERABLE
    return Score(
        question,
        read if asked else None,
        any(holds_span(question, passage) for passage in passages) if asked else None,
        (not refused and quotes_answer(question, answer)) if asked else None,
        (share_items(question, answer.answer) if question.items and asked else None),
        bool(headline) and not (asked and accepts_headline(question, headline)),
        refused,
        milliseconds,
        headline,
        answer.answer,
    )


def summarize(scores: Iterable[Score]) -> dict[str, Any]:
    """Return the mean of every measure over the questions that have it."""
    values: dict[str, list[float]] = defaultdict(list)
    for score in scores:
        asked = score.question.kind != UNANSWERABLE
        values["refused" if asked else "unanswerable refused"].append(score.refused)
        values["wrong headline"].append(score.wrong_headline)
        values["ms"].append(score.milliseconds)
        for name in ("read", "found", "quoted", "items"):
            value = getattr(score, name)
            if value is not None:
                values[name].append(float(value))
    means = {name: round(sum(some) / len(some), 3) for name, some in values.items()}
    return means | {"n": len(values["ms"])}


def compare_twins(scores: Sequence[Score]) -> dict[str, Any]:
    """Return the means of reworded questions and of the originals, side by side."""
    twins = [score for score in scores if score.question.twin_of]
    originals = {score.question.twin_of for score in twins}
    first = [score for score in scores if score.question.id in originals]
    changed = {score.question.twin_of: score for score in twins}
    same = [
        changed[score.question.id].quoted == score.quoted
        for score in first
        if score.question.id in changed
    ]
    return {
        "original": summarize(first),
        "reworded": summarize(twins),
        "same": round(sum(same) / len(same), 3) if same else None,
    }
