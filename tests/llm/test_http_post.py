"""Both ways to post to an endpoint, and which of them is taken."""

import json

import pytest

from clew.llm.chat import EndpointError
from clew.llm.http_post import DirectPostClient, PostClient, ProxyPostClient, create_post_client
from clew.testing.stub_endpoint import StubEndpoint

BODY = json.dumps({"model": "m", "input": ["one", "two"]}).encode()


@pytest.fixture
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.usefixtures("_no_proxy")
@pytest.mark.parametrize("way", [DirectPostClient, ProxyPostClient])
async def test_either_way_brings_status_headers_and_body(
    way: type[DirectPostClient] | type[ProxyPostClient],
) -> None:
    async with StubEndpoint() as stub:
        post: PostClient = way(stub.base_url, {"Authorization": "Bearer k"})
        status, headers, body = await post("/embeddings", BODY)
        assert (status, headers["content-type"]) == (200, "application/json")
        assert len(json.loads(body)["data"]) == 2
        assert (await post("/nowhere", BODY))[0] == 404
        assert stub.stats.headers[0]["authorization"] == "Bearer k"
        await post.aclose()


@pytest.mark.usefixtures("_no_proxy")
@pytest.mark.parametrize("way", [DirectPostClient, ProxyPostClient])
async def test_nobody_there_is_a_failure_that_may_pass(
    way: type[DirectPostClient] | type[ProxyPostClient],
) -> None:
    post: PostClient = way("http://127.0.0.1:9/v1", {}, timeout=5.0)
    with pytest.raises(EndpointError, match="cannot be reached") as caught:
        await post("/embeddings", BODY)
    assert caught.value.transient
    await post.aclose()


@pytest.mark.usefixtures("_no_proxy")
def test_a_proxy_in_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(create_post_client("https://api.example/v1", {}, 1.0), DirectPostClient)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    assert isinstance(create_post_client("https://api.example/v1", {}, 1.0), ProxyPostClient)
    assert isinstance(create_post_client("http://api.example/v1", {}, 1.0), DirectPostClient)
    assert isinstance(create_post_client("https://localhost:8000/v1", {}, 1.0), DirectPostClient)
    monkeypatch.setenv("NO_PROXY", "api.example")
    assert isinstance(create_post_client("https://api.example/v1", {}, 1.0), DirectPostClient)
