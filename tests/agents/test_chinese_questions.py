"""Chinese questions about notes: codes, what happens if, glued verbs, and what is not said."""

from pathlib import Path

import pytest

from clew.agents.answering.word_signals import list_terms
from clew.agents.core.messages import NOT_UNDERSTOOD, localise
from clew.agents.rules.question_analysis import find_wanted_block
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.testing.hashed_kb import open_hashed

NOTES = """# 松溪养蜂场日志

## 设备
三号蜂箱放在果园东侧。温度传感器报警代码TX-9表示蜂箱过热，代码TX-12表示电量不足。

## 管理
如果发现螨虫，应立即隔离蜂箱。下雨时停止开箱检查。蜂蜜装瓶后送往南坪合作社。
"""


@pytest.fixture
async def base(tmp_path: Path) -> KnowledgeBase:
    page = tmp_path / "notes.md"
    page.write_text(NOTES, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([page])
    return base


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("TX-9是什么意思？", "过热"),
        ("报警代码TX-12代表什么？", "电量不足"),
        ("发现螨虫时会怎样？", "隔离"),
        ("蜂蜜装瓶后送到哪里？", "南坪合作社"),
        ("下雨时要做什么？", "停止开箱"),
    ],
)
async def test_chinese_question_is_told_what_the_notes_say(
    base: KnowledgeBase, question: str, told: str
) -> None:
    answer = await base.ask(question, mode="reject")
    assert told in answer.answer and answer.confidence >= 0.5


@pytest.mark.parametrize("question", ["TX-7是什么意思？", "TX-15代表什么？", "停电时会怎样？"])
async def test_what_the_notes_do_not_say_is_refused(base: KnowledgeBase, question: str) -> None:
    answer = await base.ask(question, mode="reject")
    assert answer.verdict == "refused"


async def test_a_name_with_its_verb_is_not_said_to_be_missing(base: KnowledgeBase) -> None:
    code = await base.ask("TX-15代表什么？", mode="reject")
    assert "TX-15" in code.answer and "TX-15代表" not in code.answer
    lacking = await base.ask("传感器过热在哪里？", mode="reject")
    assert "没有提到" not in lacking.answer


def test_codes_keep_their_case_and_bound_words_are_cut() -> None:
    assert list_terms("TX-9是什么意思？") == ("TX-9",)
    assert list_terms("内存已满时会怎样？") == ("内存已满",)


def test_a_question_for_what_happens_wants_no_steps() -> None:
    assert find_wanted_block("断电后会怎样？") == ""
    assert find_wanted_block("怎样清洗滤网？") == "steps"
    assert find_wanted_block("安装有哪几步？") == "steps"


def test_that_a_question_is_not_understood_is_said_in_chinese() -> None:
    assert "the question" not in localise("这个那个？", NOT_UNDERSTOOD)


@pytest.mark.parametrize(
    ("question", "told"), [("谁测量蜂箱温度？", "罗晓燕"), ("谁设计了松溪大桥？", "沈国栋")]
)
async def test_who_did_it_is_told(
    tmp_path: Path, base: KnowledgeBase, question: str, told: str
) -> None:
    page = tmp_path / "people.md"
    page.write_text(
        "蜂箱温度由管理员罗晓燕每天早晨测量。\n\n松溪大桥2004年由建筑师沈国栋设计，投资方是海川集团。\n",
        encoding="utf-8",
    )
    await base.add([page])
    answer = await base.ask(question, mode="reject")
    assert told in answer.answer and answer.confidence >= 0.5
