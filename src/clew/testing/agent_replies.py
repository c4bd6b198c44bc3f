"""A fake chat model that recognises which of Clew's prompts a request was made from."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

Messages = Sequence[Mapping[str, Any]]
PromptReply = str | Mapping[str, Any] | Callable[[str], Any] | Sequence[Any]
"""A reply, a function of the last message, or several replies given in turn."""


@cache
def _first_lines() -> dict[str, str]:
    """Map the first line of each prompt file to the prompt's name."""
    names = {}
    for file in (files("clew") / "prompts").iterdir():
        if file.name.endswith(".md"):
            first = file.read_text(encoding="utf-8").strip().splitlines()[0]
            names[first] = file.name.split(".")[0]
    return names


def prompt_name(messages: Messages) -> str:
    """Return the name of the prompt these messages were made from; empty if unknown."""
    first = str(messages[0].get("content") or "") if messages else ""
    return _first_lines().get(first.strip().splitlines()[0] if first.strip() else "", "")


@dataclass
class AgentScript:
    """Replies by prompt name; `prompts` lists the prompts in the order they came."""

    replies: Mapping[str, PromptReply]
    prompts: list[str] = field(default_factory=list)

    def __call__(self, messages: Messages) -> str:
        """Return the scripted reply for this prompt, `{}` if there is none."""
        name = prompt_name(messages)
        before = self.prompts.count(name)
        self.prompts.append(name)
        reply: Any = self.replies.get(name, {})
        if isinstance(reply, list | tuple):
            reply = reply[min(before, len(reply) - 1)]
        if callable(reply):
            reply = reply(str(messages[-1].get("content") or ""))
        return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
