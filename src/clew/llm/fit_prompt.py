"""Prompts that fit the model's window: inputs are cut where they are longest, and it is said."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from clew.llm.chat import REPLY_TOKENS, Chat, ContextTooLong, Reply, Request, TextCallback
from clew.llm.openai_api import cut_to_tokens, estimate_prompt_tokens, estimate_tokens

_MIN_ROOM = 64  # tokens of inputs shown however small the window is
_MIN_LINE = 24  # tokens; a list is not cut to shorter lines, but to fewer
_CUT = " …"


_SHARE_STEP = 0.05  # few steps, so that prompts stay the same from call to call
_MIN_SHARE = 0.25  # one token for each byte
_SHRINK = 0.6  # of the size of a prompt that was too long
_TEACHING_PART = 4  # only prompts that fill this part of the window teach: framing hardly counts
_MIN_TOLD_WINDOW = 256


class Shortenable(Protocol):
    """A text that knows what to leave out first; anything else is cut where it is longest."""

    def __str__(self) -> str:
        """Return the whole text."""
        ...

    def fit(self, tokens: int, /) -> str:
        """Return what is worth most in at most so many tokens."""
        ...


PromptInput = str | Shortenable
"""What fills a place of a prompt."""


@dataclass
class PromptRoom:
    """How much one model reads: its window, and how far our estimates count its tokens.

    Dense text has more tokens than one per four bytes. The endpoint's own counts correct the
    estimate, downwards only; an endpoint that tells none leaves every prompt as it is.
    """

    window: int
    share: float = 1.0
    """Estimated tokens per token that the model counts, at most 1."""
    save: Callable[[float], Awaitable[None]] | None = None
    _failed: float | None = None
    """The least share at which a prompt was too long."""
    _guessed: bool = False
    """Whether the share is a guess made then, which no count has corrected yet."""

    def beside(self, reply: int) -> int:
        """Return the tokens, as estimated, that a prompt may have beside a reply."""
        return int((self.window - reply) * self.share)

    async def learn(self, estimated: int, counted: int) -> None:
        """Correct the share by what the endpoint counted for a prompt of some length."""
        if counted * _TEACHING_PART < self.window or estimated == counted:
            return
        measured = int(estimated / counted / _SHARE_STEP) * _SHARE_STEP
        if self._failed is not None:
            measured = min(measured, self._failed - _SHARE_STEP)
        if measured < self.share or self._guessed:
            self._guessed = False
            await self._set(measured)

    async def shrink(self, size: int, reply: int, told: int | None) -> None:
        """Make room after a prompt of this size, as estimated, was too long beside a reply.

        The window is as told. A prompt that should fit it has more tokens than estimated, or the
        window was only assumed: later ones are made smaller than this one.
        """
        if told is not None and _MIN_TOLD_WINDOW <= told < self.window:
            self.window = told
        if size > self.beside(reply):
            return  # as is known by now
        share = size / max(1, self.window - reply)
        if share * _SHRINK < _MIN_SHARE:  # no text is that dense: the window was only assumed
            self.window = reply + int(size * _SHRINK / _MIN_SHARE)
            share = size / max(1, self.window - reply)
        self._failed = min(share, self._failed or share)
        self._guessed = True
        await self._set(share * _SHRINK)

    async def _set(self, share: float) -> None:
        self.share = round(min(1.0, max(share, _MIN_SHARE)), 4)
        if self.save is not None:
            await self.save(self.share)


@dataclass(frozen=True, eq=False)
class WindowedChat:
    """Chat wrapper that knows how many tokens its model reads; `on_cut` hears what was cut."""

    inner: Chat
    room: Callable[[], Awaitable[PromptRoom]]
    on_cut: Callable[[str], None]

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Forward the request and learn from its usage, or from that it was too long."""
        try:
            reply = await self.inner(request, on_text)
        except ContextTooLong as error:
            if request.key_tokens is None:  # else the raised limit may be what is too much
                size = estimate_prompt_tokens(request.messages)
                reply_tokens = request.max_tokens or REPLY_TOKENS
                await (await self.room()).shrink(size, reply_tokens, error.window)
            raise
        if reply.usage.calls == 1:  # neither cached nor several
            room = await self.room()
            await room.learn(estimate_prompt_tokens(request.messages), reply.usage.prompt_tokens)
        return reply


def find_windowed(chat: Chat) -> WindowedChat | None:
    """Return the wrapper that knows the window, if there is one."""
    layer: object = chat
    while layer is not None:
        if isinstance(layer, WindowedChat):
            return layer
        layer = getattr(layer, "inner", None)
    return None


def fit_inputs(
    inputs: Mapping[str, PromptInput], documents: frozenset[str], room: int
) -> tuple[dict[str, str], str]:
    """Cut inputs to `room` tokens, documents first; also say what was cut, "" if nothing was."""
    room = max(room, _MIN_ROOM)
    whole = {name: str(text) for name, text in inputs.items()}
    if sum(map(estimate_tokens, whole.values())) <= room:
        return whole, ""
    plain = {name: text for name, text in inputs.items() if name not in documents}
    fitted = _share(plain, room if len(plain) == len(inputs) else room // 2)
    left = room - sum(estimate_tokens(text) for text in fitted.values())
    fitted |= _share({name: inputs[name] for name in inputs if name in documents}, left)
    cut = [
        f"{name} from {estimate_tokens(text)} to {estimate_tokens(fitted[name])} tokens"
        for name, text in whole.items()
        if fitted[name] != text
    ]
    return {name: fitted[name] for name in inputs}, ", ".join(cut)


def _share(texts: Mapping[str, PromptInput], room: int) -> dict[str, str]:
    """Cut texts to fit together; a short one leaves its share to the others."""
    shared: dict[str, str] = {}
    for name in sorted(texts, key=lambda name: len(str(texts[name]))):
        text, own = texts[name], room // (len(texts) - len(shared))
        shared[name] = shorten_text(text, own) if isinstance(text, str) else text.fit(own)
        room -= estimate_tokens(shared[name])
    return shared


def shorten_text(text: str, tokens: int) -> str:
    """Cut a text to a number of tokens: its longest lines first, then those in the middle."""
    if estimate_tokens(text) <= tokens:
        return text
    lines = text.splitlines()
    if len(lines) <= 1:
        return cut_line(text, tokens)
    longest = _find_line_limit([estimate_tokens(line) for line in lines], tokens)
    if longest >= _MIN_LINE:
        return "\n".join(cut_line(line, longest) for line in lines)
    kept = min(len(lines) - 1, max(1, (tokens - 8) // _MIN_LINE))
    first, last = lines[: (kept + 1) // 2], lines[len(lines) - kept // 2 :]
    gap = f"… {len(lines) - kept} lines left out …"
    each = max(0, (tokens - estimate_tokens(gap)) // kept)
    cut = [cut_line(line, each) for line in (*first, *last)]
    return "\n".join((*cut[: len(first)], gap, *cut[len(first) :]))


def _find_line_limit(sizes: list[int], tokens: int) -> int:
    """Return the length to which the longest lines must be cut so that all fit."""
    left = tokens
    for done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - done)
        if size > share:
            return share
        left -= size
    return tokens


def cut_line(line: str, tokens: int) -> str:
    """Cut a line to a number of tokens, with a mark that it goes on."""
    if estimate_tokens(line) <= tokens:
        return line
    return cut_to_tokens(line, tokens - 2).rstrip() + _CUT
