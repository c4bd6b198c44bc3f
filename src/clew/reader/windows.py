"""Windows of tokens that the reader sees: a question, then one passage or several."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from clew.llm.embed_local import measure_known_letters

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_POSITIONS = 512
"""Positions of the encoder: no window is longer."""
MAX_QUESTION_TOKENS = 80
_MAX_TITLE_TOKENS = 24
_OVERLAP_TOKENS = 96  # tokens that two windows of one passage share: longer than any answer
_MAX_CHARS = 40_000  # characters of a passage that are read; far more than any chunk has
# A passage is read for several questions: the tokens of the last ones are kept, of long texts not.
_KEPT_TEXTS = 256
_MAX_KEPT_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Window:
    """Token ids, and for every token the passage and the characters it comes from."""

    ids: list[int]
    types: list[int]
    """0 for the question, 1 for what follows."""
    passages: list[int]
    """The passage of a token; -1 for the question, titles and separators."""
    starts: list[int]
    ends: list[int]
    whole: list[bool]
    """Whether the token begins a word."""


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The tokens of a text, their characters, and which of them begin a word."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    whole: list[bool]


@dataclass(frozen=True, slots=True)
class _Text:
    """The tokens of one passage, from its title on."""

    number: int
    title: list[int]
    tokens: _Tokens

    def part(self, first: int, last: int) -> "_Text":
        """The same passage with only these tokens."""
        cut, own = slice(first, last), self.tokens
        return _Text(
            self.number, self.title, _Tokens(own.ids[cut], own.offsets[cut], own.whole[cut])
        )


class WindowMaker:
    """Makes windows with one tokenizer; training and reading use the same."""

    def __init__(self, tokenizer: "Tokenizer", limit: int = 384) -> None:
        """Set the most tokens of a window, at most 512."""
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self.limit = min(limit, MAX_POSITIONS)
        self._tokenizer = tokenizer
        self._recall = lru_cache(_KEPT_TEXTS)(self._encode)
        self._known = lru_cache(_KEPT_TEXTS)(lambda text: measure_known_letters(tokenizer, text))
        self._cls = _require_id(tokenizer, "[CLS]")
        self._sep = _require_id(tokenizer, "[SEP]")
        self._colon = _require_id(tokenizer, ":")

    def measure_known(self, text: str) -> float:
        """Return the share of a text's letters that the tokenizer knows as more than letters."""
        return self._known(text)

    def separate(
        self, question: str, passages: Sequence[str], titles: Sequence[str] | None = None
    ) -> list[Window]:
        """Windows of one passage each; a long passage has several that overlap."""
        asked, texts = self._tokenize(question, passages, titles)
        windows = []
        for text in texts:
            room = max(8, self.limit - len(asked) - len(text.title) - 3)
            step = max(room - _OVERLAP_TOKENS, room // 2)
            first = 0
            while first == 0 or first + room - step < len(text.tokens.ids):
                windows.append(self._join(asked, [text.part(first, first + room)]))
                first += step
        return windows

    def together(
        self,
        question: str,
        passages: Sequence[str],
        titles: Sequence[str] | None = None,
        limit: int = MAX_POSITIONS,
    ) -> Window:
        """One window with all passages; where they do not fit, the longest are cut."""
        asked, texts = self._tokenize(question, passages, titles)
        used = len(asked) + 2 + sum(len(text.title) + 1 for text in texts)
        shares = _share_room(
            [len(text.tokens.ids) for text in texts], min(limit, MAX_POSITIONS) - used
        )
        parts = [text.part(0, share) for text, share in zip(texts, shares, strict=True) if share]
        return self._join(asked, parts)

    def _tokenize(
        self, question: str, passages: Sequence[str], titles: Sequence[str] | None
    ) -> tuple[list[int], list[_Text]]:
        names = list(titles) if titles is not None else [""] * len(passages)
        if len(names) != len(passages):
            raise ValueError(f"{len(passages)} passages have {len(names)} titles")
        made = []
        for number, (name, passage) in enumerate(zip(names, passages, strict=True)):
            ids = self._tokens(name).ids[:_MAX_TITLE_TOKENS]
            title = [*ids, self._colon] if ids else []
            made.append(_Text(number, title, self._tokens(passage[:_MAX_CHARS])))
        return self._tokens(question).ids[:MAX_QUESTION_TOKENS], made

    def _tokens(self, text: str) -> _Tokens:
        return self._recall(text) if len(text) <= _MAX_KEPT_CHARS else self._encode(text)

    def _encode(self, text: str) -> _Tokens:
        found = self._tokenizer.encode(_encodable(text), add_special_tokens=False)
        whole = [not token.startswith("##") for token in found.tokens]
        return _Tokens(found.ids, found.offsets, whole)

    def _join(self, asked: list[int], texts: Sequence[_Text]) -> Window:
        ids, passages = [self._cls, *asked, self._sep], [-1] * (len(asked) + 2)
        spans, whole = [(0, 0)] * len(ids), [True] * len(ids)
        for text in texts:
            before, own = len(text.title), text.tokens
            ids += [*text.title, *own.ids, self._sep]
            passages += [*([-1] * before), *([text.number] * len(own.ids)), -1]
            spans += [*([(0, 0)] * before), *own.offsets, (0, 0)]
            whole += [*([True] * before), *own.whole, True]
        types = [int(at >= len(asked) + 2) for at in range(len(ids))]
        return Window(
            ids, types, passages, [one[0] for one in spans], [one[1] for one in spans], whole
        )


def _share_room(lengths: Sequence[int], room: int) -> list[int]:
    """How many tokens of each passage fit: equal shares, and what a short one leaves goes on."""
    shares = [0] * len(lengths)
    left = max(room, 0)
    order = sorted(range(len(lengths)), key=lambda at: lengths[at])
    for done, at in enumerate(order):
        shares[at] = min(lengths[at], left // (len(order) - done))
        left -= shares[at]
    return shares


def _require_id(tokenizer: "Tokenizer", token: str) -> int:
    found = tokenizer.token_to_id(token)
    if found is None:
        raise ValueError(f"the tokenizer has no token {token}")
    return int(found)


def _encodable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by one character each."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
