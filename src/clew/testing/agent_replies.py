"""A stand-in for a chat model that knows which of Clew's prompts it was asked with."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

Messages = Sequence[Mapping[str, Any]]
Say = str | Mapping[str, Any] | Callable[[str], Any] | Sequence[Any]
"""A reply, one made from the last message, or several that are given one after another."""


@cache
def _openings() -> dict[str, str]:
    """The first line of each prompt's system part, and the prompt's name."""
    found = {}
    for file in (files("clew") / "prompts").iterdir():
        if file.name.endswith(".md"):
            first = file.read_text(encoding="utf-8").strip().splitlines()[0]
            found[first] = file.name.split(".")[0]
    return found


def prompt_of(messages: Messages) -> str:
    """The name of the prompt these messages were made from; empty when it is none of ours."""
    first = str(messages[0].get("content") or "") if messages else ""
    return _openings().get(first.strip().splitlines()[0] if first.strip() else "", "")


@dataclass
class AgentScript:
    """Replies by prompt name; `asked` keeps the order in which prompts came."""

    says: Mapping[str, Say]
    asked: list[str] = field(default_factory=list)

    def __call__(self, messages: Messages) -> str:
        """Say what the script holds for this prompt, `{}` where it holds nothing."""
        name = prompt_of(messages)
        before = self.asked.count(name)
        self.asked.append(name)
        said: Any = self.says.get(name, {})
        if isinstance(said, list | tuple):
            said = said[min(before, len(said) - 1)]
        if callable(said):
            said = said(str(messages[-1].get("content") or ""))
        return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
