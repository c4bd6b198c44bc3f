"""The OpenAPI description says what is sent: examples, errors, the body of an upload."""

from pathlib import Path
from typing import Any

from serving import fill, make_key, make_server, running

AT = "/workspaces/default"


def test_every_route_has_an_example_and_its_errors(tmp_path: Path) -> None:
    fill(tmp_path / "default")
    with running(make_server(tmp_path)) as client:
        described = client.get("/openapi.json").json()
    missing = []
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            codes = operation["responses"]
            [good] = [code for code in codes if code.startswith("2")]
            media = codes[good]["content"]
            if not any("example" in one for one in media.values()) and "application/json" in media:
                missing.append(f"{method} {path}")
            for code in codes.keys() - {good}:
                [error] = codes[code]["content"].values()
                shape = error["schema"]["$ref"].rpartition("/")[2]
                assert error["example"].keys() == set(
                    described["components"]["schemas"][shape]["required"]
                )
    assert missing == []
    body = described["paths"]["/workspaces/{workspace}/documents"]["post"]["requestBody"]
    assert list(body["content"]) == ["application/octet-stream"]
    assert described["security"] == [{"key": []}]


def test_the_examples_are_like_the_answers(tmp_path: Path) -> None:
    fill(tmp_path / "default", trees=["dual"])
    server = make_server(tmp_path)
    with running(server, make_key(server, {"*": "admin"})) as client:
        described = client.get("/openapi.json").json()["paths"]

        def example(path: str, method: str) -> Any:
            [answer] = [
                one
                for code, one in described[path][method]["responses"].items()
                if code.startswith("2")
            ]
            return answer["content"]["application/json"]["example"]

        question = {"question": "Who designed the Marrow Bridge?"}
        chat = {"model": "default", "messages": [{"role": "user", "content": "Who?"}]}
        asked: list[tuple[str, str, dict[str, Any]]] = [
            ("GET", "/ready", {}),
            ("GET", "/workspaces", {}),
            ("GET", "/workspaces/{workspace}", {}),
            ("GET", "/workspaces/{workspace}/documents", {}),
            ("GET", "/workspaces/{workspace}/overview", {}),
            ("GET", "/workspaces/{workspace}/schema", {}),
            ("GET", "/workspaces/{workspace}/tree", {}),
            ("GET", "/workspaces/{workspace}/reading", {"params": {"name": "bridge"}}),
            ("GET", "/workspaces/{workspace}/show", {"params": {"name": "Hallowmere"}}),
            ("POST", "/workspaces/{workspace}/search", {"json": question}),
            ("POST", "/workspaces/{workspace}/ask", {"json": question}),
            ("POST", "/v1/chat/completions", {"json": chat}),
            ("POST", "/v1/responses", {"json": {"model": "default", "input": "Who?"}}),
        ]
        for method, path, given in asked:
            reply = client.request(method, path.replace("{workspace}", "default"), **given)
            assert reply.json().keys() == example(path, method.lower()).keys(), path
        listed = client.get(f"{AT}/documents").json()["documents"][0]
        shown = example("/workspaces/{workspace}/documents", "get")["documents"][0]
        assert listed.keys() == shown.keys()


def test_a_wrong_route_or_method_is_one_sentence(tmp_path: Path) -> None:
    fill(tmp_path / "default")
    with running(make_server(tmp_path)) as client:
        unknown = client.get("/nothing").json()
        assert "no such route" in unknown["detail"] and unknown["status"] == 404
        wrong = client.patch("/workspaces")
        assert wrong.status_code == 405 and "method" in wrong.json()["detail"]
        assert wrong.headers["Allow"] == "GET"
