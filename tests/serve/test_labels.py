"""What only a hidden document says is not shown by any route."""

import json
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from label_leaks import TEAMS, hidden_markers, make_documents, marker, read_everything
from serving import fill, make_key, make_server, running
from typer.testing import CliRunner

from clew import sync
from clew.cli.app import app
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError, StoreError
from clew.labels import (
    LABELS_KIND,
    DocumentLabeller,
    check_labels,
    find_hidden,
    is_visible,
    read_labels,
    read_revision,
    save_labels,
)
from clew.serve.core.label_views import Outdated, find_visible, make_view
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.hashed_kb import open_hashed
from conftest import document, stream


@pytest.mark.parametrize(
    ("labels", "granted", "seen"),
    [
        ([], [], True),
        (["team=legal"], [], False),
        (["team=legal"], ["team=legal"], True),
        (["team=legal", "team=sales"], ["team=sales"], True),
        (["team=legal", "level=secret"], ["team=legal"], False),
        (["team=legal", "level=secret"], ["team=legal", "level=secret"], True),
        (["team=legal"], ["team=legal2", "other=legal"], False),
    ],
)
def test_one_value_of_each_label_name_is_needed(
    labels: list[str], granted: list[str], seen: bool
) -> None:
    assert is_visible(labels, granted) is seen


@given(
    st.frozensets(st.sampled_from(TEAMS)),
    st.frozensets(st.sampled_from(TEAMS)),
    st.frozensets(st.sampled_from(TEAMS)),
)
def test_more_rights_never_show_less(
    labels: frozenset[str], granted: frozenset[str], more: frozenset[str]
) -> None:
    assert is_visible(labels, granted | more) or not is_visible(labels, granted)


@pytest.mark.parametrize("label", ["legal", "=x", "a=", "a b=c", "a=b c", "a=" + "x" * 100])
def test_a_label_is_a_name_and_a_value(label: str) -> None:
    with pytest.raises(ConfigError, match="name=value"):
        check_labels([label])


@settings(
    max_examples=max(1, settings.default.max_examples // 50),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.integers(0, 10_000), st.sets(st.sampled_from(TEAMS)))
def test_no_route_shows_what_only_a_hidden_document_says(
    tmp_path_factory: pytest.TempPathFactory, seed: int, granted: set[str]
) -> None:
    documents, labels = make_documents(6, seed)
    root = tmp_path_factory.mktemp("labels")
    fill(root / "valley", documents, labels, trees=["dual", "raptor"])
    server = make_server(root)
    key = make_key(server, {"valley": "read"}, sorted(granted))
    hidden = hidden_markers(labels, sorted(granted))
    visible = [marker(n).lower() for n in range(6) if marker(n).lower() not in hidden]
    bodies = []
    with running(server) as client:
        for asked, body in read_everything(client, key, documents):
            assert [word for word in hidden if word in body.lower()] == [], asked
            bodies.append(body.lower())
    for word in visible:
        assert any(word in body for body in bodies)


def test_a_label_hides_at_once_and_shows_again(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    admin = make_key(server, {"*": "admin"})
    reader = make_key(server, {"valley": "read"}, ["team=legal"])
    with running(server) as client:
        at = "/workspaces/valley"
        body = {"question": "Who was Anton Reeve?", "recipe": "bm25", "k": 6}

        def found() -> set[str]:
            reply = client.post(f"{at}/search", json=body, headers=reader)
            return {chunk["doc"] for chunk in reply.json()["chunks"]}

        assert "poet" in found()
        listed = client.get(f"{at}/documents", headers=admin).json()["documents"]
        poet = next(one["id"] for one in listed if one["name"] == "poet")
        for labels, seen in ((["team=sales"], False), (["team=legal"], True), ([], True)):
            url = f"{at}/documents/{poet}/labels"
            assert client.put(url, json={"labels": labels}, headers=admin).status_code == 200
            assert ("poet" in found()) is seen
        status = client.get(at, headers=reader).json()
        assert status["documents"] == 6


def test_a_key_with_labels_uploads_into_its_own_folder(tmp_path: Path) -> None:
    fill(tmp_path / "valley", labels={"poet": ["team=legal"]})
    server = make_server(tmp_path)
    key = make_key(server, {"valley": "write"}, ["team=sales"])
    with running(server) as client:
        at = "/workspaces/valley/documents"
        sent = client.post(at, params={"name": "poet"}, content=b"Hello.", headers=key)
        assert sent.status_code == 201 and sent.json()["name"].endswith("/poet")
        wrong = {"name": "x.txt", "label": "team=legal"}
        assert client.post(at, params=wrong, content=b"x", headers=key).status_code == 403
        right = {"name": "x.txt", "label": "team=sales"}
        assert client.post(at, params=right, content=b"x", headers=key).status_code == 201
        rows = client.get(at, headers=key).json()["documents"]
        waiting = {one["name"].partition("/")[2]: one["labels"] for one in rows if "sha256" in one}
        assert waiting == {"poet": [], "x.txt": ["team=sales"]}
        refused = client.post(
            "/workspaces/valley/entities/merge", json={"one": "a", "other": "b"}, headers=key
        )
        assert refused.status_code == 403


def test_documents_are_labelled_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clew.toml").write_text("")
    for name in ("nda", "menu"):
        (tmp_path / f"{name}.txt").write_text(f"The {name} was written by Marta Quill.")
    runner = CliRunner()

    def run(*words: str) -> dict[str, Any]:
        done = runner.invoke(app, [*words, "--json", "--kb", "valley"])
        assert done.exit_code == 0, done.output
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    assert run("add", "nda.txt", "--label", "team=legal")["added"] == 1
    assert run("add", "menu.txt")["added"] == 1
    assert run("label", "menu.txt", "--label", "team=kitchen")["documents"] == ["menu.txt"]
    assert runner.invoke(app, ["add", "nda.txt", "--label", "x", "--kb", "valley"]).exit_code == 1
    run("add", "nda.txt")  # without a label it keeps those that it has

    async def stored() -> dict[str, tuple[str, ...]]:
        store = SqliteStore(tmp_path / "valley")
        found = await read_labels(store, ["nda.txt", "menu.txt"])
        await store.close()
        return found

    assert sync.wait(stored()) == {"nda.txt": ("team=legal",), "menu.txt": ("team=kitchen",)}


def test_earlier_labels_are_needed_until_the_document_is_written(tmp_path: Path) -> None:
    fill(tmp_path / "valley", labels={"poet": ["team=legal"]})

    async def hidden(base: KnowledgeBase, *granted: str) -> bool:
        return bool(await find_hidden(base.store, ["poet"], granted))

    async def relabel() -> None:
        base = await open_hashed(Settings(kb=tmp_path / "valley"), False)
        poet = document("poet", "Nothing is known of the poet Anton Reeve.", "")
        broken = DocumentLabeller(base.store)
        async for _ in broken.attach(stream([poet]), ["team=sales"]):
            pass  # the build is cancelled before anything is written
        assert await hidden(base, "team=sales") and await hidden(base, "team=legal")
        assert not await hidden(base, "team=sales", "team=legal")
        again = DocumentLabeller(base.store)
        await base.take(again.attach(stream([poet]), ["team=sales"]))
        assert await hidden(base, "team=sales")
        await again.settle()
        assert await hidden(base, "team=legal") and not await hidden(base, "team=sales")
        await base.close()

    sync.wait(relabel())


def test_an_upload_changes_labels_only_with_admin_scope(tmp_path: Path) -> None:
    fill(tmp_path / "valley", labels={"poet": ["team=legal"]})
    server = make_server(tmp_path)
    writer, admin = make_key(server, {"valley": "write"}), make_key(server, {"valley": "admin"})
    with running(server) as client:

        def send(name: str, key: dict[str, str], *labels: str) -> int:
            query = {"name": name, "label": list(labels)}
            at = "/workspaces/valley/documents"
            return client.post(at, params=query, content=b"Hello.", headers=key).status_code

        assert send("poet", writer, "team=sales") == 403
        assert send("poet", writer) == send("poet", writer, "team=legal") == 201
        assert send("new.txt", writer, "team=sales") == 201
        assert send("poet", admin, "team=sales") == 201


def test_a_copy_for_readers_is_never_of_other_documents_than_were_checked(tmp_path: Path) -> None:
    fill(tmp_path / "valley", labels={"poet": ["team=legal"]})

    async def look() -> None:
        base = await open_hashed(Settings(kb=tmp_path / "valley"), False)
        found = await find_visible(base, [])
        assert found.hidden == ("poet",)
        await save_labels(base.store, {"secret": ["team=legal"]})
        await base.take(stream([document("secret", "Marta Quill has sold the ferry.", "")]))
        with pytest.raises(Outdated):
            await make_view(base, found, tmp_path / "views")
        newer = await find_visible(base, [])
        assert newer.hidden == ("poet", "secret")
        assert (await make_view(base, newer, tmp_path / "views")).name == newer.id
        await base.close()

    sync.wait(look())


def test_a_workspace_made_anew_shows_nothing_of_the_old_one(tmp_path: Path) -> None:
    labels = {"secret": ["team=legal"]}
    body = {"question": "Where is the tower?", "recipe": "bm25", "k": 5}
    for word in ("Marrow", "Tallow"):
        shutil.rmtree(tmp_path / "valley", ignore_errors=True)
        public = document("public", f"The {word} Tower is in Turku.", "")
        secret = document("secret", "The tower is sold.", "")
        fill(tmp_path / "valley", [public, secret], labels)
        server = make_server(tmp_path)
        reader = make_key(server, {"valley": "read"}, [])
        with running(server) as client:
            reply = client.post("/workspaces/valley/search", json=body, headers=reader).json()
        assert [chunk["text"] for chunk in reply["chunks"]] == [public.text]


class DyingStore(SqliteStore):
    """Dies right after labels were stored, as a kill would."""

    async def set(self, kind: str, items: Mapping[str, str]) -> None:
        """Store, then die."""
        await super().set(kind, items)
        if kind == LABELS_KIND:
            raise KeyboardInterrupt


async def test_labels_count_even_if_storing_them_was_killed(tmp_path: Path) -> None:
    store = DyingStore(tmp_path / "kb", create=True, durable=False)
    with pytest.raises(KeyboardInterrupt):
        await save_labels(store, {"secret": ["team=legal"]})
    assert await read_revision(store)
    assert await find_hidden(store, ["secret"], []) == ["secret"]
    await store.close()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM memory WHERE kind = 'label' AND key = 'plans'",
        "UPDATE memory SET key = 'plan?' WHERE kind = 'label' AND key = 'plans'",
        "UPDATE memory SET value = '[]', checksum = NULL WHERE kind = 'label' AND key = 'plans'",
        "UPDATE memory SET kind = 'lavel' WHERE kind = 'label' AND key = 'plans'",
        "DELETE FROM memory WHERE kind = 'manifest' AND key = 'labels'",
    ],
)
async def test_a_label_that_was_lost_hides_rather_than_shows(tmp_path: Path, damage: str) -> None:
    store = SqliteStore(tmp_path, create=True, durable=False)
    base = KnowledgeBase(store, Settings(kb=tmp_path, extractor="offline"), HashEmbed())
    await save_labels(store, {"plans": ["team=legal"]})
    await base.take(stream([document("plans", "The secret plans of Vessen.")]))
    assert (await find_visible(base, [])).hidden == ("plans",)
    with sqlite3.connect(tmp_path / "kb.sqlite") as db:
        assert db.execute(damage).rowcount == 1
    db.close()
    with pytest.raises(StoreError, match="unknown who may see it"):
        await find_visible(base, [])
    if "manifest" not in damage and "NULL" not in damage:  # of these, only the copy tells
        assert await base.verify() != []
