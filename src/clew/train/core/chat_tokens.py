"""Chat messages to tokens: the chat template is split so that each part is tokenised once."""

from collections.abc import Sequence
from typing import Any

from clew.agents.graph_r1_protocol import STOP_SEQUENCES, GraphR1Protocol
from clew.errors import ConfigError

_SAMPLE_STEP, _SAMPLE_REPLY = "<think>⟦thought⟧</think>\n<query>⟦said⟧</query>", "⟦reply⟧"
_TAIL_LENGTH = max(map(len, STOP_SEQUENCES))


class ChatTokenizer:
    """Tokenizes prompts and replies of the protocol, and detects where a step ends."""

    def __init__(self, tokenizer: Any, protocol: GraphR1Protocol) -> None:
        """Find what the chat template writes between a step and the next."""
        if not getattr(tokenizer, "chat_template", None):
            raise ConfigError(
                "the model's tokenizer has no chat template; use an instruct model, or set "
                "`chat_template` in its tokenizer_config.json"
            )
        if tokenizer.eos_token_id is None:
            raise ConfigError(
                "the model's tokenizer has no end-of-message token; set `eos_token` in its "
                "tokenizer_config.json"
            )
        self.tokenizer, self.protocol = tokenizer, protocol
        before, after = self._split_template()
        self._before, self._after = self._tokenize(before), self._tokenize(after)
        self._token_texts: dict[int, str] = {}

    def _split_template(self) -> tuple[str, str]:
        """Return what the template writes between a step and the reply, and after the reply."""
        chat = [
            *self._opening_messages("?"),
            {"role": "assistant", "content": _SAMPLE_STEP},
            {"role": "user", "content": _SAMPLE_REPLY},
        ]
        shown = self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        head, step, rest = shown.partition(_SAMPLE_STEP)
        before, reply, after = rest.partition(_SAMPLE_REPLY)
        if not step or not reply:
            raise ConfigError(
                "the model's chat template changes messages (some drop earlier thoughts); training "
                "needs one that keeps them verbatim: set another `chat_template` in its "
                "tokenizer_config.json"
            )
        if after.rstrip().endswith("<think>"):
            raise ConfigError(
                "the model's chat template opens <think> itself, so no step can be well-formed; "
                "set another `chat_template` in its tokenizer_config.json"
            )
        return before, after

    def _opening_messages(self, question: str) -> list[dict[str, str]]:
        return [
            {"role": role, "content": text}
            for role, text in self.protocol.initial_messages(question)
        ]

    def _tokenize(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    @property
    def end_id(self) -> int:
        """The token that ends a message (EOS)."""
        return int(self.tokenizer.eos_token_id)

    @property
    def pad_id(self) -> int:
        """The padding token; any token works, since padding is never attended to."""
        token = self.tokenizer.pad_token_id
        return self.end_id if token is None else int(token)

    def encode_prompt(self, question: str) -> list[int]:
        """Tokenize the prompt of an episode."""
        rendered = self.tokenizer.apply_chat_template(
            self._opening_messages(question), tokenize=False, add_generation_prompt=True
        )
        return self._tokenize(rendered)

    def encode_reply(self, text: str, last: int, limit: int) -> list[int]:
        """Tokenize an environment reply in its chat frame; the text is cut to fit `limit` tokens.

        `last` is the token before it: an EOS that the model wrote itself is not repeated.
        """
        before = self._before
        if before and before[0] == last == self.end_id:
            before = before[1:]
        available = limit - len(before) - len(self._after)
        body = self._tokenize(text)
        if len(body) > available:
            # The end of a reply closes its tag and may demand an answer: cut before it.
            tail = (
                self._tokenize(text[text.rfind("</knowledge>") :]) if "</knowledge>" in text else []
            )
            body = body[: max(available - len(tail), 0)] + tail
        return [*before, *body[: max(available, 0)], *self._after]

    @property
    def min_reply_tokens(self) -> int:
        """Fewest tokens that a useful reply needs."""
        return len(self._before) + len(self._after) + 8

    def decode(self, ids: Sequence[int]) -> str:
        """Decode the tokens of a step."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def check_step_end(self, tail: str, token: int) -> tuple[bool, str]:
        """Return whether this token ends the step, and the tail of text for the next check."""
        if token == self.end_id:
            return True, ""
        seen = tail + self._token_text(token)
        return any(stop in seen for stop in STOP_SEQUENCES), seen[-_TAIL_LENGTH:]

    def _token_text(self, token: int) -> str:
        # Tags are ASCII: a character split over two tokens does not matter here.
        piece = self._token_texts.get(token)
        if piece is None:
            piece = self._token_texts[token] = str(self.tokenizer.decode([token]))
        return piece
