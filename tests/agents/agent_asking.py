"""Asking the valley's knowledge base with a model that follows a script."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from clew.agents.base import Answer
from clew.config import ROLES, AnswerSettings, ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.llm.chat import Request
from clew.llm.structured import pin_mode
from clew.models import Models
from clew.testing.fakes import ScriptedChat

ASKED = "Where was the designer of Marrow Bridge born?"
Ask = Callable[..., Awaitable[Answer]]


def asking(valley: KnowledgeBase) -> Ask:
    """A way to ask with a script: `await ask(script, recipe=…, mode=…)`."""

    async def asked(
        script: Callable[[list[dict[str, Any]]], str], question: str = ASKED, **how: Any
    ) -> Answer:
        def say(request: Request) -> str:
            return script([{"role": m.role, "content": m.content} for m in request.messages])

        chat = ScriptedChat(say)
        if how.pop("pinned", True):
            pin_mode(chat.name, "json")
        settings = Settings(
            kb=valley.settings.kb,
            models=ModelSettings(model="m", window=how.pop("window", None)),
            recipes=how.pop("recipes", {}),
            # The shipped threshold goes with a real encoder and reader, not with fakes.
            answer=AnswerSettings(confidence=how.pop("confidence", 0.2)),
        )
        base = KnowledgeBase(valley.store, settings, valley.embed)
        base.reader = valley.reader
        # The seam is the chat itself: no server, no sockets.
        base.models = Models(settings.models, valley.store, chats=dict.fromkeys(ROLES, chat))
        return await base.ask(question, k=how.pop("k", 3), **how)

    return asked


def reads(message: str) -> dict[str, Any]:
    """A reader that knows the valley."""
    question = message.rsplit("Question:", 1)[-1].strip()
    known = {
        "designer of Marrow Bridge?": ("It was designed by Ilse Brandvik.", "Ilse Brandvik"),
        "birthplace of Ilse Brandvik": ("She was born in Hallowmere", "Hallowmere"),
        "Ilse Brandvik born": ("She was born in Hallowmere", "Hallowmere"),
        "Ilse Brandvik die": ("died in Vessen in 1921", "1921"),
        "Anton Reeve born": ("He was born in Vessen.", "Vessen"),
    }
    for words, (quote, answer) in known.items():
        if words in question:
            return {"quote": quote, "source": 1, "answer": answer}
    return {"quote": "", "source": 0, "answer": "unknown"}


def refines(message: str) -> dict[str, Any]:
    """A reader that keeps the sentence it reads its answer from."""
    said = reads(message)
    numbered = re.findall(r"^\[(\d+)\] (.*)$", message.rpartition("[[evidence")[2], re.MULTILINE)
    source = next((int(n) for n, line in numbered if said["quote"] and said["quote"] in line), 0)
    kept = [{"text": said["quote"], "source": source}] if source else []
    return {"notes": kept, "answer": said["answer"]}


CONCLUDED = {
    "enough": True,
    "sentences": [{"text": "Ilse Brandvik was born in Hallowmere.", "sources": [1, 2, 3]}],
    "short": "Hallowmere",
    "missing": "",
}
