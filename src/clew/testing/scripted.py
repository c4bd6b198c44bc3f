"""A fake chat model with scripted replies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from clew.llm.chat import Reply, Request, TextCallback
from clew.llm.openai_body import estimate_prompt_tokens, estimate_tokens
from clew.types import Usage

ScriptedReply = str | Reply | Exception
_name_counter = count(1)


@dataclass(eq=False)
class ScriptedChat:
    """Replies from a list in order, or by a function of the request; records every request.

    An exception in the script, or in `failures` under the number of the call, is raised.
    """

    script: Sequence[ScriptedReply] | Callable[[Request], ScriptedReply]
    failures: Mapping[int, Exception] = field(default_factory=dict)
    # A unique name: what is learned about one model (JSON modes) must not apply to another.
    name: str = field(default_factory=lambda: f"scripted {next(_name_counter)}")
    requests: list[Request] = field(default_factory=list, init=False)

    async def __call__(self, request: Request, /, hear: TextCallback | None = None) -> Reply:
        """Return the next scripted reply."""
        number = len(self.requests)
        self.requests.append(request)
        if number in self.failures:
            raise self.failures[number]
        scripted = self._next_reply(request, number)
        if isinstance(scripted, Exception):
            raise scripted
        reply = scripted if isinstance(scripted, Reply) else _to_reply(request, scripted)
        for start in range(0, len(reply.text) if hear else 0, 8):
            assert hear is not None
            hear(reply.text[start : start + 8])
        return reply

    def _next_reply(self, request: Request, number: int) -> ScriptedReply:
        if callable(self.script):
            return self.script(request)
        if number >= len(self.script):
            raise AssertionError(
                f"{self.name} has {len(self.script)} lines and was asked once more: "
                f"{request.messages[-1].content[:200]!r}"
            )
        return self.script[number]


def _to_reply(request: Request, text: str) -> Reply:
    return Reply(
        text,
        Usage(1, estimate_prompt_tokens(request.messages), estimate_tokens(text)),
        "stop",
        "scripted",
    )
