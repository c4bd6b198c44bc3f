"""Encodings of other scripts: read where they are certain, skipped where they are not."""

from pathlib import Path

import pytest

from clew.ingest.files import read
from clew.ingest.readers.source import Skipped
from clew.types import Document
from conftest import list_rows

RUSSIAN = (
    "Старый маяк стоит у входа в гавань. Его построил в 1903 году инженер Пётр Лобов.\n"
    "Высота маяка сорок метров, а свет виден за двадцать миль.\n"
)
CHINESE = (
    "石门渡口在县城的东边。每天早上六点开船，晚上八点停航。\n"
    "如果水位太高，渡船不能靠岸，工人会在门口挂上红旗。\n"
)
JAPANESE = (
    "古い灯台は港の入り口に立っています。技師の森田春男が設計しました。\n"
    "灯台の高さは四十メートルで、光は遠くからも見えます。\n"
)
GREEK = (
    "Ο παλιός φάρος βρίσκεται στην είσοδο του λιμανιού. Τον έχτισε ένας μηχανικός από την Αθήνα "
    "και το φως του φαίνεται από μακριά.\n"
)
KOREAN = (
    "오래된 등대는 항구 입구에 서 있다. 기술자 김민수가 설계했으며 높이는 사십 미터이다. "
    "빛은 아주 먼 곳에서도 보인다. 매년 봄에 새로 칠한다.\n"
)


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (CHINESE, "gb18030"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        ("The café is at the quay.\n" * 4, "utf-16-le"),
        ("The café is at the quay.\n" * 4, "utf-16-be"),
    ],
)
async def test_an_encoding_that_is_certain_is_read(tmp_path: Path, text: str, codec: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode(codec))
    [found] = [item async for item in read([path])]
    assert isinstance(found, Document)
    assert found.text.split() == text.split() and found.metadata["encoding"] == codec


@pytest.mark.parametrize(
    ("text", "codec"),
    [(GREEK, "cp1253"), (KOREAN, "euc_kr"), (RUSSIAN, "mac_cyrillic"), ("Маяк.\n", "cp1251")],
)
async def test_an_encoding_that_is_not_certain_is_skipped(
    tmp_path: Path, text: str, codec: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode(codec))
    [found] = [item async for item in read([path])]
    assert isinstance(found, Skipped) and "convert it to UTF-8" in found.reason


async def test_a_table_is_decoded_as_it_begins(tmp_path: Path) -> None:
    rows = "".join(f"маяк на острове {n},{n} метров над водой\n" for n in range(4))
    (tmp_path / "a.csv").write_bytes(f"название,высота\n{rows}".encode("cp1251"))
    found = [item async for item in read([tmp_path / "a.csv"]) if isinstance(item, Document)]
    assert list_rows(found[0])[2] == {
        "название": "маяк на острове 2",
        "высота": "2 метров над водой",
    }
