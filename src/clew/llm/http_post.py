"""Sends JSON by POST: with our own HTTP client, or with httpx behind a proxy."""

from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from clew.llm.chat import EndpointError
from clew.llm.http import LOCAL_HOSTS, HttpClient

if TYPE_CHECKING:
    import httpx

MAX_BODY_BYTES = 256 * 1024 * 1024
CONNECT_TIMEOUT = 10.0
PostResponse = tuple[int, Mapping[str, str], bytes]
"""Status, headers by lower-case name, body."""


class PostClient(Protocol):
    """Sends bodies to paths under one base URL; network failures raise `EndpointError`."""

    async def __call__(self, path: str, raw: bytes) -> PostResponse:
        """Send once and return the whole response."""
        ...

    async def aclose(self) -> None:
        """Close this loop's connections now."""
        ...


def create_post_client(base_url: str, headers: Mapping[str, str], timeout: float) -> PostClient:
    """Create our own client, or an httpx one if the environment sets a proxy for this address."""
    return (ProxyPostClient if _uses_proxy(base_url) else DirectPostClient)(
        base_url, headers, timeout
    )


def _uses_proxy(base_url: str) -> bool:
    parts = urlsplit(base_url)
    if parts.hostname in LOCAL_HOSTS:
        return False
    from urllib.request import getproxies, proxy_bypass  # slow to import as well

    proxies = getproxies()
    return (parts.scheme in proxies or "all" in proxies) and not proxy_bypass(parts.hostname or "")


@dataclass(eq=False)
class DirectPostClient:
    """Posts with our own keep-alive HTTP client."""

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 60.0

    def __post_init__(self) -> None:
        self._http = HttpClient(
            *(
                self.base_url,
                self.headers,
                min(CONNECT_TIMEOUT, self.timeout),
                self.timeout,
                MAX_BODY_BYTES,
            )
        )

    async def __call__(self, path: str, raw: bytes) -> PostResponse:
        """Send once."""
        head, body = await self._http.post(path, raw)
        return head.status, head.headers, body

    async def aclose(self) -> None:
        """Close idle connections; otherwise they close with their loop."""
        self._http.close()


@dataclass(eq=False)
class ProxyPostClient:
    """Posts with httpx, which supports proxies; each event loop has its own client."""

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 60.0
    _clients: WeakKeyDictionary[AbstractEventLoop, "_LoopClient"] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    async def __call__(self, path: str, raw: bytes) -> PostResponse:
        """Send once."""
        import httpx

        client = await self._get_client()
        try:
            response = await client.post(path.lstrip("/"), content=raw)
        except httpx.TimeoutException as error:
            raise EndpointError(
                f"{self.base_url} kept silent for {self.timeout:g} s; a longer timeout may help.",
                transient=True,
            ) from error
        except httpx.TransportError as error:
            raise EndpointError(
                f"{self.base_url} cannot be reached ({error or type(error).__name__}); is it "
                "running?",
                transient=True,
            ) from error
        except httpx.HTTPError as error:
            raise EndpointError(f"{self.base_url} answered badly ({error}).") from error
        headers = {name.lower(): value for name, value in response.headers.items()}
        return response.status_code, headers, response.content

    async def aclose(self) -> None:
        """Close this loop's connections now."""
        held = self._clients.pop(get_running_loop(), None)
        if held is not None:
            await held.client.aclose()

    async def _get_client(self) -> "httpx.AsyncClient":
        import httpx

        loop = get_running_loop()
        held = self._clients.get(loop)
        if held is None:
            client = httpx.AsyncClient(
                base_url=self.base_url,
                headers={"Content-Type": "application/json", **self.headers},
                timeout=httpx.Timeout(self.timeout, connect=min(CONNECT_TIMEOUT, self.timeout)),
                # Loading the CA certificates takes 0.1 s: skipped without TLS.
                verify=self.base_url.startswith("https:"),
            )
            held = self._clients[loop] = _LoopClient(client)
            await anext(held.closer)
        return held.client


class _LoopClient:
    """The httpx client of one event loop, closed when the loop shuts down."""

    def __init__(self, client: "httpx.AsyncClient") -> None:
        self.client = client
        # asyncio closes open async generators when a loop shuts down: its only shutdown hook.
        self.closer = self._close_with_loop()

    async def _close_with_loop(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.client.aclose()
