"""Attack the server and see that nothing leaks, breaks or hangs.

`python -m bench.attack_server [--label-sets N] [--requests N] [--only sockets,labels,random]`. A
server over a small knowledge base is attacked with traversal, smuggled and malformed requests,
oversized headers and bodies, slow clients, disconnections in mid-stream and replayed keys; every
reading route is asked with random label sets for what only hidden documents say; and random
requests are made of the OpenAPI description. `--seed` repeats a run or starts another.
"""

import argparse
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.machine import print_result

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / part) for part in ("", "serve")]
from label_leaks import TEAMS, hidden_markers, make_documents, read_everything  # noqa: E402
from serving import Listening, fill, make_key, make_server, running  # noqa: E402

SECRET = "Zqsecretword"
TRAVERSALS = (
    "/workspaces/../../../../etc/passwd",
    "/workspaces/..%2f..%2f.server/server.sqlite",
    "/workspaces/%2e%2e/documents",
    "/workspaces/valley/documents/..%2f..%2f..%2fserver.sqlite/original",
    "/workspaces/valley%00/search",
    "/workspaces/.server/documents",
    "/workspaces/valley/documents/%2e%2e%2f%2e%2e/text",
    "//etc/passwd",
    "/v1/models/../../etc/passwd",
    "/static/../../../etc/passwd",
)
MALFORMED = (
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x00\x01\x02\x03\r\n\r\n",
    b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n",
    b"POST /workspaces/valley/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /workspaces/valley/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /workspaces/valley/search HTTP/1.1\r\nHost: localhost\r\n"
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    b"GET /workspaces HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 300_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /workspaces HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
)


def send_raw(port: int, data: bytes, wait: float = 3.0) -> bytes:
    """Send bytes and return what comes back until the server closes or the time is over."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as made:
        received = b""
        try:
            made.sendall(data)
            while part := made.recv(65536):
                received += part
                if len(received) > 1_000_000:
                    break
        except OSError:
            pass
        return received


def attack_paths(port: int, token: str) -> list[str]:
    """Ask for files outside; return what leaked."""
    leaks = []
    for path in TRAVERSALS:
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        reply = send_raw(port, f"{head}Connection: close\r\n\r\n".encode())
        if b"root:" in reply or b"SQLite format" in reply or b" 200 " in reply[:20]:
            leaks.append(path)
    return leaks


def attack_requests(port: int) -> list[str]:
    """Send malformed and smuggled requests; return those that were answered with success."""
    found = []
    for data in MALFORMED:
        reply = send_raw(port, data)
        statuses = [line for line in reply.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
        if any(b" 200 " in line or b" 5" in line[8:11] for line in statuses):
            found.append(repr(data[:60]))
    return found


def attack_slowly(port: int, token: str, count: int = 50) -> dict[str, Any]:
    """Hold connections with half a body; say whether the server still answers meanwhile."""
    head = (
        "POST /workspaces/valley/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n"
        f"Authorization: Bearer {token}\r\n\r\n{{"
    ).encode()
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    for one in held:
        one.sendall(head)
    time.sleep(0.3)
    began = time.perf_counter()
    healthy = b" 200 " in send_raw(port, b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")
    seconds = time.perf_counter() - began
    for one in held[: count // 2]:
        one.close()
    closed = 0
    for one in held[count // 2 :]:
        one.settimeout(10)
        try:
            closed += b" 408 " in one.recv(1000)
        except OSError:
            closed += 1
        one.close()
    return {"health_ok": healthy, "health_ms": round(1000 * seconds, 1), "timed_out": closed}


def attack_streams(port: int, token: str, count: int = 100) -> bool:
    """Disconnect in mid-stream many times; return whether the server then answers."""
    body = b'{"question": "Who designed the bridge?", "stream": true}'
    head = (
        "POST /workspaces/valley/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
        f"application/json\r\nContent-Length: {len(body)}\r\nAuthorization: Bearer {token}\r\n\r\n"
    ).encode()

    def cut() -> None:
        with socket.create_connection(("127.0.0.1", port)) as made:
            made.sendall(head + body)
            made.recv(10)

    threads = [threading.Thread(target=cut) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return b" 200 " in send_raw(port, b"GET /ready HTTP/1.0\r\nHost: localhost\r\n\r\n")


def attack_keys(port: int, server: Any) -> Iterator[tuple[str, bool]]:
    """Replay keys that were revoked, rotated or changed; yield whether each was refused."""
    key, token = server.keys.create("replayed", {"valley": "read"}, labels=None)

    def refused(sent: str) -> bool:
        head = f"GET /workspaces/valley HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{sent}"
        return b" 401 " in send_raw(port, f"{head}\r\n\r\n".encode("latin-1"))[:20]

    yield "valid", not refused(f"Authorization: Bearer {token}")
    yield "none", refused("X-Nothing: 1")
    yield "changed", refused(f"Authorization: Bearer {token[:-1]}x")
    yield "jwt", refused("Authorization: Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.")
    yield "basic", refused("Authorization: Basic YWRtaW46YWRtaW4=")
    yield "id only", refused(f"Authorization: Bearer {key.id}")
    server.keys.rotate(key.id)
    yield "rotated", refused(f"Authorization: Bearer {token}")
    fresh = server.keys.rotate(key.id)
    server.keys.revoke(key.id)
    yield "revoked", refused(f"Authorization: Bearer {fresh}")


def attack_labels(sets: int, seed: int, seconds: float) -> dict[str, Any]:
    """Ask every reading route with random label sets, within a time; count answers and leaks."""
    rng, asked, leaks = random.Random(seed), 0, Counter[str]()
    done, end = 0, time.monotonic() + seconds
    per_base = 20
    for base in range((sets + per_base - 1) // per_base):
        if time.monotonic() > end:
            break
        documents, labels = make_documents(6, seed=rng.randrange(1 << 30))
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            fill(root / "valley", documents, labels, trees=["dual"] if base % 2 else ())
            server = make_server(root)
            with running(server) as client:
                for _ in range(min(per_base, sets - base * per_base)):
                    if time.monotonic() > end:
                        break
                    done += 1
                    granted = rng.sample(TEAMS, rng.randint(0, len(TEAMS)))
                    key = make_key(server, {"valley": "read"}, granted)
                    hidden = hidden_markers(labels, granted)
                    for what, body in read_everything(client, key, documents, rng):
                        asked += 1
                        leaks[what] += any(word in body.lower() for word in hidden)
    return {"label_sets": done, "answers": asked, "leaks": +leaks}


def attack_randomly(requests: int) -> dict[str, Any]:
    """Send random requests of an admin; count the statuses, and those that failed."""
    from random_requests import send_random

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        fill(root / "default")
        server = make_server(root)
        with Listening(server) as url:
            statuses, failures = send_random(url, requests, make_key(server, {"*": "admin"}))
    shown = {str(status): count for status, count in sorted(statuses.items())}
    return {"requests": statuses.total(), "statuses": shown, "failed": failures}


def attack_sockets() -> dict[str, Any]:
    """Run the attacks that need a real connection."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        fill(root / "valley")
        server = make_server(root, body_seconds=3.0)
        token = make_key(server, {"valley": "read"})["Authorization"].split()[1]
        with Listening(server) as url:
            port = int(url.rsplit(":", 1)[1])
            return {
                "traversal_leaks": attack_paths(port, token),
                "malformed_answered": attack_requests(port),
                "slow": attack_slowly(port, token),
                "alive_after_cut_streams": attack_streams(port, token),
                "keys_not_refused": [n for n, good in attack_keys(port, server) if not good],
            }


def find_faults(figures: dict[str, Any]) -> list[str]:
    """Return what leaked, broke or was not refused."""
    sockets = figures.get("sockets", {})
    names = ("traversal_leaks", "malformed_answered", "keys_not_refused")
    found = [f"{name}: {one}" for name in names for one in sockets.get(name, [])]
    if not sockets.get("alive_after_cut_streams", True):
        found.append("the server did not answer after cut streams")
    if not sockets.get("slow", {}).get("health_ok", True):
        found.append("slow clients kept others from being answered")
    found += [
        f"leak: {what} ({n})" for what, n in figures.get("labels", {}).get("leaks", {}).items()
    ]
    return found + figures.get("random", {}).get("failed", [])


def main() -> None:
    """Attack and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--label-sets", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=10_000, help="random requests")
    parser.add_argument("--seconds", type=float, default=1e9, help="at most for the label sets")
    parser.add_argument("--seed", type=int, default=0, help="of the label sets")
    parser.add_argument("--only", default="sockets,labels,random")
    args = parser.parse_args()
    steps: dict[str, Callable[[], dict[str, Any]]] = {
        "sockets": attack_sockets,
        "labels": lambda: attack_labels(args.label_sets, args.seed, args.seconds),
        "random": lambda: attack_randomly(args.requests),
    }
    figures = {}
    for name in args.only.split(","):
        figures[name] = steps[name]()
        print(name, figures[name], flush=True)
    print_result("attack-server", figures, {"label_sets": args.label_sets})
    if faults := find_faults(figures):
        raise SystemExit("\n".join(["something leaked or broke:", *faults[:20]]))


if __name__ == "__main__":
    main()
