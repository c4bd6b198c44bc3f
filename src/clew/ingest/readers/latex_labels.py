r"""Resolves the references of LaTeX: `\ref{sec:m}` becomes the title or the number it stands for.

Sections are named by their titles, because the text that is stored has no numbers of sections;
tables, figures and equations by their numbers, which their captions then begin with.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

_SECTIONS = "part|chapter|section|subsection|subsubsection|paragraph"
_FLOATS = {
    "figure": "Figure",
    "wrapfigure": "Figure",
    "table": "Table",
    "wraptable": "Table",
    "sidewaystable": "Table",
    "longtable": "Table",
    "algorithm": "Algorithm",
    "listing": "Listing",
}
_EQUATIONS = frozenset({"equation", "align", "gather", "multline", "eqnarray"})
_MARK = re.compile(
    rf"\\(?P<section>{_SECTIONS})(?P<star>\*?)\s*(?:\[[^\]\n]{{0,200}}\]\s*)?\{{"
    r"|\\(?P<bound>begin|end)\s*\{(?P<name>\w{1,30})\*?\}"
    r"|\\caption(?P<plain>\*?)\s*(?:\[[^\]\n]{0,200}\]\s*)?\{"
    r"|\\label\s*\{(?P<label>[^{}\n]{1,120})\}"
)
_REFERENCE = re.compile(
    r"\\(?P<kind>ref|eqref|autoref|cref|Cref|nameref|vref)\*?\s*\{(?P<label>[^{}\n]{1,120})\}"
)
_NAMED = frozenset({"autoref", "cref", "Cref"})  # commands that write the kind of thing, too
_TITLE = re.compile(r"(?:[^{}\\]|\\.|\{[^{}]{0,200}\}){0,300}")


@dataclass(frozen=True, slots=True)
class _Target:
    """What a label stands for: `Table` and `2`, or `Section` and its title."""

    kind: str = ""
    text: str = ""


@dataclass(slots=True)
class _Labels:
    """Follows sections, floats and equations in order, and keeps what each label stands for."""

    found: dict[str, _Target] = field(default_factory=dict)
    captions: list[tuple[int, str]] = field(default_factory=list)
    """Where the text of a numbered caption begins, and what to put before it."""
    _counts: Counter[str] = field(default_factory=Counter)
    _section: _Target = _Target()
    _here: list[tuple[str, _Target]] = field(default_factory=list)  # floats and equations around

    def read(self, text: str) -> None:
        for mark in _MARK.finditer(text):
            if mark["label"]:
                target = self._here[-1][1] if self._here else self._section
                self.found.setdefault(mark["label"].strip(), target)
            elif mark["section"]:
                title = _TITLE.match(text, mark.end())
                self._section = _Target("Section", title[0].strip() if title else "")
            elif mark["bound"]:
                self._bound(mark["name"], begins=mark["bound"] == "begin")
            elif not mark["plain"] and self._here and self._here[-1][0] in _FLOATS:
                target = self._count(_FLOATS[self._here[-1][0]])
                self._here[-1] = (self._here[-1][0], target)
                self.captions.append((mark.end(), f"{target.kind} {target.text}: "))

    def _bound(self, name: str, *, begins: bool) -> None:
        if begins and name in _FLOATS:
            self._here.append((name, self._section))
        elif begins and name in _EQUATIONS:
            self._here.append((name, self._count("Equation")))
        elif self._here and self._here[-1][0] == name:
            self._here.pop()

    def _count(self, kind: str) -> _Target:
        self._counts[kind] += 1
        return _Target(kind, str(self._counts[kind]))


def resolve_references(text: str) -> str:
    """Return a source in which known references are what they stand for, and captions numbered."""
    if r"\label" not in text and r"\caption" not in text:
        return text
    labels = _Labels()
    labels.read(text)
    pieces, done = [], 0
    for at, before in labels.captions:
        pieces += [text[done:at], before]
        done = at

    def write(found: re.Match[str]) -> str:
        target = labels.found.get(found["label"].strip())
        if target is None or not target.text:
            return found[0]
        shown = f"({target.text})" if found["kind"] == "eqref" else target.text
        return f"{target.kind} {shown}" if found["kind"] in _NAMED else shown

    return _REFERENCE.sub(write, "".join([*pieces, text[done:]]))
