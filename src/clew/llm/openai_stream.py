"""Assembles a streamed completion from its server-sent events."""

from collections.abc import Mapping
from typing import Any

from clew.llm.chat import EndpointError, FinishReason, Reply, Request, TextCallback
from clew.llm.openai_body import parse_finish_reason, parse_json, parse_usage, repair_surrogates


class StreamedReply:
    """Accumulates the events of one reply and forwards their text."""

    def __init__(self, hear: TextCallback, base_url: str) -> None:
        self._on_text = hear
        self._base_url = base_url
        self._texts: list[str] = []
        self._usage: Any = None
        self._finish: FinishReason | None = None
        self._model = ""

    def add_event(self, event: bytes) -> None:
        """Add the payload of one event."""
        if event == b"[DONE]":
            self._finish = self._finish or "stop"
            return
        try:
            chunk = parse_json(event)
        except ValueError as error:
            raise self._error("sent an event that is no JSON") from error
        self.add_chunk(chunk)

    def add_chunk(self, chunk: Any) -> None:
        """Add one parsed event."""
        if not isinstance(chunk, dict) or chunk.get("error"):
            raise self._error(f"failed in mid-stream ({str(chunk)[:300]})", transient=True)
        self._model = repair_surrogates(str(chunk.get("model") or self._model))
        self._usage = chunk.get("usage") or self._usage
        try:
            text, finish = _parse_chunk(chunk)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            data = str(chunk)[:80]
            raise self._error(f"sent an event that is no part of a completion ({data})") from error
        self._emit(text)
        self._finish = finish or self._finish

    def _emit(self, text: str) -> None:
        if text:
            self._texts.append(text)
            self._on_text(text)

    def to_reply(self, request: Request) -> Reply:
        """Build the reply; a stream without a finish reason is an error."""
        if self._finish is None:
            raise self._error("hung up in the middle of its answer", transient=True)
        text = "".join(self._texts)
        return Reply(text, parse_usage(self._usage, request, text), self._finish, self._model)

    def _error(self, what: str, transient: bool = False) -> EndpointError:
        return EndpointError(f"{self._base_url} {what}.", transient=transient)


def _parse_chunk(chunk: Mapping[str, Any]) -> tuple[str, FinishReason | None]:
    """The text of an event, and the finish reason if it has one."""
    choices = chunk.get("choices") or ()
    if not choices:  # the usage comes in an event of its own
        return "", None
    reason = choices[0].get("finish_reason")
    return _delta_text(choices[0].get("delta") or {}), parse_finish_reason(
        reason
    ) if reason else None


def _delta_text(delta: Mapping[str, Any]) -> str:
    """The text of a delta: content, or the arguments of the first tool call."""
    text = delta.get("content") or delta.get("refusal") or ""
    for call in (delta.get("tool_calls") or ())[:1]:
        if not call.get("index"):
            text = (call.get("function") or {}).get("arguments") or ""
    return repair_surrogates(str(text))
