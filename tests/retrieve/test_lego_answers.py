"""For each module of LEGO-GraphRAG a model whose final answer differs with and without it."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from film_graph import open_films

from clew.config import ROLES, ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.llm.chat import Request
from clew.llm.structured import pin_mode
from clew.models import Models
from clew.testing.fakes import AgentScript, ScriptedChat
from conftest import OpenFilled

QUESTION = "who directed Grey Coast"
Choose = Callable[[dict[int, str]], list[int]]
Read = Callable[[list[str]], str]


def actors(items: dict[int, str]) -> list[int]:
    """Choose what is about actors, the last first."""
    return [number for number, item in items.items() if "starred" in item][::-1]


def one_actor(items: dict[int, str]) -> list[int]:
    """Choose one item about actors."""
    return actors(items)[-1:]


def last_half(items: dict[int, str]) -> list[int]:
    """Choose the last half."""
    return list(items)[len(items) // 2 :]


def first_end(paths: list[str]) -> str:
    """Answer with the end of the first path."""
    return paths[0].split(" → ")[-1]


def last_end(paths: list[str]) -> str:
    """Answer with the end of the last path."""
    return paths[-1].split(" → ")[-1]


def hops(paths: list[str]) -> str:
    """Answer with the length of the longest path."""
    return f"{max(path.count(' → ') // 2 for path in paths)} hops"


def number(paths: list[str]) -> str:
    """Answer with the number of paths."""
    return f"{len(paths)} paths"


def topics(paths: list[str]) -> str:
    """Answer whether there is a community report."""
    return "topics" if "Topics:" in paths else "paths"


@pytest.fixture
async def films(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_films(open_filled)


async def answer_with(base: KnowledgeBase, recipe: str, choose: Choose, read: Read) -> str:
    """Ask with a model that chooses parts of the graph, and answers by what it is then shown."""

    def chosen(message: str) -> dict[str, Any]:
        listed = message.rpartition("[[items")[2]
        items = {int(n): item for n, item in re.findall(r"^\[(\d+)\] (.*)$", listed, re.MULTILINE)}
        return {"keep": choose(items)}

    def written(message: str) -> dict[str, Any]:
        page = message.rpartition("[[evidence")[2].splitlines()
        shown = [line for line in page if " → " in line or (read is topics and line == "Topics:")]
        said = read([re.sub(r"^\[\d+\] ", "", line) for line in shown])
        sentence = {"text": f"It was {said}.", "sources": [1]}
        return {"enough": True, "sentences": [sentence], "short": said}

    script = AgentScript(
        {"choose_parts": chosen, "enough_paths": {"enough": True}, "answer": written}
    )

    def say(request: Request) -> str:
        return script([{"role": one.role, "content": one.content} for one in request.messages])

    chat = ScriptedChat(say)
    pin_mode(chat.name, "json")
    settings = Settings(kb=base.settings.kb, models=ModelSettings(model="m"))
    asked = KnowledgeBase(base.store, settings, base.embed)
    asked.reader = base.reader
    asked.models = Models(settings.models, base.store, chats=dict.fromkeys(ROLES, chat))
    return (await asked.ask(QUESTION, recipe=recipe)).candidate


ROWS: Sequence[tuple[str, str, Choose, Read]] = [
    # A model instead of the embedder: for paths at once, for edges, for the steps of a beam.
    ("lego-2", "lego-3", actors, first_end),
    ("lego-2", "lego-4", actors, first_end),
    ("lego-3", "lego-5", actors, number),
    ("lego-6", "lego-7", actors, first_end),
    ("lego-6", "lego-8", actors, first_end),
    ("lego-7", "lego-9", actors, number),
    ("lego-10", "lego-11", actors, first_end),
    ("lego-12", "lego-13", actors, first_end),
    ("lego-14", "lego-15", actors, first_end),
    # How a beam scores, prunes and ends; what is done with a model's choice.
    ("lego-14", "lego-14-dynamic", actors, number),
    ("lego-14", "lego-14-triple", actors, last_end),
    ("lego-14", "lego-14-llms-r", actors, first_end),
    ("lego-14", "lego-14-llms-es", actors, hops),
    ("lego-15", "lego-15-eems-s", one_actor, number),
    ("lego-13", "lego-13-eems-r", actors, number),
    ("lego-13", "lego-13-m-llms", last_half, first_end),
    # Which part of the graph is searched.
    ("lego-12", "lego-partition", actors, first_end),
    ("lego-12", "lego-ego", actors, number),
    ("lego-12", "grag-m", actors, topics),
]


async def test_a_module_changes_the_final_answer(films: KnowledgeBase) -> None:
    await films.builder.make_tree_manager().build(["leiden"])
    same = {}
    for without, with_it, choose, read in ROWS:
        answers = [await answer_with(films, row, choose, read) for row in (without, with_it)]
        if not all(answers) or answers[0] == answers[1]:
            same[without, with_it] = answers
    assert same == {}
