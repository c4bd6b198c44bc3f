"""Asking the valley's knowledge base with a model that follows a script."""

from collections.abc import Awaitable, Callable
from typing import Any

from clew.agents.base import Answer
from clew.config import ROLES, AnswerSettings, ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.llm.chat import Request
from clew.models import Models
from clew.testing.fakes import AgentScript, ScriptedChat, ScriptedReply

ASKED = "Where was the designer of Marrow Bridge born?"
Ask = Callable[..., Awaitable[Answer]]
HALLOWMERE = {
    "reasoning": "The bridge was designed by Ilse Brandvik; she was born in Hallowmere.",
    "enough": True,
    "answer": "Ilse Brandvik, who designed the bridge, was born in Hallowmere [1][2].",
    "short": "Hallowmere",
}


def asking(valley: KnowledgeBase) -> Ask:
    """A way to ask with a script: `await ask(script, recipe=…, mode=…)`.

    The script is an `AgentScript`, a list of replies, or a function of the request. Settings of
    answers (`hints`, `verify`, `confidence`) and the model's `window` may be given as well.
    """

    async def asked(script: Any, question: str = ASKED, **how: Any) -> Answer:
        answer = {
            key: how.pop(key) for key in ("hints", "verify", "confidence") if key in how
        }
        settings = Settings(
            kb=valley.settings.kb,
            models=ModelSettings(model="m", window=how.pop("window", None)),
            recipes=how.pop("recipes", {}),
            answer=AnswerSettings(**answer),
        )
        base = KnowledgeBase(valley.store, settings, valley.embed)
        base.reader = valley.reader
        chat = scripted(script)
        # The seam is the chat itself: no server, no sockets.
        base.models = Models(settings.models, valley.store, chats=dict.fromkeys(ROLES, chat))
        return await base.ask(question, **how)

    return asked


def scripted(script: Any) -> ScriptedChat:
    """A chat model that follows a script, by prompt names or in order."""
    if not isinstance(script, AgentScript):
        return ScriptedChat(script)

    def say(request: Request) -> ScriptedReply:
        return script([{"role": m.role, "content": m.content} for m in request.messages])

    return ScriptedChat(say)
