"""HTTP proxy that counts calls and tokens, since the packages do not report them.

Requests are passed through unchanged; `GET {base_url}/usage` returns the totals so far.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

_HOP_HEADERS = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding"}
_COUNTERS = ("calls", "prompt_tokens", "completion_tokens", "unreported")
_TIMEOUT_S = 600.0  # seconds for one reply


@dataclass
class UsageCounter:
    """Counts chat calls and their tokens; embeddings are not counted, as for Clew."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unreported: int = 0
    """Calls whose reply has no usage."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, reply: bytes) -> None:
        """Count one reply."""
        usage = parse_usage(reply)
        with self._lock:
            self.calls += 1
            if usage is None:
                self.unreported += 1
            else:
                self.prompt_tokens += int(usage.get("prompt_tokens") or 0)
                self.completion_tokens += int(usage.get("completion_tokens") or 0)

    def totals(self) -> dict[str, int]:
        """Return the totals for `/usage`."""
        with self._lock:
            return {name: int(getattr(self, name)) for name in _COUNTERS}


def parse_usage(reply: bytes) -> dict[str, Any] | None:
    """Return a reply's `usage`: from its JSON, or from the last stream event that has it."""
    lines = reply.decode("utf-8", "replace").splitlines()
    events = [line[5:].strip() for line in lines if line.startswith("data:")]
    for text in reversed(events or ["\n".join(lines)]):
        try:
            found = json.loads(text).get("usage")
        except (ValueError, AttributeError):
            continue
        if isinstance(found, dict):
            return found
    return None


@contextmanager
def run_counting_proxy(base_url: str) -> Iterator[str]:
    """Run a counting proxy before an endpoint; yields its base URL."""
    with httpx.Client(timeout=_TIMEOUT_S) as client:
        proxy = ThreadingHTTPServer(
            ("127.0.0.1", 0), _make_handler(base_url, client, UsageCounter())
        )
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}/v1"
        finally:
            proxy.shutdown()
            proxy.server_close()
            thread.join()


def _make_handler(
    base_url: str, client: httpx.Client, total: UsageCounter
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body are sent together
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            if self.path.endswith("/usage"):
                self._answer(200, json.dumps(total.totals()).encode(), "application/json")
            else:
                self._pass_on(None)

        def do_POST(self) -> None:
            self._pass_on(self.rfile.read(int(self.headers.get("content-length") or 0)))

        def _pass_on(self, body: bytes | None) -> None:
            url = base_url.rstrip("/") + self.path.removeprefix("/v1")
            kept = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_HEADERS}
            try:
                reply = client.request(self.command, url, content=body, headers=kept)
            except httpx.HTTPError as error:
                return self._answer(502, str(error).encode(), "text/plain")
            if reply.status_code == 200 and url.partition("?")[0].endswith("/chat/completions"):
                total.add(reply.content)
            kind = reply.headers.get("content-type", "application/json")
            return self._answer(reply.status_code, reply.content, kind)

        def _answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    return Handler
