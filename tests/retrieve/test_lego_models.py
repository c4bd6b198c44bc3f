"""Graph modules with a model: what it chooses counts, and what it fails to say does not hurt."""

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from film_graph import open_films

from clew.config import ModelSettings
from clew.engine import KnowledgeBase
from clew.llm.chat import Request
from clew.models import Models
from clew.recipes.registry import RECIPES
from clew.retrieve.linking.link_entities import LinkEntities
from clew.retrieve.model_choice import CHOOSE_PROMPT, ENOUGH_PROMPT
from clew.retrieve.paths.beam import BeamPaths
from clew.retrieve.paths.ranked import RankedPaths
from clew.retrieve.step import Step
from clew.retrieve.subgraph.extract import PprSubgraph
from clew.retrieve.subgraph.prune import Prune
from clew.testing.fakes import ScriptedChat
from clew.types import Found
from conftest import OpenFilled, one_in_three

QUESTION = "who directed Grey Coast"
LLM_INSTANCES = [f"lego-{n}" for n in (3, 4, 5, 7, 8, 9, 11, 13, 15)]


@pytest.fixture
async def films(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_films(open_filled)


async def after(
    base: KnowledgeBase, say: Callable[[Request], str], *steps: Step
) -> tuple[list[tuple[str, ...]], ScriptedChat]:
    """The paths as names after some steps, and the model that was asked."""
    chat = ScriptedChat(say)
    async with base.store.snapshot() as now:
        ctx = await base.context(now, QUESTION)
        models = Models(ModelSettings(model="m"), base.store, chats={"plan": chat})
        ctx, found = replace(ctx, models=models), Found()
        for step in (LinkEntities(), PprSubgraph(), *steps):
            found = await step(ctx, found)
        keys = ctx.view.keys("entity")
        held = await now.entities([int(keys[at]) for p in found.paths for at in p.entities])
        return [tuple(held[int(keys[at])].name for at in p.entities) for p in found.paths], chat


def items(request: Request) -> dict[int, str]:
    """The numbered list a model was shown."""
    text = request.messages[-1].content
    return {int(n): item for n, item in re.findall(r"^\[(\d+)\] (.*)$", text, re.MULTILINE)}


def choosing(wanted: str) -> Callable[[Request], str]:
    """A model that picks the items which contain a text and end there."""

    def say(request: Request) -> str:
        return json.dumps({"keep": [n for n, item in items(request).items() if wanted in item]})

    return say


def nothing(request: Request) -> str:
    return '{"keep": []}'


def nonsense(request: Request) -> str:
    return "Certainly! Happy to help with that."


async def test_a_model_may_overrule_the_embedder(films: KnowledgeBase) -> None:
    plain, _ = await after(films, nothing, RankedPaths(by="llm"))
    assert plain[0] == ("Grey Coast", "Anton Reeve")
    chosen, chat = await after(
        films,
        choosing("Grey Coast — release year → 1988"),
        RankedPaths(by="llm"),
    )
    assert chosen[0] == ("Grey Coast", "1988") and len(chat.requests) == 1
    assert ("Grey Coast", "Anton Reeve") in chosen  # what it leaves out comes behind


async def test_what_a_model_leaves_out_keeps_its_order(films: KnowledgeBase) -> None:
    plain, _ = await after(films, nothing, RankedPaths())
    chosen, _ = await after(
        films, choosing("Grey Coast — release year → 1988"), RankedPaths(by="llm", max_hop=3)
    )
    others = [path for path in plain if path != ("Grey Coast", "1988")]
    assert [path for path in chosen if path in others[:5]] == others[:5]


async def test_reranking_keeps_the_choice_in_the_embedders_order(films: KnowledgeBase) -> None:
    def all_reversed(request: Request) -> str:
        return json.dumps({"keep": sorted(items(request), reverse=True)})

    reranked, _ = await after(films, all_reversed, RankedPaths(by="llm", rerank=True))
    assert reranked[0] == ("Grey Coast", "Anton Reeve")


async def test_several_rounds_ask_again_about_what_is_left(films: KnowledgeBase) -> None:
    _, chat = await after(films, choosing("directed"), RankedPaths(by="llm", rounds=3))
    shown = [len(items(request)) for request in chat.requests]
    assert len(shown) == 3 and shown[0] > shown[1] >= shown[2] > 0


@pytest.mark.parametrize("say", [nothing, nonsense])
@pytest.mark.parametrize(
    "step",
    one_in_three(
        [
            RankedPaths(by="llm"),
            RankedPaths(by="llm", rounds=2),
            BeamPaths(by="llm"),
            BeamPaths(by="llm", supplement=True, prefilter=4),
            BeamPaths(refine=True),
            BeamPaths(early_stop=True),
        ]
    ),
    ids=repr,
)
async def test_a_model_that_says_nothing_leaves_the_embedders_paths(
    films: KnowledgeBase, step: Step, say: Callable[[Request], str]
) -> None:
    paths, chat = await after(films, say, step)
    assert paths[0] == ("Grey Coast", "Anton Reeve") and chat.requests


async def test_the_beam_goes_where_the_model_points(films: KnowledgeBase) -> None:
    step = BeamPaths(by="llm", width=1, max_hop=2)
    paths, chat = await after(films, choosing("has genre"), step)
    assert len(chat.requests) == 2
    assert {path[1] for path in paths} == {"Drama"}


async def test_a_prefilter_bounds_what_the_model_sees(films: KnowledgeBase) -> None:
    _, chat = await after(films, nothing, BeamPaths(by="llm", prefilter=3))
    assert max(len(items(request)) for request in chat.requests) == 3


async def test_refinement_puts_the_models_paths_first(films: KnowledgeBase) -> None:
    paths, _ = await after(films, choosing("— release year → 1988"), BeamPaths(refine=True))
    assert paths[0] == ("Grey Coast", "1988")


async def test_early_stop_ends_the_search(films: KnowledgeBase) -> None:
    paths, chat = await after(films, lambda _: '{"enough": true}', BeamPaths(early_stop=True))
    assert len(chat.requests) == 1 and max(len(path) for path in paths) == 2


@pytest.mark.parametrize("what", ["nodes", "edges", "triples"])
async def test_pruning_by_a_model(films: KnowledgeBase, what: str) -> None:
    step = Prune(what, keep=8, by="llm")  # type: ignore[arg-type]
    wanted = {"nodes": "1988", "edges": "release year", "triples": "Grey Coast release year 1988"}
    paths, chat = await after(films, choosing(wanted[what]), step, RankedPaths(max_hop=1))
    assert ("Grey Coast", "1988") in paths and chat.requests
    assert ("Grey Coast", "Anton Reeve") not in paths


@pytest.mark.parametrize("recipe", LLM_INSTANCES)
async def test_every_instance_with_a_model_asks_it(films: KnowledgeBase, recipe: str) -> None:
    steps = RECIPES[recipe].steps[2:-1]
    paths, chat = await after(films, choosing("directed"), *steps)
    assert chat.requests and paths[0] == ("Grey Coast", "Anton Reeve")


def test_prompts_have_both_languages() -> None:
    for prompt in (CHOOSE_PROMPT, ENOUGH_PROMPT):
        assert prompt.template.languages() == ["en", "zh"]
        for language in ("en", "zh"):
            prompt.template.render(dict.fromkeys(prompt.needs, "x"), language)
