"""Small things a newcomer meets: parts of names, typing errors, stdin, web pages, watching."""

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from in_process import clew

import clew as package
from clew.agents.ask import check_question
from clew.cli import watch as watching
from clew.cli.add import print_added
from clew.cli.app import FIRST_COMMANDS, FIRST_RECIPES
from clew.cli.watch import follow_changes, read_states
from clew.config import load_settings
from clew.errors import ConfigError, InputError, suggest
from clew.evaluate.compare import Cell
from clew.ingest.build import AddResult
from clew.ingest.fetch import document_name_of, fetch_page, fetch_sources, guess_suffix
from clew.models import Models
from clew.recipes.registry import BUILT_IN, list_heads
from clew.store.memory import MemoryStore
from clew.store.protocol import Counts
from clew.types import Usage


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("clew.llm.embed_weights.is_installed", lambda name: False)
    (tmp_path / "team.md").write_text(
        "Dana Petrov leads Vellum Works. Vellum Works is in Hallowmere."
    )
    clew("add", "team.md", cwd=tmp_path)
    return tmp_path


def test_a_part_of_a_name_finds_it_and_a_typing_error_is_told(team: Path) -> None:
    assert "Dana Petrov" in clew("show", "dana", cwd=team)
    assert "did you mean 'Dana Petrov'?" in clew("show", "Dana Petrof", cwd=team, code=1)
    assert "did you mean 'dana'?" in clew("show", "Dnaa", cwd=team, code=1)


def test_one_document_is_not_documents(team: Path) -> None:
    assert "1 document, 1 chunk," in clew("add", "team.md", cwd=team)


@pytest.mark.parametrize(
    ("words", "code", "meant"),
    [
        (("serch", "x"), 2, "did you mean 'search'?"),
        (("search", "x", "--recipe", "hybird"), 1, "did you mean 'hybrid'?"),
        (("ask", "x", "--recipe", "graphserch+bm25"), 1, "did you mean 'graphsearch'?"),
    ],
)
def test_what_is_meant_is_told(team: Path, words: tuple[str, ...], code: int, meant: str) -> None:
    assert meant in " ".join(clew(*words, cwd=team, code=code).split())


def test_an_unknown_setting_names_the_known_one(tmp_path: Path) -> None:
    (tmp_path / "clew.toml").write_text("[models]\nmodl = 'x'\n")
    with pytest.raises(ConfigError, match=r"models\.modl: there is no such setting; .*'model'"):
        load_settings(tmp_path / "clew.toml")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((123, None), "must be a text, and 123 is not"),
        (("who?", "3"), "whole number"),
        (("who?", None, "strict"), "mode 'strict': must be 'open' or 'reject'"),
    ],
)
def test_what_cannot_be_asked_is_told_in_plain_words(given: tuple, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_question(*given)


def test_open_is_listed_in_the_package() -> None:
    assert {"open", "connect", "Kb"} <= set(dir(package))


def test_two_questions_earn_no_stars() -> None:
    assert Cell(0.9, 0.8, 1.0, 2, 0.001).stars == ""
    assert Cell(0.9, 0.8, 1.0, 50, 0.001).stars == "**"


async def test_calls_without_a_price_are_not_nothing() -> None:
    store = MemoryStore()
    models = Models(load_settings().models, store)
    models.meter.add(Usage(calls=6, prompt_tokens=900, completion_tokens=100))
    await models.record_spending()
    await models.record_spending()
    assert await store.get("manifest", ["calls", "tokens", "spent"]) == {
        "calls": "6.0",
        "tokens": "1000.0",
    }


def test_help_shows_what_a_beginner_needs(tmp_path: Path) -> None:
    said = clew("--help", cwd=tmp_path)
    shown = [line for line in said.splitlines() if line.startswith("│")]
    assert all(any(f"│ {name} " in line for line in shown) for name in FIRST_COMMANDS)
    assert not any("│ tune " in line for line in shown)
    assert set(FIRST_RECIPES) <= set(list_heads(BUILT_IN)) and "graphsearch" in said
    assert "│ tune " in clew("--help-all", cwd=tmp_path)


def test_the_rest_of_the_recipes_is_listed_on_demand(tmp_path: Path) -> None:
    assert "youtu-no-schema" not in clew("recipes", cwd=tmp_path)
    assert "youtu-no-schema" in clew("recipes", "--all", cwd=tmp_path)
    assert len(json.loads(clew("recipes", "--json", cwd=tmp_path))) > 60


def test_question_words_do_not_mislead_a_plain_install(team: Path) -> None:
    (team / "noise.md").write_text("What is what, and who is who? Where is it, what is in it?")
    clew("add", "noise.md", cwd=team)
    found = json.loads(clew("search", "What is it that Dana leads?", "--json", cwd=team))
    assert [chunk["doc"] for chunk in found["chunks"]] == ["team.md"]


def test_an_add_of_copies_says_why_there_are_fewer_documents(team: Path) -> None:
    before = json.loads(clew("status", "--json", cwd=team))["documents"]
    (team / "copies").mkdir()
    for at in range(4):
        (team / "copies" / f"c{at}.txt").write_text("Nils Aas carves boats in Bodø.")
    said = clew("add", "copies", cwd=team)
    assert "4 added" in said
    assert "3 of them say the same as another one: copies share one document" in said
    assert json.loads(clew("status", "--json", cwd=team))["documents"] == before + 1
    (team / "again.txt").write_text("Nils Aas carves boats in Bodø.")
    assert json.loads(clew("add", "again.txt", "--json", cwd=team))["copies"] == 1
    assert json.loads(clew("add", "again.txt", "copies", "--json", cwd=team))["copies"] == 0


def test_standard_input_is_added(team: Path) -> None:
    said = clew("add", "-", cwd=team, told="Ilse Brandvik designed the Marrow Bridge.")
    assert "1 added" in said
    assert "stdin" in clew("status", "--documents", cwd=team)
    assert "standard input is empty" in clew("add", "-", cwd=team, code=1)


def test_a_second_standard_input_replaces_nothing(team: Path) -> None:
    said = clew("add", "-", cwd=team, told="Ilse Brandvik designed the Marrow Bridge.")
    assert "standard input is the document stdin-" in said
    assert "1 added, 0 updated" in clew("add", "-", cwd=team, told="Dana Petrov sails.")
    assert "1 added" in clew("add", "-", "--name", "log", cwd=team, told="Day one was long.")
    assert "1 updated" in clew("add", "-", "--name", "log", cwd=team, told="Day two was short.")
    names = json.loads(clew("status", "--documents", "--json", cwd=team))["names"]
    assert sum(name.startswith("stdin-") for name in names) == 2 and "log" in names


def test_a_table_may_be_piped_in(tmp_path: Path) -> None:
    clew("add", "-", cwd=tmp_path, told="fruit,price\nfig,3\nlime,4\npear,9\n")
    assert "fruit: lime; price: 4" in clew("search", "lime", cwd=tmp_path)


@pytest.mark.parametrize(
    ("raw", "suffix"),
    [
        (b"%PDF-1.7\n", ".pdf"),
        (b"SQLite format 3\x00", ".sqlite"),
        (b"  <!DOCTYPE html><p>x", ".html"),
        (b'[{"a": 1}]', ".json"),
        (b'{"a": 1}\n{"a": 2}\n', ".jsonl"),
        (b"{x} is a set", ""),
        (b"PK\x03\x04 broken", ""),
        (b"Plain words.", ""),
        (b"fruit,price\nfig,3\nlime,4\n", ".csv"),
        (b'name;note\r\nAda;"one; two"\r\nBo;three\r\n', ".csv"),
        (b"stop\tline\nQuay\t4\nMill\t7", ".tsv"),
        (b"Roses are red, so they say\nViolets are blue, or grey\nAsh is pale, by day\n", ""),
        (b"One, two\nthree, four, five\nsix, seven\n", ""),
        (b"12,13\n14,15\n16,17\n", ""),
    ],
)
def test_what_is_piped_in_is_known_by_how_it_begins(raw: bytes, suffix: str) -> None:
    assert guess_suffix(raw) == suffix


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/page")
            self.end_headers()
            return
        body = b"<html><body><p>Ilse Brandvik was born in Hallowmere.</p></body></html>"
        if self.path in ("/notes/", "/photos/"):
            link = b"a%20b.html" if self.path == "/notes/" else b"cat.jpg"
            body = b"<html><title>Index of /x</title><a href='../'>..</a><a href='%s'>x</a>" % link
        known = ("/page", "/notes/", "/photos/", "/notes/a%20b.html")
        self.send_response(200 if self.path in known else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *told: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_web_page_is_added_by_its_address(team: Path, site: str) -> None:
    assert "is a private address" in clew("add", f"{site}/page", cwd=team, code=1)
    assert "1 added" in clew("add", f"{site}/moved", "--allow-private", cwd=team)
    assert f"{site}/moved" in clew("status", "--documents", cwd=team)
    assert "answers 404" in clew("add", f"{site}/no", "--allow-private", cwd=team, code=1)
    several = (f"{site}/no", f"{site}/page", "--allow-private")
    said = clew("add", *several, cwd=team)
    assert "1 skipped" in said and "answers 404" in said
    assert f"{site}/page" in clew("status", "--documents", cwd=team)


def test_of_a_page_that_lists_a_folder_the_documents_are_added(team: Path, site: str) -> None:
    assert "1 added" in clew("add", f"{site}/notes/", "--allow-private", cwd=team)
    shown = clew("status", "--documents", cwd=team)
    assert f"{site}/notes/a b.html" in shown
    said = clew("add", f"{site}/photos/", "--allow-private", cwd=team, code=1)
    assert "only lists a folder" in said


def test_ctrl_c_ends_watching_without_an_error(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "follow_changes", interrupt)
    clew("watch", ".", cwd=team)  # the exit code is 0


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "http://[::1]/", "http://169.254.169.254/x"])
def test_private_addresses_are_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(InputError, match="is a private address"):
        fetch_page(url)


def test_a_page_is_named_by_its_address_without_the_fragment() -> None:
    assert document_name_of("http://bob:secret@a.org:81/b") == "http://a.org:81/b"
    assert document_name_of("HTTPS://a.org/b%20c/?q=1#d") == "https://a.org/b c/?q=1"


def test_too_much_input_is_refused(tmp_path: Path) -> None:
    from clew.ingest.readers.source import ReadBudget

    with pytest.raises(InputError, match="has more than"):
        fetch_sources(["-"], tmp_path, io.BytesIO(b"x" * 20), budget=ReadBudget(file_bytes=10))


async def test_a_folder_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("One.")
    seen: list[set[str]] = []

    async def bring() -> tuple[AddResult, list[str]]:
        return AddResult(Counts()), []

    turns = iter(["", "b.md", "", ""])

    async def pause(seconds: float) -> None:
        name = next(turns, None)
        if name is None:
            raise KeyError("no turn is left")
        if name:
            (folder / name).write_text("Two.")

    with pytest.raises(KeyError, match="no turn is left"):
        await follow_changes(
            [folder], 1.0, bring, lambda *_: seen.append(set(read_states([folder]))), pause
        )
    assert [{Path(name).name for name in one} for one in seen] == [{"a.md"}, {"a.md", "b.md"}]


def test_a_model_that_fails_on_most_chunks_is_exit_code_1(team: Path) -> None:
    class _Refuses(_Site):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"choices": [{"message": {"content": "no"}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with HTTPServer(("127.0.0.1", 0), _Refuses) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        (team / "clew.toml").write_text(f'[models]\nmodel = "m"\nbase_url = "{url}"\ntries = 1\n')
        (team / "b.md").write_text("Ilse Brandvik designed the Marrow Bridge.")
        clew("add", "b.md", cwd=team, code=1)
        said = clew("add", "--retry", "--fallback", "--json", cwd=team)
        server.shutdown()
        thread.join()
    assert json.loads(said)["failed"] == 1  # for the next --retry
    state = json.loads(clew("status", "--json", cwd=team))
    assert (state["failed"], state["by_rules"]) == (0, 1)
    assert "failed  0 (1 more by rules" in clew("status", cwd=team)
    assert "Marrow Bridge" in clew("show", "Marrow Bridge", cwd=team)


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("http://h/v1 timed out; a longer timeout may help", "raise timeout"),
        ("http://h/v1 failed on 'm' (HTTP 500: boom)", "See to the endpoint"),
        (
            "m gave no usable answer in 2 attempts (no JSON): try a larger model.",
            "Try a larger model",
        ),
        ("m gave no usable answer in 2 attempts (no JSON): raise max_tokens.", "Raise max_tokens"),
    ],
)
def test_the_hint_fits_the_failure(
    capsys: pytest.CaptureFixture[str], reason: str, hint: str
) -> None:
    print_added(AddResult(Counts(), chunks=2, failed=2), reason=reason)
    said = " ".join(capsys.readouterr().out.split())
    assert hint in said and ("raise timeout" in said) == (hint == "raise timeout")
    advice = [said.lower().count(word) for word in ("larger model", "max_tokens", "timeout")]
    assert sorted(advice) == sorted((hint == "raise timeout", 0, hint != "See to the endpoint"))


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("the Nle", "; did you mean 'Nile'?"),
        ("Lesee", "; did you mean 'the Lessee'?"),
        ("Next", ""),
    ],
)
def test_names_are_suggested_whatever_article_they_have(asked: str, near: str) -> None:
    assert suggest(asked, ["Nile", "the Lessee", "Please", "EXIT"]) == near


def test_a_heading_is_shown_as_no_fact(tmp_path: Path) -> None:
    text = "# Ilse Brandvik\n\nIlse Brandvik is a botanist.\n\n## Work\n\nShe wrote an atlas.\n"
    (tmp_path / "ilse.md").write_text(text, encoding="utf-8")
    clew("add", "ilse.md", cwd=tmp_path)
    shown = clew("show", "Ilse Brandvik", cwd=tmp_path)
    assert "is a botanist" in shown and "# Ilse" not in shown and "## Work" not in shown


def test_an_option_is_shown_by_its_name_as_it_is(tmp_path: Path) -> None:
    page = "# Options\n\n--onto BRANCH\n:   Sets the start. The --onto option takes a branch.\n"
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    clew("add", "page.md", cwd=tmp_path)
    assert "takes a branch" in clew("show", "--onto", cwd=tmp_path)
    assert "--whyy" in clew("show", "--onto", "--whyy", cwd=tmp_path, code=2)


@pytest.mark.parametrize(
    ("given", "said"), [("", "a path is empty"), ("ftp://a.example/b.txt", "only http and https")]
)
def test_what_is_neither_path_nor_web_page_is_told(team: Path, given: str, said: str) -> None:
    refused = clew("add", given, cwd=team, code=1)
    assert said in refused


def test_one_copy_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    print_added(AddResult(Counts(), added=2, copies=1))
    assert "1 of them says the same" in capsys.readouterr().out


def test_watching_tells_of_a_skipped_file_once(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (team / "notes").mkdir()
    (team / "notes" / "odd.txt").write_bytes(b"\x00\x01\x02" * 40)

    async def look_twice(_: object, __: object, bring: Any, show: Any) -> None:
        show(*await bring())
        show(*await bring())

    monkeypatch.setattr(watching, "follow_changes", look_twice)
    assert clew("watch", "notes", cwd=team).count("skipped notes/odd.txt") == 1


def test_watching_an_empty_folder_waits_for_files(
    team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = team / "inbox"
    inbox.mkdir()

    async def look_before_and_after(paths: Any, _: object, bring: Any, show: Any) -> None:
        assert read_states(paths) == {}
        (inbox / "a.txt").write_text("The kiln was lit in May.", encoding="utf-8")
        show(*await bring())
        (inbox / "a.txt").unlink()
        show(*await bring())

    monkeypatch.setattr(watching, "follow_changes", look_before_and_after)
    said = clew("watch", "inbox", cwd=team)
    assert "waiting for the first" in said
    assert "1 added" in said
    assert "no longer exists" in said and "`clew watch --remove` does so" in " ".join(said.split())
    assert "removed inbox/a.txt" in clew("watch", "inbox", "--remove", cwd=team)
