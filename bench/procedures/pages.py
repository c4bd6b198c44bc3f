"""Reads the pages of `dev.md` and `test.md`, and the questions that stand behind each.

A page is Markdown from its title on. A line that begins with "?" is a question about it:
`? steps Lead | …` wants the list under that heading or lead, `? none | …` wants steps that no page
has, and `? short Value | …` wants a value.
"""

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
_ASKED = re.compile(r"\? (?P<kind>steps|none|short) ?(?P<gold>.*?) ?\| (?P<question>.+)")
_ITEM = re.compile(r"(?:\d+\.|-) ")


@dataclass(frozen=True, slots=True)
class ProcedureQuestion:
    """A question, what it wants, and the items or the value that answer it."""

    kind: str
    question: str
    page: str
    items: tuple[str, ...] = ()
    value: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page with its procedures by what announces them."""

    title: str
    text: str
    procedures: dict[str, tuple[str, ...]]
    questions: tuple[ProcedureQuestion, ...]


def read_pages(split: str) -> list[Page]:
    """Return the pages of one half."""
    text = (FOLDER / f"{split}.md").read_text(encoding="utf-8")
    return [_read_page(one) for one in re.split(r"^# ", text, flags=re.MULTILINE)[1:]]


def _read_page(text: str) -> Page:
    lines = text.strip().splitlines()
    body = [line for line in lines if not line.startswith("?")]
    title, procedures = body[0], find_procedures(body)
    asked = [match for line in lines if (match := _ASKED.fullmatch(line))]
    questions = tuple(
        ProcedureQuestion(
            one["kind"],
            one["question"],
            title,
            procedures[one["gold"]] if one["kind"] == "steps" else (),
            one["gold"] if one["kind"] == "short" else "",
        )
        for one in asked
    )
    return Page(title, "# " + "\n".join(body) + "\n", procedures, questions)


def find_procedures(lines: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the items of each list by the line that announces it."""
    found: dict[str, tuple[str, ...]] = {}
    lead = ""
    for line in lines:
        if _ITEM.match(line):
            found[lead] = (*found.get(lead, ()), line)
        elif line.strip():
            lead = line.removeprefix("## ").rstrip(":")
    return found
