"""What an agent has worked out so far, as later prompts read it, and the pages it rests on."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from clew.agents.evidence import EvidenceLine, EvidencePage
from clew.agents.writing import UNKNOWN
from clew.llm.fit_prompt import shorten_text
from clew.llm.openai_api import estimate_tokens

NOTHING = "(nothing yet)"
_PLACEHOLDER = re.compile(r"(?<!\w)#(\d+)(?!\w)", re.ASCII)
_SHORT = 40  # tokens to which a context may be cut before any is cut further


@dataclass(frozen=True)
class Note:
    """One query with what was read for it and what that says."""

    query: str
    context: str = ""
    answer: str = ""
    page: EvidencePage = EvidencePage()
    """The evidence that was read."""
    kept: tuple[int, ...] | None = None
    """The numbers of the lines that matter; None: all."""
    number: int = 0
    """Its number in prompts, which placeholders of later queries refer to; 0: none."""
    planned: str = ""
    """The query as it was planned, with its placeholders."""

    def show(self, most: int | None = None) -> str:
        """Format for a prompt, the context cut to so many tokens."""
        context = self.context if most is None else shorten_text(self.context, most)
        head = f"#{self.number} {self.query}" if self.number else self.query
        parts = (head, context and f"Context: {context}", self.answer and f"Answer: {self.answer}")
        return "\n".join(filter(None, parts))

    def kept_lines(self) -> list[EvidenceLine]:
        """Return the lines of the page that matter."""
        if self.kept is None:
            return list(self.page.items)
        return [line for at, line in enumerate(self.page.items, start=1) if at in self.kept]


@dataclass(frozen=True)
class Notes:
    """Notes under headings, as a prompt's input: where room lacks, the oldest contexts are cut."""

    parts: Mapping[str, Sequence[Note | str]]

    def __bool__(self) -> bool:
        """Whether there is anything to read."""
        return any(self.parts.values())

    def __str__(self) -> str:
        """Format everything."""
        return self._format({})

    def fit(self, tokens: int) -> str:
        """Format within so many tokens: the contexts of the first notes are cut first."""
        oldest = chain.from_iterable(zip_longest(*self.parts.values()))
        most: dict[int, int] = {}
        for note in oldest:
            excess = estimate_tokens(self._format(most)) - tokens
            if excess <= 0:
                break
            if isinstance(note, Note):
                most[id(note)] = max(_SHORT, estimate_tokens(note.context) - excess)
        return shorten_text(self._format(most), tokens)

    def _format(self, most: Mapping[int, int]) -> str:
        shown = (
            "\n\n".join((f"{title}:", *(_show(one, most) for one in notes)))
            for title, notes in self.parts.items()
            if notes
        )
        return "\n\n".join(shown) or NOTHING


def _show(one: Note | str, most: Mapping[int, int]) -> str:
    return one if isinstance(one, str) else one.show(most.get(id(one)))


def format_numbers(numbers: Iterable[int]) -> str:
    """Format numbers in short: `1-4, 7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = (f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
    return ", ".join(parts) or "none"


def find_numbers(query: str) -> set[int]:
    """Return the numbers of the placeholders `#1`, `#2`, ... of a query."""
    return {int(number) for number in _PLACEHOLDER.findall(query)}


def fill_placeholders(query: str, notes: Iterable[Note]) -> str:
    """Put the answers of notes in the place of `#1`, `#2`, ...; what has no answer stays."""
    answers = {str(note.number): note.answer for note in notes if note.answer != UNKNOWN}
    return _PLACEHOLDER.sub(lambda found: answers.get(found[1]) or found[0], query)


def join_pages(notes: Iterable[Note]) -> EvidencePage:
    """Make one page of the lines that the notes kept, of all lines where they kept none.

    Each line stands there once, at the best of its places: where room lacks, a prompt shows the
    best lines of every note.
    """
    notes = list(notes)
    kept = [line for note in notes for line in note.kept_lines()]
    lines: dict[str, EvidenceLine] = {}
    for line in kept or [line for note in notes for line in note.page.items]:
        place = min(line.place, lines[line.text].place) if line.text in lines else line.place
        lines[line.text] = replace(line, place=place)
    kinds = list(dict.fromkeys(line.kind for line in lines.values()))
    return EvidencePage(tuple(sorted(lines.values(), key=lambda line: kinds.index(line.kind))))
