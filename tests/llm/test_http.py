"""The HTTP client alone: GET and POST, chunks cut anywhere, proxies and tunnels."""

import asyncio
import base64
import gc
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from clew.errors import ConfigError
from clew.llm.chat import EndpointError
from clew.llm.http import HttpClient, auth_headers, find_proxy
from clew.testing.stub_endpoint import StubEndpoint

BODY = json.dumps({"model": "m", "input": ["one", "two"]}).encode()
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl program to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=clew", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem",
         "-out", folder / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


@asynccontextmanager
async def listening(serve: Handler) -> AsyncIterator[int]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)  # type: ignore[arg-type]
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_post_and_get_return_status_headers_and_body() -> None:
    async with StubEndpoint() as stub:
        client = HttpClient(stub.base_url, auth_headers(" k "))
        head, body = await client.post("/embeddings", BODY)
        assert (head.status, head.headers["content-type"]) == (200, "application/json")
        assert len(json.loads(body)["data"]) == 2
        assert stub.stats.headers[0]["authorization"] == "Bearer k"
        assert (await client.get("/nowhere"))[0].status == 404
        client.close()


async def test_a_client_that_is_dropped_closes_its_connections() -> None:
    """Its loop goes on; a warning of an unclosed connection would fail the test."""
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        ended.set()

    async with listening(serve) as port:
        held: list[object] = [client := HttpClient(f"http://127.0.0.1:{port}")]
        held.append(held)  # as in a knowledge base, only the collector of cycles can free it
        await client.get("/")
        del client, held
        gc.collect()
        async with asyncio.timeout(10):
            await ended.wait()


async def test_nobody_there_is_a_failure_that_may_pass() -> None:
    with pytest.raises(EndpointError, match="cannot be reached") as caught:
        await HttpClient("http://127.0.0.1:9/v1").post("/embeddings", BODY)
    assert caught.value.transient and caught.value.not_listening


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_chunks_may_arrive_in_any_pieces(size: int) -> None:
    text = b"5\r\nhello\r\n2;note=1\r\n, \r\n" + b"b\r\nhello again\r\n0\r\nTrailer: x\r\n\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            for at in range(0, len(CHUNKED + text), size):
                writer.write((CHUNKED + text)[at : at + size])
                await asyncio.sleep(0)
        writer.close()

    async with listening(serve) as port:
        client = HttpClient(f"http://127.0.0.1:{port}")
        for _ in range(2):  # the connection is kept
            assert (await client.get("/"))[1] == b"hello, hello again"
        client.close()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"3\r\nhello\r\n0\r\n\r\n", "longer than its size"),
        (b"1" * 400_000, "too long"),
        (b"5\r\nhel", "closed the connection"),
    ],
)
async def test_broken_chunks_are_errors(body: bytes, problem: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + body)
        writer.close()

    async with listening(serve) as port:
        with pytest.raises(EndpointError, match=problem):
            await HttpClient(f"http://127.0.0.1:{port}").get("/")


def test_a_proxy_in_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_proxy("https://api.example/v1") is None
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    found = find_proxy("https://api.example/v1")
    assert found and (found.hostname, found.port) == ("proxy.example", 3128)
    assert find_proxy("http://api.example/v1") is None
    assert find_proxy("https://localhost:8000/v1") is None
    monkeypatch.setenv("NO_PROXY", "api.example")
    assert find_proxy("https://api.example/v1") is None
    monkeypatch.setenv("HTTPS_PROXY", "socks5://u:secret@proxy.example:1080")
    with pytest.raises(ConfigError, match="socks5 proxy.*NO_PROXY") as caught:
        HttpClient("https://other.example/v1")
    assert "secret" not in str(caught.value)


async def test_a_plain_proxy_gets_the_whole_address(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        writer.close()

    async with listening(serve) as port:
        monkeypatch.setenv("HTTP_PROXY", f"http://u:p%40@127.0.0.1:{port}")
        client = HttpClient("http://model.invalid:81/v1")
        assert (await client.post("/chat", b"{}"))[1] == b"hi"
    assert heads[0].startswith(b"POST http://model.invalid:81/v1/chat HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"u:p@") in heads[0]
    with pytest.raises(EndpointError, match="cannot be reached through the proxy 127.0.0.1"):
        await client.post("/chat", b"{}")
    assert "p%40" not in repr(client)


async def test_https_goes_through_a_tunnel(
    monkeypatch: pytest.MonkeyPatch, certificate: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    heads: list[bytes] = []
    statuses = [b"407 Who", b"200 Connection established"]

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while block := await reader.read(65536):
            writer.write(block)
        writer.close()

    async with StubEndpoint(lambda _: "hi", tls=context) as stub:
        port = int(stub.base_url.split(":")[2].split("/")[0])

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            status = statuses.pop(0)
            writer.write(b"HTTP/1.1 " + status + b"\r\n\r\n")
            if not status.startswith(b"200"):
                writer.close()
                return
            there, back = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)

        async with listening(serve) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", f"http://u:p@127.0.0.1:{proxy}")
            monkeypatch.setattr("clew.llm.http.LOCAL_HOSTS", frozenset())
            ca_file = str(certificate / "cert.pem")
            client = HttpClient(stub.base_url, auth_headers("key-1"), ca_file=ca_file)
            with pytest.raises(EndpointError, match=r"refused the connection .*HTTP 407") as caught:
                await client.post("/embeddings", BODY)
            assert not caught.value.transient
            for _ in range(2):
                assert len(json.loads((await client.post("/embeddings", BODY))[1])["data"]) == 2
            client.close()
            await asyncio.sleep(0.01)
    assert len(heads) == 2 and b"key-1" not in heads[1]
    assert heads[1].startswith(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n".encode())
    assert b"Proxy-Authorization: Basic " in heads[1]


async def test_a_wrong_certificate_is_one_sentence_and_a_known_one_works(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    async with StubEndpoint(tls=context) as stub:
        with pytest.raises(
            EndpointError, match=r"certificate that cannot be verified.*ca_file"
        ) as e:
            await HttpClient(stub.base_url).post("/embeddings", BODY)
        assert not e.value.transient
        trusting = HttpClient(stub.base_url, ca_file=str(certificate / "cert.pem"))
        assert (await trusting.post("/embeddings", BODY))[0].status == 200
    with pytest.raises(ConfigError, match="ca_file"):
        await HttpClient(stub.base_url, ca_file="/no/such.pem").get("/")
