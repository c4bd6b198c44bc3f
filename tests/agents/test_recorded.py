"""Every agent over real questions with what a real 1.5B model said, replayed.

The recordings are made by `python -m bench.agents_record`; `recorded/README.md` says from what.
"""

from pathlib import Path
from typing import Any

import pytest

from clew.config import ROLES, ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.llm.structured import pin_mode
from clew.models import Models
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.record_replay import ReplayChat, load_rows
from conftest import document, stream

HERE = Path(__file__).parent / "recorded"
ROWS = load_rows(HERE / "replies.jsonl") if (HERE / "replies.jsonl").exists() else []
RECIPES = sorted({row["recipe"] for row in ROWS})
HEAVY = tuple(f"{one}+clew" for one in "graphsearch ircot rograg react steps youtu".split())
"""Most of the time of all."""


@pytest.fixture
async def base(tmp_path: Path) -> Any:
    """The knowledge base that the recordings were made over."""
    settings = Settings(kb=tmp_path / "kb", models=ModelSettings(model="recorded"))
    store = SqliteStore(settings.kb, create=True, durable=False)
    opened = KnowledgeBase(store, settings, HashEmbed())
    corpus = load_rows(HERE / "corpus.jsonl")
    pages = stream(document(str(r["id"]), r["text"], r["title"]) for r in corpus)
    await opened.take(pages, extractor="offline")
    yield opened
    await opened.close()


@pytest.mark.skipif(not ROWS, reason="no recordings here")
@pytest.mark.parametrize(
    "recipe",
    [pytest.param(one, marks=pytest.mark.slow if one in HEAVY else ()) for one in RECIPES],
)
async def test_real_replies_lead_to_answers_or_refusals(base: KnowledgeBase, recipe: str) -> None:
    texts = {str(row["id"]): row["text"] for row in load_rows(HERE / "corpus.jsonl")}
    asked = missed = right = 0
    questions = load_rows(HERE / "questions.jsonl")
    for question in questions:
        mine = [r for r in ROWS if (r["recipe"], r["question"]) == (recipe, question["question"])]
        chat = ReplayChat(mine)
        pin_mode(chat.name, None)
        chats = dict.fromkeys(ROLES, chat)
        base.models = Models(base.settings.models, base.store, chats=chats)
        mode = "open" if recipe.startswith("llm") else "reject"
        answer = await base.ask(question["question"], recipe=recipe, mode=mode, k=3)
        assert answer.verdict in ("answered", "refused")
        assert answer.complete
        assert answer.missing or answer.verdict == "answered"
        for cited in answer.citations:
            assert texts[cited.doc][cited.start : cited.end] == cited.quote
        asked, missed = asked + chat.request_count, missed + chat.miss_count
        right += str(question["answer"]).casefold() in answer.candidate.casefold()
    assert len(questions) >= 10
    # Retrieval may move on since the recording, but not so far that nothing is replayed.
    assert missed <= asked / 2
    if recipe.startswith("graphsearch"):
        assert right >= len(questions) // 3
