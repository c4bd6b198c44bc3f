"""Builds with slow, failing and talkative models: what is said, and what is tried instead."""

import json
from pathlib import Path

import pytest

from clew.cli.progress import LineReport, UsageRate, no_usage
from clew.config import ExtractSettings, ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.store.sqlite.store import SqliteStore
from clew.testing.stub_endpoint import StubEndpoint
from clew.types import Usage

TEXT = "Ilse Brandvik designed the Marrow Bridge in Hallowmere."


def _open(kb: Path, stub: StubEndpoint, fallback: str = "none") -> KnowledgeBase:
    models = ModelSettings(model="stub", base_url=stub.base_url, tries=1, retry_for=0)
    extract = ExtractSettings(fallback=fallback)  # type: ignore[arg-type]
    settings = Settings(kb=kb, models=models, extract=extract)
    return KnowledgeBase(SqliteStore(kb, create=True, durable=False), settings, None)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    for number in range(3):
        (tmp_path / "docs" / f"{number}.txt").write_text(f"{TEXT} It has {number} arches.")
    return tmp_path / "docs"


async def test_time_is_unknown_until_a_call_is_timed(tmp_path: Path, docs: Path) -> None:
    async with StubEndpoint() as stub:
        base = _open(tmp_path / "kb", stub)
        plan = await base.plan([docs])
        assert plan.seconds is None and plan.guessed and stub.stats.chat_calls == 0
        timed = await base.plan([docs], probe=True)
        assert timed.seconds is not None and not timed.guessed
        assert stub.stats.chat_calls == 3  # as many as are asked about at once
        await base.add([docs])
        assert stub.stats.chat_calls == 3  # the probe's replies are used
        await base.close()


async def test_rules_extract_what_the_model_fails_on(tmp_path: Path, docs: Path) -> None:
    async with StubEndpoint(reply=lambda messages: "no, sorry") as stub:
        plain = _open(tmp_path / "plain", stub)
        failed = await plain.add([docs])
        assert (failed.chunks, failed.failed, failed.counts.entities) == (3, 3, 0)
        await plain.close()
        base = _open(tmp_path / "kb", stub, "offline")
        added = await base.add([docs])
        assert added.failed == 3 and added.counts.entities > 0
        assert "without a model" in (await base.store.failures())[0].reason
        await base.close()


async def test_a_retry_replaces_what_rules_extracted(tmp_path: Path, docs: Path) -> None:
    answers = {"say": "no"}
    graph = {
        "entities": [{"name": "Marrow Bridge", "type": "bridge", "description": "A bridge."}],
        "relations": [],
    }
    async with StubEndpoint(reply=lambda messages: answers["say"]) as stub:
        base = _open(tmp_path / "kb", stub, "offline")
        await base.add([docs])
        answers["say"] = json.dumps(graph)
        again = await base.add([docs], retry=True)
        assert again.failed == 0 and (await base.store.failures()) == []
        assert (await base.show("Marrow Bridge")).entities[0]["type"] == "bridge"
        await base.close()


def test_progress_tells_tokens_money_and_waiting(capsys: pytest.CaptureFixture[str]) -> None:
    time = {"now": 0.0}
    used = {"now": Usage()}
    report = LineReport(lambda: used["now"], lambda: time["now"])
    report("extract", 0, 10)
    time["now"] = 20.0
    report.report_waiting()
    used["now"] = Usage(calls=2, prompt_tokens=500, completion_tokens=100, money=0.5)
    time["now"] = 40.0
    report.report_waiting()
    report("extract", 10, 10)
    time["now"] = 60.0
    report.report_waiting()
    assert capsys.readouterr().err.splitlines() == [
        "extract: 0 of 10 documents; no reply for 20 s",
        "extract: 0 of 10 documents; 2 calls, 600 tokens, cost 0.5000, 2.5 tokens/s",
        "extract: 10 documents",
    ]


def test_without_a_model_no_reply_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    time = {"now": 0.0}
    report = LineReport(no_usage, lambda: time["now"])
    report("extract", 0, 10)
    time["now"] = 20.0
    report.report_waiting()
    assert capsys.readouterr().err.splitlines() == ["extract: 0 of 10 documents"]


def test_nothing_is_said_before_anything_is_known() -> None:
    assert UsageRate(Usage, lambda: 0.0)() == ""


def test_an_import_estimates_no_end_before_it_writes(capsys: pytest.CaptureFixture[str]) -> None:
    time = {"now": 0.0}
    report = LineReport(no_usage, lambda: time["now"])
    for now, stage, done, total in (
        *((0.0, "file", 0, 400), (20.0, "file", 100, 400), (30.0, "file", 400, 400)),
        *((30.0, "write", 0, 100), (50.0, "write", 25, 100)),
    ):
        time["now"] = now
        report(stage, done, total)
    time["now"] = 70.0
    report.report_waiting()  # of a long phase, too
    report("write", 100, 100)
    assert capsys.readouterr().err.splitlines() == [
        "file: 100 of 400 bytes (5.0/s)",
        "file: 400 bytes",
        "write: 25 %, 60 s left",
        "write: 25 %, 120 s left",
        "write: done",
    ]
