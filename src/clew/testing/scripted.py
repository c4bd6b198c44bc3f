"""A fake chat model with scripted replies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from clew.llm.chat import Hear, Reply, Request
from clew.llm.openai_body import prompt_tokens, tokens
from clew.types import Usage

Said = str | Reply | Exception
_numbers = count(1)


@dataclass(eq=False)
class ScriptedChat:
    """Replies from a list in order, or by a function of the request; records every request.

    An exception in the script, or in `failures` under the number of the call, is raised.
    """

    script: Sequence[Said] | Callable[[Request], Said]
    failures: Mapping[int, Exception] = field(default_factory=dict)
    # A unique name: what is learned about one model (JSON modes) must not apply to another.
    name: str = field(default_factory=lambda: f"scripted {next(_numbers)}")
    requests: list[Request] = field(default_factory=list, init=False)

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Return the next scripted reply."""
        number = len(self.requests)
        self.requests.append(request)
        if number in self.failures:
            raise self.failures[number]
        scripted = self._line(request, number)
        if isinstance(scripted, Exception):
            raise scripted
        reply = scripted if isinstance(scripted, Reply) else _reply(request, scripted)
        for start in range(0, len(reply.text) if hear else 0, 8):
            assert hear is not None
            hear(reply.text[start : start + 8])
        return reply

    def _line(self, request: Request, number: int) -> Said:
        if callable(self.script):
            return self.script(request)
        if number >= len(self.script):
            raise AssertionError(
                f"{self.name} has {len(self.script)} lines and was asked once more: "
                f"{request.messages[-1].content[:200]!r}"
            )
        return self.script[number]


def _reply(request: Request, text: str) -> Reply:
    return Reply(text, Usage(1, prompt_tokens(request.messages), tokens(text)), "stop", "scripted")
