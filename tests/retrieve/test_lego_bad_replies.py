"""Graph modules with a model that answers badly: what is left is defined, and prompts are short."""

import json
from collections.abc import Callable

import pytest
from film_graph import open_films
from test_lego_models import LLM_INSTANCES, after, items

from clew.engine import KnowledgeBase
from clew.llm.chat import Request
from clew.llm.openai_api import estimate_prompt_tokens
from clew.recipes.registry import RECIPES
from clew.retrieve.model_choice import (
    CHOOSE_PROMPT,
    ENOUGH_PROMPT,
    fit_into_prompt,
    format_numbered_list,
)
from clew.retrieve.paths.beam import BeamPaths
from clew.retrieve.paths.ranked import RankedPaths
from clew.retrieve.step import Step
from clew.retrieve.subgraph.prune import Prune
from conftest import OpenFilled, one_in_three

SMALL = 4096  # tokens a small model reads in all
REPLIES = {
    "nothing": '{"keep": [], "enough": false}',
    "silence": "",
    "nonsense": "Certainly! Happy to help with that.",
    "unknown ids": '{"keep": [0, -3, 129, 99999], "enough": false}',
    "another shape": '{"paths": ["Grey Coast"], "keep": null, "enough": "perhaps"}',
    "cut off": '{"keep": [',
    "a loop": '{"keep": [' + "7777, " * 2000,
}
STEPS: list[tuple[Step, ...]] = [
    (Prune("nodes", by="llm"), RankedPaths()),
    (Prune("edges", by="llm"), RankedPaths()),
    (Prune("triples", by="llm"), RankedPaths()),
    (RankedPaths(by="llm", rounds=2),),
    (BeamPaths(by="llm", supplement=False),),
    (BeamPaths(refine=True),),
    (BeamPaths(early_stop=True),),
]


@pytest.fixture
async def films(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_films(open_filled)


def saying(text: str) -> Callable[[Request], str]:
    return lambda _: text


@pytest.mark.parametrize(
    "steps",  # one that prunes and one that chooses paths; the others alike in `make test-all`
    [
        pytest.param(one, marks=() if at in (0, 5) else pytest.mark.slow)
        for at, one in enumerate(STEPS)
    ],
)
async def test_bad_replies_leave_what_the_embedder_chose(
    films: KnowledgeBase, steps: tuple[Step, ...]
) -> None:
    plain, _ = await after(films, saying(REPLIES["nothing"]), *steps)
    assert plain[0] == ("Grey Coast", "Anton Reeve")
    for name, text in REPLIES.items():
        paths, chat = await after(films, saying(text), *steps)
        assert paths == plain and chat.requests, name


async def test_known_ids_count_among_unknown_ones_and_each_once(films: KnowledgeBase) -> None:
    def say(request: Request) -> str:
        [wanted] = [n for n, item in items(request).items() if "Coast — release year → 1" in item]
        return json.dumps({"keep": [999, wanted, -1, wanted, 0]})

    paths, _ = await after(films, say, RankedPaths(by="llm"))
    assert paths[0] == ("Grey Coast", "1988") and paths.count(paths[0]) == 1


@pytest.mark.parametrize("recipe", one_in_three(LLM_INSTANCES))
async def test_every_instance_outlives_silence(films: KnowledgeBase, recipe: str) -> None:
    paths, chat = await after(films, saying(""), *RECIPES[recipe].steps[2:-1])
    assert chat.requests and paths[0] == ("Grey Coast", "Anton Reeve")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_prompts_fit_a_small_model(language: str) -> None:
    """The longest question, the longest list and the reply, with room to spare."""
    many = ["Grey Coast — starred actors → Clara Lindqvist " + "x" * 400] * 1000
    question = "who directed the film that starred the writer of Grey Coast " * 33
    listed = format_numbered_list(fit_into_prompt(many))
    choose = {"question": question, "kind": "paths", "keep": "32", "items": listed}
    for prompt, given in (
        (CHOOSE_PROMPT, choose),
        (ENOUGH_PROMPT, {"question": question, "paths": listed}),
    ):
        assert estimate_prompt_tokens(prompt.template.render(given, language)) + 400 < SMALL


def test_what_is_shown_is_the_beginning_and_never_empty() -> None:
    short = [f"item {n}" for n in range(200)]
    assert list(fit_into_prompt(short)) == short[:128]
    assert len(fit_into_prompt(["x" * 300] * 128)) == 20
    assert fit_into_prompt(["x" * 10_000]) == ["x" * 10_000] and not fit_into_prompt([])
