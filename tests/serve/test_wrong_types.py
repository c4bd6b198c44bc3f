"""Requests whose types or values are wrong: the right status and one sentence."""

from pathlib import Path
from typing import Any

import pytest
from serving import fill, make_server, running

from clew.errors import StoreError
from clew.serve.core import database


def test_wrong_types_are_refused(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    at = "/workspaces/valley"
    chat = {"model": "valley/bm25", "messages": [{"role": "user", "content": "Who?"}]}
    picture = [{"type": "image_url", "image_url": {"url": "data:,"}}, {"type": "text", "text": "?"}]
    pair = {"one": "Nobody", "other": "No One"}
    cases: list[tuple[str, dict[str, Any], int]] = [
        (f"{at}/search", {"question": "Who?", "k": "5"}, 422),
        (f"{at}/ask", {"question": " \0\t"}, 422),
        (f"{at}/search", {"question": "\0"}, 422),
        ("/v1/chat/completions", {**chat, "temperature": "x"}, 400),
        ("/v1/chat/completions", {**chat, "stop": list("abcde")}, 400),
        ("/v1/chat/completions", {**chat, "messages": [{"role": "user", "content": picture}]}, 400),
        (f"{at}/entities/merge", pair, 404),
        (f"{at}/entities/undo", pair, 404),
    ]
    with running(make_server(tmp_path)) as client:
        for path, body, status in cases:
            reply = client.post(path, json=body)
            assert reply.status_code == status, (path, body, reply.text)


def test_a_full_disk_is_called_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "server.sqlite").write_bytes(b"not a database" * 100)
    monkeypatch.setattr(database, "LEAST_FREE", 10**18)  # as if the disk had no room
    with pytest.raises(StoreError, match="the disk is full"):
        database.ServerDatabase(tmp_path)
