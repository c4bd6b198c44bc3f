"""Recording every agent over a few real questions, for the tests to replay.

`python -m bench.agents_record --data DIR --out tests/agents/recorded --limit 10` with a model
configured. It builds a small knowledge base of the questions' gold passages and some others, with
the fake embedder that tests have, asks every agent, and writes corpus, questions and replies.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from clew.config import Settings, load_settings
from clew.engine import KnowledgeBase
from clew.ingest.read import document
from clew.llm.structured import pin
from clew.model_settings import ROLES
from clew.models import Models
from clew.store.sqlite import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.recorded import Recording
from clew.types import Document

AGENTS = (
    *("reader+clew", "steps+clew", "graphsearch+clew", "youtu+clew", "rograg+clew"),
    *("graph-r1+clew", "react+clew", "ircot+clew", "llm+clew"),
)
OTHERS = 40


def rows_of(file: Path) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def sample(data: Path, limit: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The first questions, and their gold passages among others."""
    questions = rows_of(data / "questions.jsonl")[:limit]
    gold = {str(one) for question in questions for one in question["gold"]}
    corpus = rows_of(data / "corpus.jsonl")
    kept = [row for row in corpus if str(row["id"]) in gold]
    kept += [row for row in corpus if str(row["id"]) not in gold][:OTHERS]
    fields = ("id", "question", "answer", "type", "gold")
    return [{key: q[key] for key in fields if key in q} for q in questions], kept


async def documents(corpus: Sequence[dict[str, Any]]) -> AsyncIterator[Document]:
    """Rows as documents."""
    for row in corpus:
        yield document(str(row["text"]), str(row.get("title", "")), str(row["id"]), {})


async def record(data: Path, out: Path, limit: int, agents: Sequence[str]) -> None:
    """Ask every agent every question, all questions of an agent at once; go on where one ended."""
    questions, corpus = sample(data, limit)
    write(out / "questions.jsonl", questions)
    write(out / "corpus.jsonl", corpus)
    file = out / "replies.jsonl"
    rows = rows_of(file) if file.exists() else []
    done = {(row["recipe"], row["question"]) for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings().model_copy(update={"kb": Path(folder) / "kb"})
        store = SqliteStore(settings.kb, create=True, durable=False)
        base = KnowledgeBase(store, settings, HashEmbed())
        await base.take(documents(corpus))
        for agent in agents:
            asked = [
                one(base, settings, agent, question)
                for question in questions
                if (agent, question["question"]) not in done
            ]
            for work in asyncio.as_completed(asked):
                found, said = await work
                rows += found
                print(json.dumps(said, ensure_ascii=False), flush=True)
                write(file, rows)
        await base.close()


async def one(
    base: KnowledgeBase, settings: Settings, agent: str, question: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Ask one question in a knowledge base of its own that shares the store."""
    mine = KnowledgeBase(base.store, settings, base.embed)
    about = {"recipe": agent, "question": question["question"]}
    chat = Recording(base.models.chat("answer"), about)
    pin(chat.name, None)
    vars(mine)["models"] = Models(settings.models, base.store, _chats=dict.fromkeys(ROLES, chat))
    mode = "open" if agent.startswith("llm") else "reject"
    answer = await mine.ask(question["question"], recipe=agent, mode=mode, k=3)
    said = {**about, "said": answer.candidate, "verdict": answer.verdict}
    return chat.rows, {**said, "gold": question["answer"], "calls": len(chat.rows)}


def write(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write JSON lines."""
    file.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(prog="bench.agents_record")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--agents", default=",".join(AGENTS))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(record(given.data, given.out, given.limit, given.agents.split(",")))


if __name__ == "__main__":
    main()
