"""Persons, companies and places in Chinese, Japanese and Arabic, each named once in a manual."""

import pytest

from clew.extract.rules import Offline
from clew.ingest.chunk import BySentences
from clew.ingest.readers.source import make_document


async def find(text: str) -> set[str]:
    document = make_document(text, "")
    found = await Offline()(document, BySentences(size=4000)(document))
    return {entity.name for one in found for entity in one.entities if entity.spans}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("阀门漏水时请通知孙晓峰。使用 `valve shut`。", {"孙晓峰", "valve shut"}),
        (
            "水泵由宏图机械有限公司制造，运行 `pump on`。高级工程师必须在场。",
            {"宏图机械有限公司", "pump on"},
        ),
        ("郭雅琴教授来自合肥市。运行 `lab open`。", {"郭雅琴", "合肥市", "lab open"}),
        ("方法：运行 `step`。程序。任务。", {"step"}),
        (
            "炉が冷えたら藤田和也に連絡します。`kiln up` を使います。",
            {"藤田和也", "kiln up"},
        ),
        (
            "窯は金沢市にあり、白峰陶器株式会社が作りました。`kiln up` を使います。",
            {"金沢市", "白峰陶器株式会社", "kiln up"},
        ),
        ("担当は三好さんです。仕様は同様です。`kiln up` を使います。", {"三好", "kiln up"}),
        (
            "اتصل بالدكتورة هدى البكري في مدينة بنزرت ثم شغل `oven on`.",
            {"هدى البكري", "بنزرت", "oven on"},
        ),
        ("في مدينة كبيرة شغل `oven on`.", {"oven on"}),
    ],
)
async def test_affixes_tell_names_without_capitals(text: str, names: set[str]) -> None:
    assert await find(text) == names
