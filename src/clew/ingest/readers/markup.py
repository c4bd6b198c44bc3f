"""Writes the markup of `clew.text.structure` block by block, for readers of source formats."""

from collections import Counter
from dataclasses import dataclass, field

_MAX_CONTAINERS = 12  # what is nested deeper is not indented further
_MAX_TERMS = 400
_LEAST_WORDS = 3  # of a description that says something
_PUNCTUATION = ".,:;!?()\"'“”’"
_BODY, _INDENT = ":   ", "    "


def describe_image(said: str) -> str:
    """Return the description of an image as text; "" if it is a label or the name of a file."""
    said = " ".join(said.split())
    words = sum(word.strip(_PUNCTUATION).isalpha() for word in said.split())
    return f" (image: {said.rstrip('.')}) " if words >= _LEAST_WORDS else ""


@dataclass(slots=True)
class _Container:
    marker: str
    indent: str
    count: int = 0


@dataclass(slots=True)
class MarkupWriter:
    """Collects headings, paragraphs, lists, definitions and code in order."""

    marked: Counter[str] = field(default_factory=Counter)
    """What the source marks as code or as a defined term, with how often."""
    _lines: list[str] = field(default_factory=list)
    _containers: list[_Container] = field(default_factory=list)
    _depth: int = 0
    _after_term: bool = False

    def terms(self) -> dict[str, int]:
        """Return what is marked most often."""
        return dict(self.marked.most_common(_MAX_TERMS))

    def text(self) -> str:
        """Return what was written."""
        return "\n".join(self._lines).strip("\n")

    def heading(self, level: int, title: str) -> None:
        """Write a heading; it ends all lists and definitions."""
        self.close_all()
        title = " ".join(title.split())
        if title:
            self._gap()
            self._lines.append(f"{'#' * min(max(level, 1), 6)} {title}")

    def paragraph(self, text: str) -> None:
        """Write a paragraph on one line, its line breaks (`\\n`) kept."""
        lines = [" ".join(line.split()) for line in text.split("\n")]
        self._write([line for line in lines if line])

    def code(self, text: str) -> None:
        """Write a block of code as it is."""
        body = text.strip("\n").rstrip().split("\n")
        if any(line.strip() for line in body):
            mark = "~~~" if any(line.lstrip().startswith("```") for line in body) else "```"
            self._write([mark, *(line.rstrip() for line in body), mark])

    def rows(self, lines: list[str]) -> None:
        """Write the rows of a table."""
        self._write(lines)

    def term(self, text: str, *, is_name: bool = True) -> None:
        """Write a term; the body that follows is opened by `open_body`."""
        text = " ".join(text.split())
        if not text:
            return
        if not self._after_term:
            self._gap()
        self._lines.append(self._prefix() + text)
        self.marked.update([text] if is_name else [])
        self._after_term = True

    def open_body(self) -> None:
        """Begin the body of the term before."""
        self._open(_Container(_BODY if self._after_term else _INDENT, _INDENT))

    def open_item(self, marker: str = "-") -> None:
        """Begin a list item."""
        self._open(_Container(f"{marker} ", " " * (len(marker) + 1)))

    def close(self) -> None:
        """End the innermost item or body; terms without a body share that of the next one."""
        is_empty = False
        if self._depth > len(self._containers):
            self._depth -= 1
        elif self._containers:
            is_empty = self._containers.pop().marker == _BODY
            self._depth -= 1
        self._after_term &= is_empty

    def close_all(self) -> None:
        """End all items and bodies."""
        self._containers.clear()
        self._depth = 0
        self._after_term = False

    @property
    def depth(self) -> int:
        """How many items and bodies are open."""
        return self._depth

    def _open(self, container: _Container) -> None:
        self._depth += 1
        if len(self._containers) < _MAX_CONTAINERS:
            self._containers.append(container)

    def _write(self, lines: list[str]) -> None:
        if not lines:
            return
        begins_item = bool(self._containers) and bool(self._containers[-1].marker)
        if not (begins_item and self._after_term):
            self._gap()
        self._after_term = False
        for line in lines:
            self._lines.append((self._prefix() + line).rstrip())

    def _gap(self) -> None:
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def _prefix(self) -> str:
        written = []
        for container in self._containers:
            written.append(container.marker or container.indent)
            container.marker = ""
        return "".join(written)
