"""Which title a Markdown file has: a heading's only if it stands for the whole."""

from pathlib import Path
from time import process_time

import pytest

from clew.ingest.readers.source import DEFAULT_BUDGET, SourceFile
from clew.ingest.readers.text import leave_out_unseen, read_markdown
from clew.types import Document

BADGES = (
    "[![Build](https://ci.example/a.svg)](https://ci.example/a)\n"
    "![Logo](logo.png) [English](README.md) • [中文][zh]\n"
    '<p align="center"><img src="logo.png" alt="A wide logo"></p>\n<!-- made by hand -->\n'
    ".. image:: logo.png\n   :alt: A logo\n\n|Build| |Docs|\n\n"
)
ENTRIES = "- [One](#one)\n  - [Two](#two)\n\n- [Six](b.md#six)\n\n"
PROSE = "Quillet draws maps. Quillet is quick.\n\n"


def title(tmp_path: Path, text: str, name: str = "quillet.md") -> str:
    (tmp_path / "file.md").write_text(text)
    [found] = read_markdown(SourceFile(tmp_path / "file.md", name), DEFAULT_BUDGET)
    assert isinstance(found, Document)
    return found.title


@pytest.mark.parametrize("level", ["#", "##", "###"])
def test_badges_and_links_before_a_heading_say_nothing(tmp_path: Path, level: str) -> None:
    assert title(tmp_path, f"{BADGES}{level} Maps for all\n\n{PROSE}") == "Maps for all"


def test_fields_before_a_heading_say_nothing(tmp_path: Path) -> None:
    fields = "Name: quillet\nVersion: 2\nLicense: long\n        and longer\n\n"
    assert title(tmp_path, f"{fields}## Maps for all\n\n{PROSE}") == "Maps for all"


def test_a_heading_after_prose_is_a_section(tmp_path: Path) -> None:
    text = f"{BADGES}{PROSE}## Compatibility\n\nAll of them.\n\n## Features\n\nMany.\n"
    assert title(tmp_path, text) == "quillet"
    assert title(tmp_path, text, "docs/quillet.v2.md") == ""  # of that the text does not speak


def test_one_of_several_highest_headings_is_a_section_too(tmp_path: Path) -> None:
    assert title(tmp_path, f"{PROSE}# Compatibility\n\nAll.\n\n# Features\n\nMany.\n") == "quillet"


def test_a_remark_may_stand_before_the_only_highest_heading(tmp_path: Path) -> None:
    assert title(tmp_path, "Moved to another place.\n\n# Maps\n\nText") == "Maps"
    assert title(tmp_path, f"{PROSE * 20}# 6.1.3\n\nText") == "quillet"


@pytest.mark.parametrize("name", ["notes.md", "2024-05-01.md", "a.md", "7.md"])
def test_a_file_name_the_text_does_not_speak_of_is_no_title(tmp_path: Path, name: str) -> None:
    assert title(tmp_path, f"{PROSE}## Compatibility\n\nAll.\n", name) == ""


def test_a_readme_is_about_its_folder(tmp_path: Path) -> None:
    text = f"{PROSE}## Compatibility\n\nAll.\n"
    assert title(tmp_path, text, "work/quillet/README.md") == "quillet"
    assert title(tmp_path, text, "work/quillet/README.zh.md") == "quillet"
    assert title(tmp_path, text, "README.md") == ""


def test_a_heading_in_tags_is_a_title(tmp_path: Path) -> None:
    text = f'<p><img src="a.png"></p>\n<h1 align="center">Quillet <b>2</b></h1>\n\n{PROSE}## Use\n'
    assert title(tmp_path, text, "a.md") == "Quillet 2"
    assert title(tmp_path, f"{PROSE}<h3>Use</h3>\n\n## Other\n", "a.md") == ""


def test_a_text_without_headings_has_no_title(tmp_path: Path) -> None:
    assert title(tmp_path, PROSE) == ""


@pytest.mark.parametrize("part", ["<", "<!--", "[", "[](", "|", "a:\n", "a: b\n", ".. \n"])
def test_what_is_repeated_without_end_is_read_in_time(tmp_path: Path, part: str) -> None:
    assert title(tmp_path, part * 60_000) == ""


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("## Inhalt\n\n", "## Aufbau\n\nVier.\n", ""),
        ("## Inhalt\n\n", "Und weiter.\n", "## Inhalt\n\n"),
        ("It has:\n\n", "More.\n", "It has:\n\n- One\n  - Two\n\n- Six\n\n"),
    ],
)
def test_contents_are_left_out(tmp_path: Path, before: str, after: str, kept: str) -> None:
    (tmp_path / "a.md").write_text(f"# A\n\n{before}{ENTRIES}{after}")
    [found] = read_markdown(SourceFile(tmp_path / "a.md", "a.md"), DEFAULT_BUDGET)
    assert isinstance(found, Document)
    assert found.text == f"# A\n\n{kept}{after}"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("Red <!-- no\n\nno --> dye.", "Red  dye."),
        ("`<!-- a -->` is <b>.", "`<!-- a -->` is <b>."),
        ("~~~\n<!-- a -->\n~~~\nEnd <!-- open", "~~~\n<!-- a -->\n~~~\nEnd <!-- open"),
        ("<!--\n```\nno\n```\n-->\nDye.", "\nDye."),
        ("<details>\n<summary>More</summary>\nBlue.\n</details>", "\nMore\nBlue.\n"),
        ("[TOC]\nSee [TOC] and <file>.", "\nSee [TOC] and <file>."),
    ],
)
def test_what_markdown_does_not_show_is_left_out(source: str, shown: str) -> None:
    assert leave_out_unseen(source) == shown


def test_comments_that_are_not_closed_are_read_in_time() -> None:
    started = process_time()
    leave_out_unseen("<!-- " * 100_000 + "-->" + "<!-- \n" * 100_000)
    assert process_time() - started < 2
