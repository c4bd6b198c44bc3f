"""An OpenAI-compatible chat endpoint that answers from recorded replies of a real model.

    python -m bench.gpu.replay FILE [--port 8089]

FILE was written by `python -m bench.gpu.serve --record FILE`. A request that was recorded gets the
recorded reply; another one gets status 404, and the number of both is printed when it is stopped.
So what an agent does with the replies can be changed and measured without a GPU, as long as its
prompts stay the same.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_MODEL = {"id": "served", "object": "model", "max_model_len": 4096}


def exchange_key(body: Mapping[str, Any]) -> str:
    """Return what makes two requests the same: their messages, limit and stops."""
    most = body.get("max_tokens") or body.get("max_completion_tokens")
    return json.dumps([body["messages"], most, body.get("stop") or []], ensure_ascii=False)


def append_exchange(file: Path, body: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
    """Append one request and its reply to a file of recordings."""
    line = {"key": exchange_key(body), "reply": reply}
    with file.open("a", encoding="utf-8") as opened:
        opened.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_exchanges(lines: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """Return the recorded replies by request."""
    return {row["key"]: row["reply"] for row in map(json.loads, lines)}


class Replayer(ThreadingHTTPServer):
    """Serves recorded replies and counts the requests it has, and has not, a reply for."""

    def __init__(self, port: int, replies: Mapping[str, Mapping[str, Any]]) -> None:
        """Listen on a port of this machine."""
        super().__init__(("127.0.0.1", port), _Handler)
        self.replies, self.known, self.unknown = replies, 0, 0


class _Handler(BaseHTTPRequestHandler):
    """Answers a request from the recordings."""

    server: Replayer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """List the model."""
        self._send(200, {"object": "list", "data": [_MODEL]})

    def do_POST(self) -> None:
        """Answer a chat completion request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.server.replies.get(exchange_key(body))
        if reply is None:
            self.server.unknown += 1
            self._send(404, {"error": {"message": "no reply to this request was recorded"}})
        else:
            self.server.known += 1
            self._send(200, reply)

    def _send(self, status: int, value: Mapping[str, Any]) -> None:
        sent = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        """Print no line for each request."""


def main() -> None:
    """Serve until interrupted, then print the counts."""
    ask = argparse.ArgumentParser()
    ask.add_argument("file", type=Path)
    ask.add_argument("--port", type=int, default=8089)
    given = ask.parse_args()
    with given.file.open(encoding="utf-8") as lines:
        server = Replayer(given.port, read_exchanges(lines))
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print(json.dumps({"recorded": server.known, "not recorded": server.unknown}))


if __name__ == "__main__":
    main()
