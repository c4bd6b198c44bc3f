"""What other packages' calls cost: counted on their way to the endpoint, question by question."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from clew.testing.stub_endpoint import StubEndpoint

# The benchmarks are not part of what is installed.
counting = pytest.importorskip("bench.peers.counting")
jobs = pytest.importorskip("bench.peers.drivers.job")
ASK = {"model": "m", "messages": [{"role": "user", "content": "Who built it?"}]}


def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **more: str) -> Any:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, "")  # the driver sets them for its package
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    (tmp_path / "docs").write_text(json.dumps({"id": 7, "text": "Ost Mill."}))
    (tmp_path / "asked").write_text(
        "\n".join(json.dumps({"id": n, "question": "?"}) for n in (1, 2))
    )
    fields = {
        **{"action": "query", "package": "peer", "api_key": "", "base_url": "", "top": 5},
        **{"documents_file": str(tmp_path / "docs"), "questions_file": str(tmp_path / "asked")},
        **{"records_file": str(tmp_path / "records"), "usage_url": "", **more},
    }
    (tmp_path / "job").write_text(json.dumps(fields))
    return jobs.DriverJob(tmp_path / "job")


def records(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "records").read_text().splitlines()]


async def test_each_question_has_its_own_bill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with StubEndpoint(lambda _: "Ann Ray") as stub:
        with counting.run_counting_proxy(stub.base_url) as url:
            one = job(tmp_path, monkeypatch, usage_url=f"{url}/usage")
            times = iter([2, 0])

            def ask(_: str) -> list[str]:
                for _ in range(next(times)):
                    reply = httpx.post(f"{url}/chat/completions", json=ASK, trust_env=False)
                    assert reply.json()["choices"][0]["message"]["content"] == "Ann Ray"
                httpx.post(f"{url}/embeddings", json={"input": ["x"]}, trust_env=False)
                return ["Ost Mill."]

            await asyncio.to_thread(one.ask_questions, "mix", ask)
    first, second = records(tmp_path)
    assert first["usage"]["calls"] == 2 and first["usage"]["prompt_tokens"] > 0
    assert second["usage"] == {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0}
    assert first["passages"] == ["7"]


def test_without_a_counter_the_cost_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(tmp_path, monkeypatch).ask_questions("mix", lambda _: ["7"])
    assert all("usage" not in row and row["seconds"] >= 0 for row in records(tmp_path))


def test_usage_is_read_from_replies_and_streams() -> None:
    whole = {"usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    assert counting.parse_usage(json.dumps(whole).encode()) == whole["usage"]
    events = f'data: {{"choices": []}}\n\ndata: {json.dumps(whole)}\n\ndata: [DONE]\n\n'
    assert counting.parse_usage(events.encode()) == whole["usage"]
    assert counting.parse_usage(b'{"choices": []}') is None
    assert counting.parse_usage(b"not json") is None
