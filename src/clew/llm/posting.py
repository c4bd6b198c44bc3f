"""Sends JSON by POST: with our own HTTP client, or with httpx behind a proxy."""

from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from clew.llm.chat import EndpointError
from clew.llm.wire import HERE, Wire

if TYPE_CHECKING:
    import httpx  # takes a quarter of a second to import, so it is imported when needed

LONGEST = 256 * 1024 * 1024
CONNECT = 10.0

Posted = tuple[int, Mapping[str, str], bytes]
"""Status, headers by lower-case name, body."""


class Posting(Protocol):
    """Sends bodies to paths under one base URL; network failures raise `EndpointError`."""

    async def __call__(self, path: str, raw: bytes) -> Posted:
        """Send once and return the whole response."""
        ...

    async def aclose(self) -> None:
        """Close this loop's connections now."""
        ...


def posting(base_url: str, headers: Mapping[str, str], timeout: float) -> Posting:
    """Create our own client, or an httpx one if the environment sets a proxy for this address."""
    return (Proxied if _proxied(base_url) else Direct)(base_url, headers, timeout)


def _proxied(base_url: str) -> bool:
    parts = urlsplit(base_url)
    if parts.hostname in HERE:
        return False
    from urllib.request import getproxies, proxy_bypass  # slow to import as well

    proxies = getproxies()
    return (parts.scheme in proxies or "all" in proxies) and not proxy_bypass(parts.hostname or "")


@dataclass(eq=False)
class Direct:
    """Posts with our own keep-alive HTTP client."""

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 60.0

    def __post_init__(self) -> None:
        self._wire = Wire(
            *(self.base_url, self.headers, min(CONNECT, self.timeout), self.timeout, LONGEST)
        )

    async def __call__(self, path: str, raw: bytes) -> Posted:
        """Send once."""
        head, body = await self._wire.post(path, raw)
        return head.status, head.headers, body

    async def aclose(self) -> None:
        """Close idle connections; otherwise they close with their loop."""
        self._wire.close()


@dataclass(eq=False)
class Proxied:
    """Posts with httpx, which supports proxies; each event loop has its own client."""

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 60.0
    _clients: WeakKeyDictionary[AbstractEventLoop, "_Client"] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    async def __call__(self, path: str, raw: bytes) -> Posted:
        """Send once."""
        import httpx

        client = await self._client()
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

    async def _client(self) -> "httpx.AsyncClient":
        import httpx

        loop = get_running_loop()
        held = self._clients.get(loop)
        if held is None:
            client = httpx.AsyncClient(
                base_url=self.base_url,
                headers={"Content-Type": "application/json", **self.headers},
                timeout=httpx.Timeout(self.timeout, connect=min(CONNECT, self.timeout)),
                # Loading the CA certificates takes 0.1 s: skipped without TLS.
                verify=self.base_url.startswith("https:"),
            )
            held = self._clients[loop] = _Client(client)
            await anext(held.watch)
        return held.client


class _Client:
    """The httpx client of one event loop, closed when the loop shuts down."""

    def __init__(self, client: "httpx.AsyncClient") -> None:
        self.client = client
        # asyncio closes open async generators when a loop shuts down: its only shutdown hook.
        self.watch = self._until_loop_ends()

    async def _until_loop_ends(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.client.aclose()
