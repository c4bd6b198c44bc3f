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
# GraphSearch: plan, ground behind the first of two waves (refine, answer), draft, verify, expand,
# refine, answer, draft, verify, answer. ROGRAG: intent, plan, two lookups, check, answer.
SERIAL_CALLS = {
    "searcher": 2,
    "reader": 1,
    "graphsearch": 13,
    "youtu": 4,
    "rograg": 6,
    "graph-r1": 3,
    "react": 3,
}


def build_script() -> AgentScript:
    """Build replies to every prompt, so that the whole method runs."""
    written = {
        "enough": True,
        "answer": "Ilse Brandvik was born in Hallowmere [1][2].",
        "short": "Hallowmere",
    }
    look = [
        {"wants": [{"tool": "search", "arguments": {"query": query}}]}
        for query in ("Who designed Marrow Bridge?", "Where was Ilse Brandvik born?")
    ]
    steps = [("Marrow Bridge", "designer", "?"), ("#1", "birthplace", "?")]
    triple = {"subject": "Marrow Bridge", "relation": "designer", "object": "Entity#1"}
    kept = {"items": [1, 2], "context": "Ilse Brandvik, of Hallowmere, designed it."}
    return AgentScript(
        {
            "answer": written,
            "answer_or_search": [look[0], written],
            "react": [*look, written],
            "decompose_text": {
                "queries": ["Who made Marrow Bridge?", "What is the Tarn?", "Where is #1 from?"]
            },
            "decompose_triples": {"queries": [{"triples": [triple]}]},
            "ground": {"query": "Where is Ilse Brandvik from?"},
            "refine_text": kept,
            "refine_triples": kept,
            "sub_answer": {"answer": "Ilse Brandvik"},
            "draft": {"answer": "Hallowmere"},
            "verify": [{"verdict": "REJECT", "missing": "proof"}, {"verdict": "ACCEPT"}],
            "expand_text": {"queries": ["Where is Ilse Brandvik at home?", "What is Hallowmere?"]},
            "decompose_by_schema": {
                "sub_questions": ["Who made Marrow Bridge?", "Where was its maker born?"]
            },
            "reflect": [
                {"action": "query", "text": "Where did Ilse Brandvik grow up?"},
                {"action": "answer", "text": "Hallowmere"},
            ],
            "intent": {"intent": "question"},
            "logic": {"steps": [{"op": "retrieve", "args": [*step]} for step in steps]},
            "read_values": {"values": [{"text": "Ilse Brandvik", "items": [1]}]},
            "check_argument": {"sufficient": True},
            "graph_r1": [
                "<think>a</think><query>Who designed Marrow Bridge?</query>",
                "<think>b</think><query>Where was Ilse Brandvik born?</query>",
                "<think>c</think><answer>Hallowmere</answer>",
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
