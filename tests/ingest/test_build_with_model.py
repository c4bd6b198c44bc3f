"""Building with a model: through a real local endpoint that counts its calls."""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from clew.config import ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.errors import AuthError
from clew.ingest.cost import CostEstimate
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import read_content
from clew.testing.fakes import HashEmbed
from clew.testing.stub_endpoint import Messages, StubEndpoint
from clew.testing.stub_responses import Fault

CHILD = """
import asyncio, sys
from pathlib import Path
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.config import ModelSettings
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed

folder, docs, url = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

async def main():
    models = ModelSettings(model="stub", base_url=url, api_key="k", concurrency=4)
    settings = Settings(kb=folder, models=models)
    base = KnowledgeBase(SqliteStore(folder, create=True), settings, HashEmbed())
    print("begin", flush=True)
    await base.add([docs])
    print("done", flush=True)

asyncio.run(main())
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number}.txt").write_text(
            f"Village {number} lies near Town {number % 7}. Anna {number} founded it."
        )
    return folder


def opened(kb: Path, stub: StubEndpoint) -> KnowledgeBase:
    models = ModelSettings(
        model="stub",
        base_url=stub.base_url,
        api_key="k",  # type: ignore[arg-type]
        tries=2,
        retry_for=5,
        prices={"stub": {"prompt": 1.0, "completion": 2.0}},  # type: ignore[dict-item]
    )
    settings = Settings(kb=kb, models=models)
    return KnowledgeBase(SqliteStore(kb, create=True, durable=False), settings, HashEmbed())


async def test_the_plan_is_what_the_run_then_costs(tmp_path: Path, docs: Path) -> None:
    async with StubEndpoint() as stub:
        base = opened(tmp_path / "kb", stub)
        before = await base.plan([docs])
        assert (before.documents, before.calls) == (30, 30)
        assert stub.stats.chat_calls == 0
        assert (await base.status())["documents"] == 0
        await base.add([docs])
        spent = base.models.meter.total
        assert spent.calls == 30
        assert before.prompt_tokens == pytest.approx(spent.prompt_tokens, rel=0.2)
        assert (await base.status())["spent"] == pytest.approx(spent.money)
        (docs / "new.txt").write_text("Village 99 lies near Town 3. Anna 99 founded it.")
        after = await base.plan([docs])
        assert (after.documents, after.unchanged, after.calls) == (1, 30, 1)
        already = base.models.meter.total
        await base.add([docs])
        cost = base.models.meter.total.money - already.money
        assert after.money == pytest.approx(cost, rel=0.2)
        await base.close()


@pytest.mark.parametrize("name", [pytest.param("pages", marks=pytest.mark.slow), "table"])
async def test_the_plan_says_time_and_disk_and_a_large_build_says_them_first(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "docs").mkdir()
    if name == "table":
        rows = (f"A{n},Village {n % 400},{'open' if n % 3 else 'paid'},{n}" for n in range(6_000))
        (tmp_path / "docs" / "orders.csv").write_text("\n".join(["id,town,state,sum", *rows]))
    for number in range(700 if name == "pages" else 0):
        lines = (f"Village {number} was founded by Anna {n} in {1400 + n}. " for n in range(8))
        (tmp_path / "docs" / f"{number}.txt").write_text("".join(lines))
    kb = tmp_path / "kb"
    store = SqliteStore(kb, create=True, durable=False)
    base = KnowledgeBase(store, Settings(kb=kb), HashEmbed())
    plan = await base.plan([tmp_path / "docs"])
    assert plan.seconds and not plan.calls and (await base.status())["documents"] == 0
    early = list[CostEstimate]()
    base.builder = replace(base.builder, on_estimate=early.append)
    added = await base.add([tmp_path / "docs"])
    assert [(one.documents, one.chunks) for one in early] == [(plan.documents, plan.chunks)]
    assert added.added == plan.documents
    await base.close()
    held = sum(file.stat().st_size for file in kb.rglob("*") if file.is_file())
    for one in (plan, *early):
        assert one.bytes == pytest.approx(held, rel=0.3)


async def test_unchanged_documents_cost_no_call(tmp_path: Path, docs: Path) -> None:
    async with StubEndpoint() as stub:
        base = opened(tmp_path / "kb", stub)
        await base.add([docs])
        calls = stub.stats.chat_calls
        await base.add([docs])
        await base.remove([str(docs / "3.txt")])
        await base.add([docs])  # of what was removed no reply is left; the others are
        assert stub.stats.chat_calls == calls + 1
        await base.remove([str(docs / "4.txt")])
        assert (await base.plan([docs])).calls == 1
        await base.add([docs])
        assert (await base.status())["documents"] == 30
        assert await base.verify() == []
        await base.close()


async def test_a_failing_chunk_is_shown_and_taken_up_again(tmp_path: Path, docs: Path) -> None:
    broken = True

    def reply(messages: Messages) -> str | None:
        said = json.dumps(list(messages))
        return "no json here" if broken and "Village 7 lies" in said else None

    async with StubEndpoint(reply=reply) as stub:
        base = opened(tmp_path / "kb", stub)
        await base.add([docs])
        assert (await base.status())["failed"] == 1
        assert (await base.status())["documents"] == 30
        assert (await base.add([docs])).unchanged == 30
        broken = False
        calls = stub.stats.chat_calls
        await base.add([], retry=True)
        assert (await base.status())["failed"] == 0
        assert 1 <= stub.stats.chat_calls - calls <= 2
        await base.close()


async def test_a_refused_key_is_one_error_and_stops_at_once(tmp_path: Path, docs: Path) -> None:
    async with StubEndpoint(faults=lambda number: Fault(401)) as stub:
        base = opened(tmp_path / "kb", stub)
        with pytest.raises(AuthError):
            await base.add([docs])
        assert stub.stats.chat_calls <= 16
        assert (await base.status())["documents"] == 0
        await base.close()


@pytest.mark.parametrize("points", [1, pytest.param(50, marks=pytest.mark.slow)])
async def test_kill_at_random_points_repeats_no_call(
    tmp_path: Path, docs: Path, points: int
) -> None:
    chance = random.Random(points)
    async with StubEndpoint(latency=0.02) as stub:
        whole = opened(tmp_path / "whole", stub)
        await whole.add([docs])
        expected = await read_content(whole.store)
        await whole.close()
        kb = tmp_path / "kb"
        stub.stats.chat_calls = 0
        cut = 0
        for _ in range(points):
            cut += await asyncio.to_thread(_killed, kb, docs, stub.base_url, chance.uniform(0, 0.4))
        base = opened(kb, stub)
        await base.add([docs])
        assert await read_content(base.store) == expected
        assert await base.verify() == []
        # Only what was under way when the process died may be asked again: four calls, and
        # as many replies that had come but were still being written.
        assert stub.stats.chat_calls <= 30 + 8 * cut
        finished = stub.stats.chat_calls
        await base.add([docs])
        assert stub.stats.chat_calls == finished
        await base.close()


def _killed(kb: Path, docs: Path, url: str, after: float) -> int:
    """Start an add, kill it after a while; 1 when it had not ended by itself."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(kb), str(docs), url],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "begin\n"
    time.sleep(after)
    alive = child.poll() is None
    child.kill()
    child.communicate()
    return int(alive)
