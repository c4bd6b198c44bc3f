"""Numbered headings, tables of contents and titles of plain text, in any language."""

from pathlib import Path

import pytest

from clew.ingest.files import read
from clew.types import Document

BODY = "    The kiln is fired at dawn.\n    It cools by night.\n"
ZH_BODY = "    窑炉在黎明时点火，夜里冷却。\n"


def write(path: Path, text: str) -> None:
    path.write_text(text)


async def read_page(path: Path, text: str) -> Document:
    write(path, text)
    [found] = [item async for item in read([path])]
    assert isinstance(found, Document), found
    return found


async def headings_of(path: Path, text: str) -> list[str]:
    found = await read_page(path, text)
    return [line for line in found.text.split("\n") if line.startswith("#")]


def make_manual(chapter: str, body: str = BODY) -> str:
    parts = []
    for number in range(1, 5):
        parts.append(chapter.format(number))
        parts += [f"{number}.{n}. Topic {n} of {number}\n\n{body}" for n in range(1, 4)]
    return "\n\n".join(parts)


@pytest.mark.parametrize(
    "chapter",
    [
        "Chapter {}. Of clay",
        "Chapter\N{NO-BREAK SPACE}{}.\N{NO-BREAK SPACE}Of clay",
        "Kapitel {}. Vom Ton",
        "Глава {}. О глине",
        "第 {} 章 关于黏土",
        "第{}章\N{IDEOGRAPHIC SPACE}粘土について",
        "제{}장 점토",
        "{}. Of clay",
    ],
)
async def test_chapters_and_their_sections(tmp_path: Path, chapter: str) -> None:
    found = await headings_of(tmp_path / "a.txt", make_manual(chapter))
    assert len(found) == 16
    assert [one.index(" ") for one in found] == [2, 3, 3, 3] * 4
    assert found[13] == "### 4.1. Topic 1 of 4"
    assert found[4] == "## " + " ".join(chapter.format(2).split())


async def test_chapters_in_chinese_numerals(tmp_path: Path) -> None:
    names = ["一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二"]
    text = "\n\n".join(f"第{n}章 关于黏土\n\n{ZH_BODY}" for n in names)
    found = await headings_of(tmp_path / "a.txt", text)
    assert found == [f"## 第{n}章 关于黏土" for n in names]


async def test_a_preface_with_numbers_of_its_own(tmp_path: Path) -> None:
    preface = "\n\n".join(f"{n}. Word {n}\n\n{BODY}" for n in range(1, 4))
    text = f"Preface\n\n{preface}\n\n{make_manual('Chapter {}. Of clay')}"
    found = await headings_of(tmp_path / "a.txt", text)
    assert found[:4] == ["## 1. Word 1", "## 2. Word 2", "## 3. Word 3", "## Chapter 1. Of clay"]
    assert len(found) == 19


async def test_a_heading_of_two_lines(tmp_path: Path) -> None:
    long = "1.2. What a potter has to look after when the kiln has been fired\ntwice"
    text = make_manual("Chapter {}. Of clay").replace("1.2. Topic 2 of 1", long)
    text = text.replace("at dawn.", "at dawn, before anybody else is up.")
    found = await headings_of(tmp_path / "a.txt", text)
    assert found[2] == "### " + long.replace("\n", " ")


@pytest.mark.parametrize(
    "text",
    [
        "Setting up\n\n1. Open the box\n\n2. Take out the stand\n\n3. Screw it on\n\nPlug it in.",
        "\n\n".join(
            f"Kiln {kiln}\n\n" + "\n\n".join(f"{n}. Do this\n\nWith care." for n in (1, 2, 3))
            for kiln in "ABC"
        ),
        "1. It is due monthly.\n\nSo be it.\n\n2. It is paid late.\n\nA pity.\n\n3. It lapses.",
    ],
)
async def test_steps_and_clauses_are_no_headings(tmp_path: Path, text: str) -> None:
    assert await headings_of(tmp_path / "a.txt", text) == []


@pytest.mark.parametrize("title", ["APPENDIX A: CODES", "Appendix A. Codes", "Anhang A: Codes"])
async def test_an_appendix_behind_numbered_sections(tmp_path: Path, title: str) -> None:
    text = "\n\n".join(f"{n}. Part {n}\n\n{BODY}" for n in (1, 2, 3))
    found = await headings_of(tmp_path / "a.txt", f"{text}\n\n{title}\n\n{BODY}")
    assert found[-1] == f"## {title}"


@pytest.mark.parametrize("named", ["Contents", "目录", "Inhaltsverzeichnis"])
async def test_a_table_of_contents_is_left_out(tmp_path: Path, named: str) -> None:
    entries = [
        line
        for n in range(1, 5)
        for line in (f"{n}. Of clay", *(f"    {n}.{m}. Topic {m} of {n}" for m in (1, 2, 3)))
    ]
    manual = make_manual("第 {} 章 Of clay")
    listed = "\n".join(entries)
    text = f"On pots\n\n{named}\n\n{listed}\n\n{manual}"
    found = await read_page(tmp_path / "a.txt", text)
    assert named not in found.text and found.text.count("Topic 2 of 3") == 1
    assert found.title == "On pots"


async def test_the_contents_of_a_chapter_are_told_by_their_name(tmp_path: Path) -> None:
    listed = "\n".join(f"   {n}.{m}. Topic {m} of {n}" for n in range(1, 5) for m in (1, 2, 3))
    own = "Chapter {}. Of clay\n\n   What there is\n\n   {}.1. Topic 1 of {}"
    manual = "\n\n".join(
        part
        for n in range(1, 5)
        for part in (
            own.format(n, n, n),
            *(f"{n}.{m}. Topic {m} of {n}\n\n{BODY}" for m in (1, 2, 3)),
        )
    )
    text = f"On pots\n\n   What there is\n\n{listed}\n\n{manual}"
    found = await read_page(tmp_path / "a.txt", text)
    assert "What there is" not in found.text
    assert found.text.count("Topic 1 of 3") == 1 and found.text.count("### ") == 12


async def test_a_list_that_is_not_repeated_stays(tmp_path: Path) -> None:
    listed = "\n".join(f"{n}. Take pot {n}" for n in range(1, 7))
    found = await read_page(tmp_path / "a.txt", f"{make_manual('Chapter {}. Of clay')}\n\n{listed}")
    assert listed in found.text


MARGIN = " " * 24


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("Potter's Handbook\n\n" + MARGIN + "Ines Falk", "Potter's Handbook"),
        (" " * 26 + "陶艺师手册\n\n-----\n" + " " * 30 + "版本 11.0", "陶艺师手册"),
        ("RFC 907\n\n" + " " * 20 + "THE KILN PROTOCOL OF 1988", "THE KILN PROTOCOL OF 1988"),
        ("Memo: kilns\n\n" + " " * 20 + "THE KILN PROTOCOL OF 1988", "THE KILN PROTOCOL OF 1988"),
    ],
)
async def test_the_title_is_what_stands_first(tmp_path: Path, head: str, title: str) -> None:
    text = f"{head}\n\n{make_manual('Chapter {}. Of clay')}"
    assert (await read_page(tmp_path / "a.txt", text)).title == title


async def test_a_sentence_in_chinese_is_no_heading(tmp_path: Path) -> None:
    said = ["陶器要慢慢地晾干，不可心急。", "窑炉在黎明时点火。", "夜里冷却，早上开窑。"]
    assert await headings_of(tmp_path / "a.txt", "\n\n".join(said)) == []
