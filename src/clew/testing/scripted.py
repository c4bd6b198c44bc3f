"""A chat model that says what it is told to, for tests."""

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
    """Answers from a list in order, or by a function of the request; it records every request.

    An exception in the script, or in `failures` under the number of the call, is raised.
    """

    script: Sequence[Said] | Callable[[Request], Said]
    failures: Mapping[int, Exception] = field(default_factory=dict)
    # A name of its own for each: what is learnt about one says nothing about another.
    name: str = field(default_factory=lambda: f"scripted {next(_numbers)}")
    requests: list[Request] = field(default_factory=list, init=False)

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Say the next line."""
        number = len(self.requests)
        self.requests.append(request)
        if number in self.failures:
            raise self.failures[number]
        said = self._line(request, number)
        if isinstance(said, Exception):
            raise said
        reply = said if isinstance(said, Reply) else _reply(request, said)
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
