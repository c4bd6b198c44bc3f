"""Wall time of agents when every model call takes 200 ms: overhead and lost concurrency.

Each agent gets a script that exercises its whole method. `serial` is the number of calls that must
run one after another by the method's logic; their time is the critical path.
"""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter
from typing import Any

from clew.config import ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.ingest.readers.source import make_document
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import AgentScript, HashEmbed
from clew.testing.stub_endpoint import StubEndpoint
from clew.types import Document

LATENCY = 0.2
ROUNDS = 3
QUESTION = "Tell me the birth town of the person behind Marrow Bridge, please."
PAGES = {
    "Marrow Bridge": "A stone bridge over the Tarn. It was designed by Ilse Brandvik.",
    "Ilse Brandvik": "Ilse Brandvik was an engineer. She was born in Hallowmere and died in 1921.",
    "Tarn": "The Tarn is a river that rises near Pellworth.",
    "Hallowmere": "Hallowmere is a fishing town on the Grey Coast.",
}
# GraphSearch: plan, two waves of reading, draft, verify, expand, read, draft, verify, answer.
SERIAL_CALLS = {"reader": 1, "graphsearch": 10, "youtu": 7, "rograg": 6, "graph-r1": 3, "react": 3}


def reading_reply(message: str) -> dict[str, Any]:
    """Reply to the reading prompt with a name from the passages."""
    asked = message.rsplit("Question:", 1)[-1]
    answer = "Hallowmere" if "Ilse" in asked or "born" in asked else "Ilse Brandvik"
    return {"quote": answer, "source": 1, "answer": answer}


def build_script() -> AgentScript:
    """Build replies to every prompt, so that the whole method runs."""
    concluded = {
        "enough": True,
        "sentences": [{"text": "Ilse Brandvik was born in Hallowmere.", "sources": [1, 2]}],
        "short": "Hallowmere",
    }
    return AgentScript(
        {
            "read": reading_reply,
            "refine_read": reading_reply,
            "answer": concluded,
            "conclude": concluded,
            "refine": {"notes": []},
            "decompose": {
                "questions": ["Who made Marrow Bridge?", "What is the Tarn?", "Where is #1 from?"]
            },
            "relations": {
                "facts": [
                    {"subject": "Marrow Bridge", "relation": "designer", "object": "Entity#1"},
                    {"subject": "Marrow Bridge", "relation": "river", "object": "Entity#2"},
                    {"subject": "Entity#1", "relation": "birthplace", "object": "Entity#3"},
                ]
            },
            "draft": {"steps": [], "answer": "Hallowmere"},
            "verify": [{"verdict": "REJECT", "missing": "proof"}, {"verdict": "ACCEPT"}],
            "expand": {"questions": ["Where is Ilse Brandvik at home?", "What is Hallowmere?"]},
            "involved": {
                "parts": [
                    {"question": "Who made Marrow Bridge?"},
                    {"question": "Where was #1 born?"},
                ]
            },
            "reflect": [
                {"thought": "", "action": "query", "text": "Where did Ilse Brandvik grow up?"},
                {"thought": "", "action": "answer", "text": "Hallowmere"},
            ],
            "logic": {
                "steps": [
                    {"op": "retrieve", "args": ["Marrow Bridge", "designer", "?"]},
                    {"op": "retrieve", "args": ["#1", "birthplace", "?"]},
                ]
            },
            "read_values": lambda message: {
                "values": [{"text": reading_reply(message)["answer"], "items": [1]}]
            },
            "check_argument": {"sufficient": True},
            "graph_r1": [
                "<think>a</think><query>Who designed Marrow Bridge?</query>",
                "<think>b</think><query>Where was Ilse Brandvik born?</query>",
                "<think>c</think><answer>Hallowmere</answer>",
            ],
            "react": [
                {
                    "wants": [
                        {"tool": "search", "arguments": {"query": "Who designed Marrow Bridge?"}}
                    ]
                },
                {
                    "wants": [
                        {"tool": "search", "arguments": {"query": "Where was Ilse Brandvik born?"}}
                    ]
                },
                {"enough": True, "answer": "In Hallowmere.", "short": "Hallowmere"},
            ],
        }
    )


async def iter_pages() -> AsyncIterator[Document]:
    """The small corpus."""
    for title, text in PAGES.items():
        yield make_document(text, title, title, {})


async def measure() -> dict[str, Any]:
    """Calls, wall time and its ratio to the critical path, per agent; the best of some rounds."""
    figures: dict[str, Any] = {}
    print(f"{'agent':14}{'calls':>7}{'serial':>8}{'wall s':>8}{'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "kb", create=True, durable=False)
        await KnowledgeBase(store, Settings(kb=Path(folder) / "kb"), HashEmbed()).take(iter_pages())
        for agent, serial in SERIAL_CALLS.items():
            rounds = [await _time_agent(store, agent) for _ in range(ROUNDS)]
            calls, wall = min(rounds, key=lambda pair: pair[1])
            ratio = wall / (serial * LATENCY)
            figures[agent] = {
                "calls": calls,
                "serial": serial,
                "wall": round(wall, 3),
                "ratio": round(ratio, 3),
            }
            print(f"{agent:14}{calls:7d}{serial:8d}{wall:8.2f}{ratio:7.2f}", flush=True)
        await store.close()
    return figures


async def _time_agent(store: SqliteStore, agent: str) -> tuple[int, float]:
    """Ask once with a new script and a cold cache; the JSON mode is fixed beforehand."""
    async with StubEndpoint(reply=build_script(), latency=LATENCY) as stub:
        models = ModelSettings(model="stub", base_url=stub.base_url, shape_by="json")
        base = KnowledgeBase(store, Settings(kb=store.folder, models=models), HashEmbed())
        started = perf_counter()
        answer = await base.ask(QUESTION, recipe=f"{agent}+clew", k=4)
        wall = perf_counter() - started
        return answer.usage.calls, wall
