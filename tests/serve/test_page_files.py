"""The page at `/`: built files, their headers, and the routes that only the page needs."""

import ast
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from bench.architecture import parse
from serving import fill, make_key, make_server, running

from clew.agents.messages import OWN_MARKS
from clew.agents.tools import TOOLS
from clew.ingest.files import READERS
from clew.recipes.configure import add_own_recipes
from clew.recipes.registry import describe_recipes
from clew.serve.page_files import load_page_files

PAGE = Path(__file__).parents[2] / "page"
NAMED = (
    "index.html",
    "package.json",
    "package-lock.json",
    "vite.config.ts",
    "vite.export.config.ts",
)
SOURCES = PAGE.parent / "src" / "clew"
# Messages that the code puts together from words that stand apart.
COMPOSED = {
    "expand semantic channel",
    "expand relational channel",
    "semantic channel",
    "chunks={a} entities={b} facts={c} paths={d} communities={e}",
    "the budget of {n} calls is spent",
    "the budget of {n} tokens is spent",
}
FIRST_VIEW_BYTES = 180_000
ALL_BYTES = 1_000_000


def hash_sources() -> str:
    """The hash of the page's sources, as `page/scripts/stamp.mjs` computes it."""
    found = [one for folder in ("src", "public") for one in (PAGE / folder).rglob("*")]
    paths = [one.relative_to(PAGE).as_posix() for one in found if one.is_file()]
    hashed = hashlib.sha256()
    for path in sorted([*paths, *NAMED]):
        hashed.update(f"{path}\0".encode())
        hashed.update((PAGE / path).read_text(encoding="utf-8").replace("\r\n", "\n").encode())
    return hashed.hexdigest()


def test_the_messages_that_the_page_translates_are_still_said() -> None:
    listed = (PAGE / "src" / "zh-messages.ts").read_text(encoding="utf-8")
    messages = re.findall(r'^  \["([^"]+)", "', listed, re.MULTILINE)
    trees = (parse(one)[0] for one in SOURCES.rglob("*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    said = "\n".join({node.value for node in nodes if isinstance(node.value, str)})
    gone = [
        (message, part)
        for message in messages
        for part in (one.strip(" .,:;()“”#") for one in re.split(r"\{\w+\}", message))
        if message not in COMPOSED and part not in said
    ]
    assert len(messages) > 100
    assert gone == [], "reworded in the code: reword it in page/src/zh-messages.ts too"


def test_every_step_of_an_agent_has_a_name_in_chinese() -> None:
    listed = (PAGE / "src" / "zh-messages.ts").read_text(encoding="utf-8")
    trees = (parse(one)[0] for one in SOURCES.rglob("agents/**/*.py"))
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    first = [one.args[0] for one in calls if ast.unparse(one.func).endswith("ctx.step")]
    first += [key.value for one in calls for key in one.keywords if key.arg == "step"]
    names = {one.value for one in first if isinstance(one, ast.Constant)} | set(TOOLS)
    assert len(names) > 10
    assert [name for name in names if f'["{name}", ' not in listed] == []


def test_every_recipe_is_described_in_chinese() -> None:
    listed = (PAGE / "src" / "zh-recipes.ts").read_text(encoding="utf-8")
    texts = re.findall(r'^  \["([^"]+)", "', listed, re.MULTILINE)
    known = [re.compile(re.sub(r"\\{\w+\\}", ".+", re.escape(text))) for text in texts]
    recipes = describe_recipes(add_own_recipes({}))
    said = {part for one in recipes for part in (one["about"], *one["needs"].split("; "))}
    assert [text for text in said if not any(one.fullmatch(text) for one in known)] == []


def test_the_page_knows_what_the_server_writes_behind_a_sentence() -> None:
    view = (PAGE / "src" / "views" / "compare.tsx").read_text(encoding="utf-8")
    assert [mark for mark in OWN_MARKS if f'"{mark}"' not in view] == []


def test_the_page_names_every_format_that_is_read() -> None:
    view = (PAGE / "src" / "views" / "documents.tsx").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<=[ \"])\.\w+", view))
    assert [suffix for suffix in READERS if suffix and suffix not in named] == []


def test_the_built_files_are_those_of_the_sources() -> None:
    static = PAGE.parent / "src" / "clew" / "serve" / "static"
    stamp = (static / "sources.sha256").read_text(encoding="utf-8").strip()
    assert stamp == hash_sources(), "the page's sources changed: run `make page` and commit"


def test_the_files_are_small_and_ask_no_other_server() -> None:
    files = load_page_files()
    assert sum(len(one.content) for one in files.values()) < ALL_BYTES
    first = [one for name, one in files.items() if name.startswith(("index", "page/index"))]
    assert sum(len(one.compressed) for one in first) < FIRST_VIEW_BYTES
    html = files["index.html"].content.decode()
    assert "http" not in html.replace("http-equiv", "")
    assert "<style" not in html
    assert not [name for name in files if name.endswith(".map")]


def test_the_page_needs_no_key_and_forbids_all_but_its_own_files(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    make_key(server, {"valley": "read"})
    with running(server) as client:
        page = client.get("/")
        assert page.status_code == 200
        assert (
            "default-src 'none'; script-src 'self'; style-src 'self'"
            in page.headers["content-security-policy"]
        )
        assert "unsafe" not in page.headers["content-security-policy"]
        again = client.get("/", headers={"If-None-Match": page.headers["etag"]})
        assert again.status_code == 304
        for name, file in load_page_files().items():
            if name != "index.html":
                got = client.get(f"/{name}")
                assert got.content == file.content
                assert "immutable" in got.headers["cache-control"]
        assert client.get("/page/../app.py").status_code in (401, 404)
        assert client.get("/page/nothing.js").status_code == 401
        assert client.post("/").status_code == 401
        assert client.get("/workspaces").status_code == 401


@pytest.mark.filterwarnings("error:The `root_path` parameter")
def test_the_page_works_under_a_sub_path(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path, root_path="/clew")) as client:
        assert client.get("/clew/").status_code == 200
        assert client.get("/").status_code == 200  # where the proxy takes the prefix off
        to = client.get("/clew", follow_redirects=False)
        assert (to.status_code, to.headers["location"]) == (308, "/clew/")
        assert "page/index" in client.get("/clew/").text
        assert 'src="/' not in client.get("/clew/").text  # relative, whatever the prefix
        for prefix in ("", "/clew"):
            assert client.get(f"{prefix}/workspaces/valley").json()["documents"] > 0
        assert client.get("/openapi.json").json()["servers"] == [{"url": "/clew"}]


def ask(client: Any, path: str, **query: Any) -> Any:
    reply = client.get(f"/workspaces/valley{path}", params=query)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_the_overview_has_entities_links_and_communities(tmp_path: Path) -> None:
    fill(tmp_path / "valley", trees=["dual"])
    with running(make_server(tmp_path)) as client:
        found = ask(client, "/overview")
        count = ask(client, "")["entities"]
        assert found["all"] == len(found["nodes"]) == count
        keys = {one["key"] for one in found["nodes"]}
        for one, other, fact in found["edges"]:
            assert one < other
            members = {e["key"] for e in ask(client, f"/facts/{fact}")["entities"]}
            assert {found["nodes"][one]["key"], found["nodes"][other]["key"]} <= members <= keys
        assert found["communities"]
        grouped = [one["community"] for one in found["nodes"] if one["community"] >= 0]
        sizes = [grouped.count(number) for number in range(len(found["communities"]))]
        assert sizes == [one["size"] for one in found["communities"]]
        few = ask(client, "/overview", limit=2)
        assert len(few["nodes"]) == 2
        assert few["all"] == count


def test_a_document_is_read_by_name_with_the_facts_it_states(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        name = ask(client, "/documents")["documents"][0]["name"]
        found = ask(client, "/reading", name=name, facts=True)
        assert name in found["names"]
        assert found["facts"]
        for fact in found["facts"]:
            assert found["text"][fact["start"] : fact["end"]].strip()
        assert ask(client, "/reading", name=name)["facts"] == []
        assert client.get("/workspaces/valley/reading?name=nowhere").status_code == 404


def test_the_schema_counts_every_entity_with_a_type(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        nodes = ask(client, "/overview")["nodes"]
        found = ask(client, "/schema")
        typed = [one["type"] for one in nodes if one["type"]]
        assert {one["name"]: one["count"] for one in found["types"]} == {
            name: typed.count(name) for name in set(typed)
        }
        assert found["history"] is None


def test_only_an_admin_sees_the_checks(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    reader = make_key(server, {"valley": "read"})
    admin = make_key(server, {"valley": "admin"})
    with running(server) as client:
        assert client.get("/workspaces/valley/checks", headers=reader).status_code == 403
        found = client.get("/workspaces/valley/checks", headers=admin).json()
        assert "python" in {one["name"] for one in found["checks"]}


def test_the_page_is_sent_under_the_names_of_the_server_alone(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        assert client.get("/").status_code == 200
        refused = client.get("/", headers={"Host": "evil.example"})
        assert refused.status_code == 421 and "host name" in refused.json()["detail"]
