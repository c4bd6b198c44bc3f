"""Codes beside letters of a script without spaces, and two hops where no name has a capital."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import clew

PAGES = {
    "library.md": "# 青葉図書館の案内\n\n青葉図書館は建築家の森川綾が設計し、1968年に開館した。"
    "休館日は毎週火曜日である。\n\n## 記号\n\nU-12\n:   返却口が満杯である。係員を呼ぶこと。\n\n"
    "U-13\n:   紙が切れている。用紙を入れること。\n",
    "morikawa.md": "# 森川綾\n\n森川綾は1921年に仙台で生まれた。後に大学で教えた。\n",
    "maktaba.md": "# دليل مكتبة الزهراء\n\nبنت المعمارية ليلى منصور مكتبة الزهراء عام 1962. "
    "تغلق المكتبة يوم الجمعة.\n\nH-21\n:   تعطل المصعد.\n",
    "leila.md": "# ليلى منصور\n\nولدت ليلى منصور في مدينة بيروت. درست في القاهرة.\n",
    "sternwarte.md": "# Sternwarte Rabenfels\n\nDie Sternwarte Rabenfels wurde 1912 vom Astronomen "
    "Otto Lindner gegründet. Der Eintritt kostet 4 Euro.\n",
    "lindner.md": "# Otto Lindner\n\nOtto Lindner studierte in Jena. Er spielte Geige.\n",
    "muzey.md": "# Музей Ольхово\n\nМузей Ольхово основал художник Пётр Ситников в 1927 году.\n",
    "sitnikov.md": "# Пётр Ситников\n\nПётр Ситников учился в Казани.\n",
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    folder: Path = tmp_path_factory.mktemp("pages")
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    with clew.open(folder / "kb") as base:
        base.add([folder / name for name in PAGES])
        yield base


@pytest.mark.parametrize(
    "question", ["U-12とは何ですか？", "U-12は何を意味しますか？", "U-12とは？"]
)
def test_a_code_is_found_beside_letters_without_a_space(pages: clew.Kb, question: str) -> None:
    answer = pages.ask(question)
    assert "返却口が満杯" in answer.citations[0].quote and "U-13" not in answer.citations[0].quote
    assert answer.confidence >= 0.5


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("青葉図書館を設計した建築家はどこで生まれましたか？", "仙台"),
        ("أين ولدت معمارية مكتبة الزهراء؟", "بيروت"),
        ("Wo studierte der Astronom der Sternwarte Rabenfels?", "Jena"),
        ("Где учился художник музея Ольхово?", "Казани"),
    ],
)
def test_what_has_a_page_is_followed_in_any_script(
    pages: clew.Kb, question: str, said: str
) -> None:
    answer = pages.ask(question)
    assert any(said in one.quote for one in answer.citations)
    assert answer.confidence >= 0.5


@pytest.mark.parametrize(
    "question",
    [
        "青葉図書館を設計した建築家はどこで亡くなりましたか？",
        "أين توفيت معمارية مكتبة الزهراء؟",
        "Wo wurde der Astronom der Sternwarte Rabenfels begraben?",
        "Где умер художник музея Ольхово?",
    ],
)
def test_the_first_hop_alone_is_not_trusted(pages: clew.Kb, question: str) -> None:
    assert pages.ask(question).confidence < 0.5
