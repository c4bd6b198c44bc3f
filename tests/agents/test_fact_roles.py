"""Sentences over a graph: true ones are cited in many wordings, false ones of their words not."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from agent_asking import asking

from clew.agents.citing.fact_roles import agrees_with_facts
from clew.agents.citing.support import find_citations
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import AgentScript, HashEmbed
from clew.types import Passage, Statement

TRIPLES = (
    ("Marrow Bridge", "designed by", "Ilse Brandvik"),
    ("Ilse Brandvik", "born in", "Hallowmere"),
    ("Otto Reeve", "born in", "Hallowmere"),
    ("Marrow Bridge", "spans", "River Tarn"),
    ("Otto Reeve", "directed", "The Long Ferry"),
    ("Ilse Brandvik", "knows", "Otto Reeve"),
    ("Hallowmere", "capital of", "Grey Coast"),
    ("Northland", "capital", "Vessen"),
)


def facts() -> list[Statement]:
    made, at = [], 0
    for n, (head, relation, tail) in enumerate(TRIPLES):
        text = f"{head} {relation} {tail}"
        place = {"doc": "g", "chunk": "c", "start": at, "end": at + len(text), "quote": text}
        made.append(Statement(f"f{n}", text, relation, (head, tail), 1.0, **place))  # type: ignore[arg-type]
        at += len(text) + 1
    return made


def is_cited(sentence: str) -> bool:
    found = [Passage(f.chunk, f.doc, "", 1.0, f.quote, f.start, f.end) for f in facts()]
    cited = find_citations(sentence, range(1, len(found) + 1), found)
    return bool(cited) and agrees_with_facts(sentence, cited, facts())


@pytest.mark.parametrize(
    "sentence",
    [
        "Marrow Bridge was designed by Ilse Brandvik.",
        "Ilse Brandvik designed Marrow Bridge.",
        "The designer of Marrow Bridge is Ilse Brandvik.",
        "Ilse Brandvik is the designer of Marrow Bridge.",
        "Marrow Bridge's designer is Ilse Brandvik.",
        "Marrow Bridge, which Ilse Brandvik designed, spans the River Tarn.",
        "The designer of Marrow Bridge was born in Hallowmere.",
        "The designer of Marrow Bridge, Ilse Brandvik, was born in Hallowmere.",
        "Hallowmere is where Ilse Brandvik was born.",
        "In Hallowmere was born Ilse Brandvik.",
        "Born in Hallowmere, Ilse Brandvik designed Marrow Bridge.",
        "The Long Ferry was directed by Otto Reeve.",
        "Otto Reeve is the director of The Long Ferry.",
        "The director of The Long Ferry was born in Hallowmere.",
        "Hallowmere is the capital of Grey Coast.",
        "Vessen is the capital of Northland.",
        "The capital of Northland is Vessen.",
        "Marrow Bridge → [designed by] → Ilse Brandvik → [born in] → Hallowmere",
        "Ilse Brandvik knows Otto Reeve, who directed The Long Ferry.",
    ],
)
def test_a_true_sentence_is_cited(sentence: str) -> None:
    assert is_cited(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Ilse Brandvik was designed by Marrow Bridge.",
        "Marrow Bridge designed Ilse Brandvik.",
        "Marrow Bridge is the designer of Ilse Brandvik.",
        "The designer of Marrow Bridge was born in River Tarn.",
        "The designer of Marrow Bridge was born in Otto Reeve.",
        "Hallowmere was born in Ilse Brandvik.",
        "Otto Reeve was directed by The Long Ferry.",
        "The Long Ferry directed Otto Reeve.",
        "Marrow Bridge was designed by Otto Reeve.",
        "The designer of The Long Ferry was born in Hallowmere.",
        "Grey Coast is the capital of Hallowmere.",
        "River Tarn spans Marrow Bridge.",
    ],
)
def test_a_false_sentence_of_the_same_words_is_not(sentence: str) -> None:
    assert not is_cited(sentence)


@pytest.mark.parametrize(
    ("said", "cited"),
    [
        ("The designer of Marrow Bridge was born in Hallowmere.", True),
        ("The designer of Marrow Bridge was born in River Tarn.", False),
        ("Ilse Brandvik was designed by Marrow Bridge.", False),
    ],
)
async def test_a_false_sentence_is_refused_at_the_front_door(
    tmp_path: Path, said: str, cited: bool
) -> None:
    rows = [{"head": h, "relation": r, "tail": t} for h, r, t in TRIPLES]
    file = tmp_path / "graph.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    store = SqliteStore(tmp_path / "kb", create=True, durable=False)
    base = KnowledgeBase(store, Settings(kb=tmp_path / "kb"), HashEmbed())
    await base.import_graph(file)

    def write(message: str) -> dict[str, Any]:
        numbers = [int(n) for n in re.findall(r"^\[(\d+)\] ", message, re.MULTILINE)]
        return {"enough": True, "sentences": [{"text": said, "sources": numbers}], "short": ""}

    told = AgentScript({"answer": write, "answer_graph": write})
    asked = "Where was the designer of Marrow Bridge, which spans River Tarn, born?"
    answer = await asking(base)(told, asked, recipe="lightrag", mode="reject", confidence=0.0)
    await store.close()
    assert bool(answer.citations) is cited
    assert (answer.verdict == "answered") is cited
