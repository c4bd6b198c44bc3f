"""Reading paths: what is found, in which order, under which name, and what is left out."""

import asyncio
import os
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest

from clew.errors import InputError
from clew.ingest import files as readers
from clew.ingest.files import read
from clew.ingest.readers.source import (
    DEFAULT_BUDGET,
    ReadBudget,
    RowNames,
    Skipped,
    SourceFile,
    make_document,
)
from clew.text.unicode import digest
from clew.types import Document


async def taken(
    paths: Sequence[str | Path], row_names: RowNames = "path", budget: ReadBudget = DEFAULT_BUDGET
) -> tuple[list[Document], list[Skipped]]:
    items = [item async for item in read(paths, row_names=row_names, budget=budget)]
    documents = [item for item in items if isinstance(item, Document)]
    return documents, [item for item in items if isinstance(item, Skipped)]


async def one_skip(path: Path, budget: ReadBudget = DEFAULT_BUDGET) -> str:
    documents, skipped = await taken([path], budget=budget)
    assert not documents and len(skipped) == 1
    assert skipped[0].name == path.as_posix()
    return skipped[0].reason


async def text_of(path: Path) -> Document:
    documents, skipped = await taken([path])
    assert not skipped
    return documents[0]


async def test_a_folder_is_read_recursively_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("docs/b.txt", "docs/a/z.md", "docs/a/y.py", "docs/c.unknown"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"This is {name}")
    expected = ["docs/a/y.py", "docs/a/z.md", "docs/b.txt", "docs/c.unknown"]
    documents, skipped = await taken(["docs"])
    assert [found.names for found in documents] == [(name,) for name in expected]
    assert not skipped
    assert documents[2].id == digest("", "This is docs/b.txt")
    # The same thing asked for twice is read once.
    again, _ = await taken(["docs", "docs/b.txt", "docs"])
    assert again == documents
    below, _ = await taken(["docs/a", "./docs/b.txt"])
    assert [found.names[0] for found in below] == expected[:3]


async def test_missing_paths_and_empty_folders_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: no such file"):
        await taken([tmp_path / "nowhere"])
    (tmp_path / "empty" / "inside").mkdir(parents=True)
    with pytest.raises(InputError, match="empty: the folder is empty"):
        await taken([tmp_path / "empty"])


async def test_nothing_is_read_when_one_path_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Here")
    stream = read([tmp_path / "a.txt", tmp_path / "b.txt"])
    with pytest.raises(InputError):
        await anext(stream)


async def test_hidden_things_and_links_out_are_counted(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    (asked / ".git").mkdir(parents=True)
    (asked / ".git" / "config").write_text("secret")
    (asked / ".env").write_text("secret")
    (asked / "real.txt").write_text("Real text.")
    (tmp_path / "outside.txt").write_text("Not asked for.")
    (asked / "away.txt").symlink_to(tmp_path / "outside.txt")
    (asked / "up").symlink_to(tmp_path)
    (asked / "loop").symlink_to(asked)
    (asked / "broken").symlink_to(asked / "gone")
    (asked / "same.txt").symlink_to("real.txt")
    documents, skipped = await taken([asked])
    assert [Path(found.names[0]).name for found in documents] == ["real.txt", "same.txt"]
    assert documents[0].id == documents[1].id
    reasons = {Path(skip.name).name: skip.reason for skip in skipped}
    assert set(reasons) == {".env", ".git", "away.txt", "broken", "loop", "up"}
    assert all("outside the given folder" in reasons[name] for name in ("away.txt", "up"))
    assert "hidden" in reasons[".env"]
    # What is named is read, hidden or not.
    assert (await text_of(asked / ".env")).text == "secret"


async def test_our_own_files_are_left_alone_unless_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Text.")
    (tmp_path / "clew.toml").write_text('[models]\napi_key = "secret"')
    for kb in (tmp_path / "kb", tmp_path / "old" / "kb2"):
        (kb / "arrays").mkdir(parents=True)
        (kb / "kb.sqlite").write_bytes(b"SQLite")
        (kb / "writer.lock").write_text("1")
    documents, skipped = await taken([tmp_path])
    assert [Path(found.names[0]).name for found in documents] == ["a.txt"]
    reasons = {Path(skip.name).name: skip.reason for skip in skipped}
    assert set(reasons) == {"clew.toml", "kb", "kb2"}
    assert "keys" in reasons["clew.toml"] and reasons["kb"] == "is a knowledge base"
    assert "secret" in (await text_of(tmp_path / "clew.toml")).text


async def test_texts_may_lie_beside_a_knowledge_base(tmp_path: Path) -> None:
    for name in ("a.txt", "kb.sqlite", "kb.sqlite-wal", "writer.lock", "arrays/1/x.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("Text.")
    documents, skipped = await taken([tmp_path])
    assert [Path(found.names[0]).name for found in documents] == ["a.txt"]
    assert {skip.reason for skip in skipped} == {"is a part of a knowledge base"}
    assert len(skipped) == 4


async def test_pipes_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert await one_skip(tmp_path / "pipe.txt") == "is not a regular file"


async def test_a_file_that_may_not_be_opened_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    (tmp_path / "locked.txt").write_text("text")
    monkeypatch.setattr(Path, "open", refuse)
    assert await one_skip(tmp_path / "locked.txt") == "cannot be read (Permission denied)"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")
async def test_a_folder_that_may_not_be_opened_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0)
    (tmp_path / "a.txt").write_text("text")
    documents, skipped = await taken([tmp_path])
    (tmp_path / "locked").chmod(0o700)
    assert len(documents) == 1 and "Permission denied" in skipped[0].reason


async def test_names_are_safe_to_print(tmp_path: Path) -> None:
    try:
        (tmp_path / "a\x1b[31m\nb.txt").write_text("text")
        (tmp_path / os.fsdecode(b"\xff.txt")).write_text("more")
        (tmp_path / unicodedata.normalize("NFD", "é.txt")).write_text("third")
    except OSError:
        pytest.skip("this file system refuses such names")
    documents, _ = await taken([tmp_path])
    names = {found.names[0].rpartition("/")[2] for found in documents}
    assert names == {"a\ufffd[31m\ufffdb.txt", "\ufffd.txt", "é.txt"}


async def test_files_whose_names_become_equal_are_told(tmp_path: Path) -> None:
    try:
        for form in ("NFC", "NFD"):
            (tmp_path / unicodedata.normalize(form, "é.txt")).write_text(form)
        for code in (1, 2, 3):
            (tmp_path / f"a{chr(code)}.txt").write_text(f"text {code}")
    except OSError:
        pytest.skip("this file system refuses such names")
    if len(os.listdir(tmp_path)) < 5:
        pytest.skip("this file system takes such names for one")
    documents, skipped = await taken([tmp_path, tmp_path])
    assert len(documents) == 2
    told = [(Path(skip.name).name, skip.reason) for skip in skipped]
    assert {name for name, _ in told} == {"é.txt", "a\ufffd.txt"}
    assert all("rename it" in reason for _, reason in told)


@pytest.mark.parametrize(
    ("raw", "text", "encoding"),
    [
        ("Zoë\r\nnaïve".encode(), "Zoë\nnaïve", "utf-8"),
        ("Zoë".encode("utf-8-sig"), "Zoë", "utf-8"),
        ("Zoë 東京".encode("utf-16"), "Zoë 東京", f"utf-16-{sys.byteorder[:1]}e"),
        ("Zoë".encode("utf-32"), "Zoë", f"utf-32-{sys.byteorder[:1]}e"),
        (b"\xfe\xff" + "Zoë".encode("utf-16-be"), "Zoë", "utf-16-be"),
        ("Café au lait".encode("latin-1"), "Café au lait", "latin-1"),
        ("The “naïve” café".encode("cp1252"), "The “naïve” café", "cp1252"),
        (unicodedata.normalize("NFD", "é").encode(), "é", "utf-8"),
        ("é".encode() * 20 + b"\xff", "é" * 20 + "\ufffd", "utf-8, 1 broken"),
    ],
)
async def test_encodings(tmp_path: Path, raw: bytes, text: str, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(raw)
    found = await text_of(path)
    assert found.text == text
    assert found.metadata["encoding"] == encoding


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"\x7fELF\x02\x01\x01\0\0", "is not text but a program"),
        (b"%PDF-1.7 and so on", "is not text but a PDF"),
        (bytes(range(256)) * 20, "contains binary data"),
        (b"MZ\x90\0\x03\0\0\0" * 30, "contains binary data"),
        (b"\xff\xfe" + bytes(range(1, 250)) * 9, "UTF-16"),
        ("Москва столица России".encode("cp1251"), "convert it to UTF-8"),
        ("東京は日本の首都です。".encode("shift_jis"), "convert it to UTF-8"),
    ],
)
async def test_what_is_not_text_says_so(tmp_path: Path, raw: bytes, reason: str) -> None:
    path = tmp_path / "renamed.txt"
    path.write_bytes(raw)
    assert reason in await one_skip(path)


async def test_a_file_over_the_limit_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    with path.open("wb") as file:
        file.truncate(3_000_000)
    reason = await one_skip(path, ReadBudget(file_bytes=2_000_000))
    assert reason == "is larger than the limit of 2 MB; split it"


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a.md", "---\ntitle: 'From the front'\nauthor: A\n---\n# Heading\n", "From the front"),
        ("a.md", "## The heading ##\n\nText", "The heading"),
        ("a.md", "Intro\n\n# The heading\n\nText", "The heading"),
        ("a.md", "```\n# comment\n```\n", ""),
        ("a.rst", "=====\nQueen\n=====\n\nText", "Queen"),
        ("a.rst", "Queen\n=====\n\nText", "Queen"),
        ("a.rst", ".. image:: a.png\n\nText of it", ""),
        ("a.rst", ".. image:: a.png\n   :alt: A\n\n|Logo|\n\nQueen\n=====\n\nText", "Queen"),
        ("a.rst", "Some prose.\n\nMore of it.\n\nFeatures\n--------\n\nText", ""),
        ("a.txt", "https://example.org\n\nShe was a queen.", ""),
        ("a.txt", "Teutberga\n\nShe was a queen.", "Teutberga"),
        ("a.txt", "She was a queen.\n\nShe died.", ""),
        ("a.txt", "One line", ""),
        ("a.md", "---\nauthor: A\n---\n\nText", ""),
        ("a.py", "Not a title\n\nimport os", ""),
    ],
)
async def test_titles(tmp_path: Path, name: str, text: str, title: str) -> None:
    (tmp_path / name).write_text(text)
    found = await text_of(tmp_path / name)
    assert found.title == title
    assert name == "a.rst" or text.startswith("---") or found.text == text


async def test_front_matter_is_kept_as_metadata(tmp_path: Path) -> None:
    fields = 'title: T\nlayout: post\ntags: [a, b]\nauthors:\n  - "Ann"\n  - Bo'
    (tmp_path / "a.md").write_text(f"---\n{fields}\n---\n\nText")
    found = await text_of(tmp_path / "a.md")
    assert (found.metadata["authors"], found.metadata["tags"]) == ("Ann, Bo", "a, b")
    assert found.text == "Authors: Ann, Bo\n\nText"  # not how it is laid out


async def test_a_parser_that_hangs_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    release = threading.Event()

    def hang(source: SourceFile, budget: ReadBudget) -> list[Document]:
        release.wait(30)
        return []

    monkeypatch.setitem(readers.READERS, ".html", hang)
    (tmp_path / "a.html").write_text("<p>text")
    (tmp_path / "b.txt").write_text("The rest goes on")
    documents, skipped = await taken([tmp_path], budget=ReadBudget(seconds=0.05))
    release.set()
    assert [found.text for found in documents] == ["The rest goes on"]
    assert skipped[0].reason.startswith("takes longer than 0.05 s to read (`[read] seconds`")


async def test_an_error_of_ours_in_a_parser_is_not_swallowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: SourceFile, budget: ReadBudget) -> list[Document]:
        raise ZeroDivisionError

    monkeypatch.setitem(readers.READERS, ".html", fail)
    (tmp_path / "a.html").write_text("<p>text")
    with pytest.raises(ZeroDivisionError):
        await taken([tmp_path])


async def test_reading_can_be_left_early_and_cancelled(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n' * 5000)
    stream = read([tmp_path])
    assert isinstance(await anext(stream), Document)
    await stream.aclose()
    task = asyncio.create_task(taken([tmp_path]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_document_can_be_made_from_text() -> None:
    made = make_document("e\u0301\r\n\0\ud800", " A \n title", "note")
    assert made.text == "é\n\ufffd\ufffd"
    assert made.title == "A title" and made.names == ("note",)
    assert made.id == digest("A title", made.text)


def test_a_skip_is_a_sentence() -> None:
    assert str(Skipped("a.txt", "is empty")) == "a.txt: is empty."
    assert str(Skipped("a.csv", "is broken", 3)) == "a.csv, line 3: is broken."
