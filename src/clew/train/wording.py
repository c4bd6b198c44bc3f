"""Between messages and tokens: the chat template cut into pieces that are each tokenised once."""

from collections.abc import Sequence
from typing import Any

from clew.agents.graph_r1 import STOPS, Protocol
from clew.errors import ConfigError

_SAID, _REPLY = "<think>⟦thought⟧</think>\n<query>⟦said⟧</query>", "⟦reply⟧"
_TAIL = max(map(len, STOPS))


class Wording:
    """A tokenizer under the protocol: openings, replies, and where a step ends."""

    def __init__(self, tokenizer: Any, protocol: Protocol) -> None:
        """Cut the chat template at what stands between a step and the next."""
        if not getattr(tokenizer, "chat_template", None):
            raise ConfigError(
                "the model's tokenizer has no chat template; take an instruct model, or set "
                "`chat_template` in its tokenizer_config.json"
            )
        if tokenizer.eos_token_id is None:
            raise ConfigError(
                "the model's tokenizer has no token that ends a message; set `eos_token` in its "
                "tokenizer_config.json"
            )
        self.tokenizer, self.protocol = tokenizer, protocol
        before, after = self._frame()
        self._before, self._after = self._ids(before), self._ids(after)
        self._pieces: dict[int, str] = {}

    def _frame(self) -> tuple[str, str]:
        """What the template writes between a step and the reply, and after the reply."""
        talk = [
            *self._messages("?"),
            {"role": "assistant", "content": _SAID},
            {"role": "user", "content": _REPLY},
        ]
        shown = self.tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
        head, said, rest = shown.partition(_SAID)
        before, reply, after = rest.partition(_REPLY)
        if not said or not reply:
            raise ConfigError(
                "the model's chat template rewrites what is said in it (some leave out earlier "
                "thoughts); training needs one that repeats each message as it stands: set another "
                "as `chat_template` in its tokenizer_config.json"
            )
        if after.rstrip().endswith("<think>"):
            raise ConfigError(
                "the model's chat template opens a thought itself, so that no step can be well "
                "formed; set another as `chat_template` in its tokenizer_config.json"
            )
        return before, after

    def _messages(self, question: str) -> list[dict[str, str]]:
        return [{"role": role, "content": text} for role, text in self.protocol.opening(question)]

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    @property
    def end(self) -> int:
        """The token that ends a message."""
        return int(self.tokenizer.eos_token_id)

    @property
    def pad(self) -> int:
        """Fills the room beside short trajectories; any token would do, none is looked at."""
        found = self.tokenizer.pad_token_id
        return self.end if found is None else int(found)

    def opening(self, question: str) -> list[int]:
        """The prompt of an episode."""
        shown = self.tokenizer.apply_chat_template(
            self._messages(question), tokenize=False, add_generation_prompt=True
        )
        return self._ids(shown)

    def reply(self, text: str, last: int, room: int) -> list[int]:
        """What the environment says, framed; its text is cut to fit `room`, its frame is not.

        `last` is the token before: when the model ended its message itself, it is not ended again.
        """
        before = self._before
        if before and before[0] == last == self.end:
            before = before[1:]
        space = room - len(before) - len(self._after)
        body = self._ids(text)
        if len(body) > space:
            # The end of a reply closes its tag and may demand the answer: cut in the middle.
            tail = self._ids(text[text.rfind("</knowledge>") :]) if "</knowledge>" in text else []
            body = body[: max(space - len(tail), 0)] + tail
        return [*before, *body[: max(space, 0)], *self._after]

    @property
    def least(self) -> int:
        """Tokens below which a reply says nothing."""
        return len(self._before) + len(self._after) + 8

    def text(self, ids: Sequence[int]) -> str:
        """What a step says."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def ends(self, tail: str, token: int) -> tuple[bool, str]:
        """Whether this token closes the step, and the text to look at next time."""
        if token == self.end:
            return True, ""
        seen = tail + self._piece(token)
        return any(stop in seen for stop in STOPS), seen[-_TAIL:]

    def _piece(self, token: int) -> str:
        # Tags are ASCII, so that a letter split over two tokens does not matter here.
        piece = self._pieces.get(token)
        if piece is None:
            piece = self._pieces[token] = str(self.tokenizer.decode([token]))
        return piece
