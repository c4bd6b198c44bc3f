"""What the model is shown of an imported graph: who is asked about, no mere ids, a long line."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_asking import asking

from clew.agents.ask import AskOptions
from clew.agents.base import Answer
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.llm.openai_api import estimate_tokens
from clew.reader.span_reader import ReadSpan
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import AgentScript, HashEmbed

FIRST, LAST = "Ab Cor Del Fen Gar Hol Kil".split(), "ton dale mere ford wick hurst stead".split()
STOPS = [*(f"{first}{last}" for first in FIRST for last in LAST), "Upperby", "Vexley"]


class WordReader:
    """Reads one word wherever it stands, and reads nothing else."""

    def __init__(self, word: str) -> None:
        self.word = word

    def reads(self, question: str) -> bool:
        return True

    def read(self, question: str, passages: Sequence[str], **_: Any) -> list[ReadSpan]:
        return [
            ReadSpan(number, at, at + len(self.word), self.word, 6.0)
            for number, text in enumerate(passages)
            if (at := text.find(self.word)) >= 0
        ]

    read_together = read


SILENT = AgentScript({"answer_graph": {"enough": False, "missing": "x"}})


async def ask_graph(
    folder: Path, rows: Sequence[Mapping[str, Any]], asked: str, **how: Any
) -> Answer:
    file, kb = folder / "graph.jsonl", folder / "kb"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    store = SqliteStore(kb, create=True, durable=False)
    base = KnowledgeBase(store, Settings(kb=kb), HashEmbed())
    await base.import_graph(file)
    shown = AskOptions(record_prompts=True)
    answer = await asking(base)(SILENT, asked, manner=shown, **how)
    await store.close()
    return answer


def find_lines(answer: Answer, heading: str) -> list[str]:
    """The numbered lines under a heading of the first page that was shown."""
    page = next(
        message.content
        for prompt in answer.prompts
        for message in prompt.messages[-1:]
        if f"\n{heading}:\n" in message.content
    )
    block = page.split(f"\n{heading}:\n")[1].splitlines()
    end = next(at for at, line in enumerate(block) if not line.startswith("["))
    return block[:end]


async def test_whom_the_question_names_comes_first_and_a_mere_id_tells_nothing(
    tmp_path: Path,
) -> None:
    places: list[Mapping[str, Any]] = [
        {"id": f"n{at}", "name": f"Stop {name}", "type": "place"} for at, name in enumerate(STOPS)
    ]
    tags = "a place with many old gates and one tower where people work"
    described = [
        {"id": f"d{at}", "name": f"Gate {name}", "type": "place", "description": tags}
        for at, name in enumerate(STOPS[:20])
    ]
    vance = {
        "id": "v",
        "name": "Mallory Vance",
        "type": "person",
        "description": "a surveyor",
        "shoe_size": "47",
    }
    links = [{"head": "v", "relation": "works at", "tail": "d0"}]
    links += [{"head": f"d{at}", "relation": "leads to", "tail": f"n{at}"} for at in range(20)]
    asked = "At which old gate place does Mallory Vance work?"
    answer = await ask_graph(
        tmp_path, [*places, *described, vance, *links], asked, recipe="hypergraphrag"
    )
    entities = find_lines(answer, "Entities")
    assert entities[0] == "[1] Mallory Vance (person): a surveyor; shoe_size: 47"
    assert not any("id: " in line or "Stop" in line for line in entities)


async def test_a_path_of_fifty_hops_is_shown_by_its_ends_and_the_trace_says_so(
    tmp_path: Path,
) -> None:
    assert len(STOPS) == 51
    line = [
        {"head": one, "relation": "next stop", "tail": other}
        for one, other in zip(STOPS, STOPS[1:], strict=False)
    ]
    section = {"kind": "paths", "tokens": 300, "most": 3, "order": "linked"}
    recipe = {
        "base": "lego-1",
        "set": {"StructuralPaths.max_hop": 60, "RankAnswers.top_k": 200},
        "layout": {"sections": [section, {"kind": "passages"}]},
    }
    asked = f"Which stops lie between {STOPS[0]} and {STOPS[-1]}?"
    answer = await ask_graph(tmp_path, line, asked, recipe="line", recipes={"line": recipe})
    first = find_lines(answer, "Paths")[0]
    stops = first.removeprefix("[1] ").split(" → ")
    assert {stops[0], stops[-1]} == {STOPS[0], STOPS[-1]}
    assert " more … → " in first
    assert estimate_tokens(first) <= 300
    assert any("1 lines cut" in step.output for step in answer.trace)


async def judge_written(valley: KnowledgeBase, asked: str, short: str, **how: Any) -> Answer:
    """Ask a model that copies the line with its answer."""

    def write(message: str) -> dict[str, Any]:
        evidence = message.rpartition("[[evidence")[2]
        lines = [line for line in evidence.splitlines() if line.startswith("[") and short in line]
        number, _, text = lines[0][1:].partition("] ")
        sentence = {"text": text, "sources": [int(number)]}
        return {"enough": True, "sentences": [sentence], "short": short}

    told = AgentScript({"answer": write, "answer_graph": write})
    return await asking(valley)(told, asked, confidence=0.0, mode="reject", **how)


async def test_the_reader_reads_what_is_cited_also_where_only_a_fact_was_found(
    valley: KnowledgeBase,
) -> None:
    facts = {"base": "lightrag", "layout": {"sections": [{"kind": "facts"}]}}
    valley.reader = WordReader("Hallowmere")
    asked = "Where was the designer of Marrow Bridge, Ilse Brandvik, born?"
    answer = await judge_written(
        valley, asked, "Hallowmere", k=1, recipe="facts", recipes={"facts": facts}
    )
    assert {cited.chunk for cited in answer.citations}.isdisjoint(
        passage.id for passage in answer.evidence.chunks
    )
    assert answer.signals["direct"] > 0
    assert answer.signals["entailed"] == 1


async def test_a_span_beside_one_of_two_that_are_compared_says_nothing_against_it(
    valley: KnowledgeBase,
) -> None:
    valley.reader = WordReader("Tarn")
    asked = "Which is made of stone, Marrow Bridge or Hallowmere?"
    compared = await judge_written(valley, asked, "Marrow Bridge", recipe="bm25")
    assert (compared.signals["direct"], compared.signals["rival"]) == (0.0, -1.0)
    other = await judge_written(valley, "What is made of stone?", "Marrow Bridge", recipe="bm25")
    assert (other.signals["direct"], other.signals["rival"] > 0) == (-1.0, True)
