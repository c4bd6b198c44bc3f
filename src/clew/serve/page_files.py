"""The page at `/`: built files, sent before any key is asked for, as they hold no data.

The page itself asks for a key where the server wants one. Its sources are under `page/`; what is
sent is `static/`, which `make page` builds.
"""

import gzip
import mimetypes
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from clew.config import ServeSettings
from clew.serve.core.admission import check_host, known_hosts
from clew.serve.core.problems import Problem, describe_error

_FOLDER = "/page/"
_INDEX = "index.html"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Vary": "Accept-Encoding",
}
_METHODS = ("GET", "HEAD")


@dataclass(frozen=True)
class PageFile:
    """A built file, as it is and compressed."""

    content: bytes
    compressed: bytes
    media_type: str
    tag: str


@cache
def load_page_files() -> dict[str, PageFile]:
    """Read the built files by name: `index.html`, and those of the folder `page`."""
    root = resources.files("clew.serve").joinpath("static")
    found = {_INDEX: root.joinpath(_INDEX)}
    found |= {f"page/{one.name}": one for one in root.joinpath("page").iterdir()}
    return {name: _read(name, one.read_bytes()) for name, one in found.items()}


def _read(name: str, content: bytes) -> PageFile:
    ending = f".{name.rpartition('.')[2]}"
    kind = _TYPES.get(ending) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    tag = f'"{sha256(content).hexdigest()[:20]}"'
    return PageFile(content, gzip.compress(content, 9, mtime=0), kind, tag)


class PageFiles:
    """Sends the page's files; every other request goes on to the app."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self._app, self._root_path, self._with_page = app, settings.root_path, settings.rest
        self._hosts = known_hosts(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer for the page, or pass the request on with the prefix of a reverse proxy."""
        if self._root_path and scope["type"] == "http":
            scope["root_path"] = self._root_path
        reply = self._answer(scope) if scope["type"] == "http" else None
        if reply is None and scope["type"] == "http":
            # A redirect would name the address behind a proxy, so routes answer with it, too.
            scope["path"] = scope["path"].removesuffix("/") or "/"
        if reply is not None:
            try:
                check_host(Headers(scope=scope), self._hosts)
            except Problem as problem:
                reply = describe_error(problem).to_response("/")
        await (reply or self._app)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response | None:
        path = str(scope["path"])
        if scope["method"] not in _METHODS or not self._with_page:
            return None
        if self._root_path and path == self._root_path:  # relative addresses need the slash
            return RedirectResponse(f"{self._root_path}/", 308)
        if self._root_path and path.startswith(f"{self._root_path}/"):
            path = path[len(self._root_path) :]
        if path == "/":
            return _send(load_page_files()[_INDEX], Headers(scope=scope), "no-cache")
        found = load_page_files().get(path[1:]) if path.startswith(_FOLDER) else None
        if found is None:
            return None
        # Their names hold a hash of their content, so they never change.
        return _send(found, Headers(scope=scope), "public, max-age=31536000, immutable")


def _send(file: PageFile, asked: Headers, caching: str) -> Response:
    headers = {**_HEADERS, "Cache-Control": caching, "ETag": file.tag}
    if asked.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in asked.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(file.compressed, headers=headers, media_type=file.media_type)
    return Response(file.content, headers=headers, media_type=file.media_type)
