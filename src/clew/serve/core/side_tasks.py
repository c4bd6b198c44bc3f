"""What chat pages ask a model beside the conversation: titles, tags, follow-ups and the like.

Such a request is known by its form: it begins with a task, and names the reply that it wants. It is
answered from the conversation that it quotes, without a search and without a model.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clew.text.name_spans import find_capitalised_runs, span_text
from clew.text.names import tokenize
from clew.text.sentences import sentence_spans

_TASK = re.compile(r"\s*(?:#{1,4}\s*Task:|Your task is to\b)", re.IGNORECASE)
_TOOLS = re.compile(r'\s*Available Tools:.*"tool_calls"', re.IGNORECASE | re.DOTALL)
_WANTED = re.compile(r'"(title|tags|follow_ups|queries|text|prompt)"\s*:')
_EMOJI = re.compile(r"\bemoji\b", re.IGNORECASE)
_HISTORY = re.compile(r"<chat_history>(.*?)</chat_history>", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```(.*?)```", re.DOTALL)
_TURN = re.compile(r"^(user|human|assistant|ai):\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_MARK = re.compile(r"\s*\[\d{1,3}\]")
_PERSONS = ("user", "human")
_TITLE_WORDS = 8
_MAX_TAGS = 3
_MAX_FOLLOW_UPS = 3
_MAX_CHARS = 20_000  # of the conversation that are read
_ASKING, _CONTENT = "🤔", "🙂"


@dataclass(frozen=True)
class _Quoted:
    """The conversation that a request quotes."""

    asked: list[str]
    names: list[str]
    """Those that occur most often first."""

    @property
    def title(self) -> str:
        """The first words of the conversation."""
        words = (self.asked[0] if self.asked else "Conversation").split()
        return " ".join(words[:_TITLE_WORDS]).strip("?!.？。 ")

    def suggest_questions(self) -> list[str]:
        """Return questions about names that have come up and were not asked for."""
        before = " ".join(self.asked)
        new = [name for name in self.names if name not in before]
        return [f"What else is known about {name}?" for name in new[:_MAX_FOLLOW_UPS]]


_REPLIES: Mapping[str, Callable[[_Quoted], Any]] = {
    "title": lambda quoted: quoted.title,
    "tags": lambda quoted: quoted.names[:_MAX_TAGS] or ["General"],
    "follow_ups": _Quoted.suggest_questions,
    "queries": lambda quoted: quoted.asked[-1:],
    "prompt": lambda quoted: quoted.title,
    "text": lambda quoted: "",
}


def answer_side_task(question: str, style: str = "") -> str | None:
    """Answer a chat page's request beside a conversation; None for a question.

    `style` is the system's message: one that offers tools wants a choice of these, and none fits.
    """
    if _TOOLS.match(style):
        return json.dumps({"tool_calls": []})
    if not _TASK.match(question):
        return None
    wanted = _WANTED.findall(_HISTORY.sub("", question))
    if wanted:
        quoted = _read_quoted(question)
        return json.dumps({wanted[-1]: _REPLIES[wanted[-1]](quoted)}, ensure_ascii=False)
    fenced = _FENCED.search(question)
    if fenced is not None and _EMOJI.search(question[: fenced.start()]):
        return _ASKING if fenced[1].rstrip().endswith(("?", "？")) else _CONTENT
    return None


def _read_quoted(question: str) -> _Quoted:
    found = _HISTORY.search(question)
    text = (found[1] if found else question)[:_MAX_CHARS]
    turns = [(who.lower(), _MARK.sub("", said.strip())) for who, said in _TURN.findall(text)]
    counts: dict[str, int] = {}
    for _, said in turns:
        for name in _find_names(said):
            counts[name] = counts.get(name, 0) + 1
    asked = [said for who, said in turns if who in _PERSONS]
    return _Quoted(asked, sorted(counts, key=lambda name: -counts[name]))


def _find_names(text: str) -> list[str]:
    """Return capitalised names; one word that only begins a sentence is none."""
    t = tokenize(text)
    starts = {bisect_left(t.starts, start) for start, _ in sentence_spans(text)}
    runs = find_capitalised_runs(text, t, starts)
    return [
        span_text(text, t, first, last)
        for first, last in runs
        if first not in starts or last - first > 1
    ]
