"""Cost of a model call: our client, bare and wrapped, against httpx and the openai SDK.

`python -m bench.chat [--calls N] [--in-flight N] [--rounds N]`. The endpoint is the stub in a
process of its own; the sides take turns, and the median of the rounds counts.
"""

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from math import ceil
from statistics import median
from typing import Any

from pydantic import BaseModel

from clew.config import ModelSettings
from clew.llm.cache import DictCache
from clew.llm.chat import Request, text_request
from clew.llm.openai_chat import OpenAIChat
from clew.llm.prompt import fence
from clew.llm.roles import create_chat
from clew.llm.structured import StructuredRequest, ask_structured

SYSTEM = "Find the people, places and organisations in the text, and what it says of them. " * 30
PASSAGE = "Maria Silva founded the Alpha Institute in New Haven after she left Basel. " * 6
LATENCY = 0.05
Call = Callable[[int], Awaitable[object]]


class ChatExtraction(BaseModel):
    """Output format of the extraction prompt."""

    entities: list[str]
    triples: list[tuple[str, str, str]]


@dataclass(frozen=True)
class Cost:
    """Wall seconds and CPU seconds of this process."""

    wall: float
    cpu: float


def make_request(number: int) -> Request:
    """Make the n-th request; all differ, so that no cache can help."""
    return text_request(fence("text", f"{PASSAGE}Passage {number}."), SYSTEM)


def make_body(number: int) -> dict[str, Any]:
    """Make the same request as a JSON body for the other clients."""
    turns = [{"role": turn.role, "content": turn.content} for turn in make_request(number).messages]
    return {"model": "m", "messages": turns, "temperature": 0}


@asynccontextmanager
async def with_clew(url: str, _: int) -> AsyncIterator[Call]:
    """Call through our bare client."""
    chat = OpenAIChat("m", url)
    yield lambda number: chat(make_request(number))


@asynccontextmanager
async def with_clew_wrapped(url: str, in_flight: int) -> AsyncIterator[Call]:
    """Call through our client with cache, limits, retries, counting and tracing."""
    settings = ModelSettings(model="m", base_url=url, concurrency=in_flight)
    chat = create_chat("extract", settings, DictCache())
    yield lambda number: chat(make_request(number))


@asynccontextmanager
async def with_clew_structured(url: str, in_flight: int) -> AsyncIterator[Call]:
    """Call through the wrapped client with structured output."""
    settings = ModelSettings(model="m", base_url=url, concurrency=in_flight)
    chat = create_chat("extract", settings, DictCache())
    yield lambda number: ask_structured(
        chat, StructuredRequest("found", ChatExtraction, make_request(number))
    )


@asynccontextmanager
async def with_httpx(url: str, in_flight: int) -> AsyncIterator[Call]:
    """Call through httpx directly."""
    import httpx

    limits = httpx.Limits(max_connections=in_flight)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60) as client:

        async def call(number: int) -> str:
            answer = await client.post("/chat/completions", json=make_body(number))
            return str(answer.json()["choices"][0]["message"]["content"])

        yield call


@asynccontextmanager
async def with_sdk(url: str, _: int) -> AsyncIterator[Call]:
    """Call through the openai SDK directly."""
    import openai

    async with openai.AsyncOpenAI(base_url=url, api_key="x", max_retries=0) as client:
        create: Any = client.chat.completions.create

        async def call(number: int) -> str:
            return str((await create(**make_body(number))).choices[0].message.content)

        yield call


SIDES: Mapping[str, Any] = {
    "ours": with_clew,
    "ours, wrapped": with_clew_wrapped,
    "ours, structured": with_clew_structured,
    "httpx": with_httpx,
    "openai SDK": with_sdk,
}


async def measure(side: Any, url: str, calls: int, in_flight: int) -> Cost:
    """Make the calls, `in_flight` at a time, after one warm-up call."""
    async with side(url, in_flight) as call:
        await call(-1)
        numbers = iter(range(calls))

        async def worker() -> None:
            for number in numbers:
                await call(number)

        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*[worker() for _ in range(in_flight)])
        return Cost(time.perf_counter() - wall, time.process_time() - cpu)


@contextmanager
def run_stub(latency: float) -> Any:
    """Run the stub endpoint in its own process."""
    words = ["-m", "clew.testing.stub_endpoint", "--latency-ms", str(latency * 1000)]
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def run_rounds(latency: float, sides: list[str], given: argparse.Namespace) -> dict[str, Cost]:
    """Alternate between the clients and return the median cost of each."""
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    with run_stub(latency) as url:
        for _ in range(given.rounds):
            for name in sides:
                cost = asyncio.run(measure(SIDES[name], url, given.calls, given.in_flight))
                costs[name].append(cost)
    return {
        name: Cost(median(cost.wall for cost in all_), median(cost.cpu for cost in all_))
        for name, all_ in costs.items()
    }


def main() -> None:
    """Measure and print a table, then the JSON result."""
    parser = argparse.ArgumentParser(prog="python -m bench.chat", description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    at_once = run_rounds(0.0, list(SIDES), given)
    delayed = run_rounds(LATENCY, ["ours", "ours, wrapped", "ours, structured"], given)
    ideal = LATENCY * ceil(given.calls / given.in_flight)
    print(f"{given.calls} calls, {given.in_flight} in flight, an endpoint without latency")
    for name, cost in at_once.items():
        print(f"  {name:18} {cost.wall:6.2f} s   {1000 * cost.cpu / given.calls:6.3f} ms CPU/call")
    print(f"the same with {LATENCY * 1000:.0f} ms latency; ideal {ideal:.2f} s")
    for name, cost in delayed.items():
        print(f"  {name:18} {cost.wall:6.2f} s   {100 * ideal / cost.wall:5.1f} % of ideal")
    report = {
        "bench": "chat",
        "figures": {
            "seconds": {name: round(cost.wall, 3) for name, cost in at_once.items()},
            "cpu_ms_per_call": {
                name: round(1000 * cost.cpu / given.calls, 4) for name, cost in at_once.items()
            },
            "times_faster_than_httpx": round(at_once["httpx"].wall / at_once["ours"].wall, 2),
            "times_faster_than_sdk": round(at_once["openai SDK"].wall / at_once["ours"].wall, 2),
            "share_of_ideal_at_50_ms": {
                name: round(ideal / cost.wall, 4) for name, cost in delayed.items()
            },
        },
        "sizes": {"calls": given.calls, "in_flight": given.in_flight, "rounds": given.rounds},
        "machine": {
            "processors": os.cpu_count(),
            "architecture": platform.machine(),
            "python": platform.python_version(),
            "httpx": version("httpx"),
            "openai": version("openai"),
        },
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
