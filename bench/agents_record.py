"""Records every agent over a few questions with a real model, for the tests to replay.

`python -m bench.agents_record` with a model configured. It builds a small knowledge base of the
folder's corpus with the tests' fake embedder, asks every agent every question, and stores the
model's replies in `replies.jsonl`. The corpus and the questions are our own.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from bench.machine import read_jsonl
from clew.config import ROLES, Settings, load_settings
from clew.engine import KnowledgeBase
from clew.ingest.readers.source import make_document
from clew.llm.structured import pin_mode
from clew.models import Models
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.record_replay import RecordingChat
from clew.types import Document

AGENTS = (
    *("reader+clew", "steps+clew", "graphsearch+clew", "youtu+clew", "rograg+clew"),
    *("graph-r1+clew", "react+clew", "ircot+clew", "llm+clew"),
)
FOLDER = Path("tests/agents/recorded")


async def iter_documents(corpus: Sequence[dict[str, Any]]) -> AsyncIterator[Document]:
    """Yield corpus rows as documents."""
    for row in corpus:
        yield make_document(str(row["text"]), str(row.get("title", "")), str(row["id"]), {})


async def record(data: Path, file: Path, agents: Sequence[str]) -> None:
    """Ask every agent every question, an agent's questions concurrently; resumable."""
    questions, corpus = read_jsonl(data / "questions.jsonl"), read_jsonl(data / "corpus.jsonl")
    rows = read_jsonl(file)
    done = {(row["recipe"], row["question"]) for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings().model_copy(update={"kb": Path(folder) / "kb"})
        store = SqliteStore(settings.kb, create=True, durable=False)
        base = KnowledgeBase(store, settings, HashEmbed())
        await base.take(iter_documents(corpus), extractor="offline")
        for agent in agents:
            calls = [
                record_question(base, settings, agent, question)
                for question in questions
                if (agent, question["question"]) not in done
            ]
            for work in asyncio.as_completed(calls):
                new_rows, outcome = await work
                rows += new_rows
                print(json.dumps(outcome, ensure_ascii=False), flush=True)
                write_jsonl(file, rows)
        await base.close()


async def record_question(
    base: KnowledgeBase, settings: Settings, agent: str, question: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Ask one question through its own KnowledgeBase over the shared store."""
    kb = KnowledgeBase(base.store, settings, base.embed)
    about = {"recipe": agent, "question": question["question"]}
    chat = RecordingChat(base.models.chat("answer"), about)
    pin_mode(chat.name, None)
    kb.models = Models(settings.models, base.store, chats=dict.fromkeys(ROLES, chat))
    mode = "open" if agent.startswith("llm") else "reject"
    answer = await kb.ask(question["question"], recipe=agent, mode=mode, k=3)
    outcome = {**about, "said": answer.candidate, "verdict": answer.verdict}
    return chat.rows, {**outcome, "gold": question["answer"], "calls": len(chat.rows)}


def write_jsonl(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write JSON lines."""
    file.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )


def main() -> None:
    """Parse the options and record."""
    parser = argparse.ArgumentParser(prog="bench.agents_record")
    parser.add_argument("--data", type=Path, default=FOLDER, help="corpus.jsonl, questions.jsonl")
    parser.add_argument("--out", type=Path, default=FOLDER / "replies.jsonl")
    parser.add_argument("--agents", default=",".join(AGENTS))
    given = parser.parse_args()
    asyncio.run(record(given.data, given.out, given.agents.split(",")))


if __name__ == "__main__":
    main()
