"""Whole recipes on graphs small enough that their results can be worked out by hand."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
from plain_graph import Chosen, joins, take_graph

from clew.config import ROLES, ModelSettings
from clew.engine import KnowledgeBase
from clew.models import Models
from clew.recipes.describe import tabulate_steps
from clew.recipes.registry import RECIPES
from clew.testing.fakes import ScriptedChat
from clew.types import Evidence
from conftest import VALLEY

ASKED = "Where was Alpha born?"
WITHOUT_NAME = "Where was born?"


async def found(base: KnowledgeBase, recipe: str, question: str = ASKED) -> Evidence:
    return (await base.search(question, recipe=recipe)).evidence


def numbers(recipe: str) -> dict[str, str]:
    return {
        f"{row['step']}.{row['parameter']}": row["value"] for row in tabulate_steps(RECIPES[recipe])
    }


# -- LightRAG


@pytest.fixture
async def levels(base: KnowledgeBase) -> KnowledgeBase:
    """What is named leads to one passage, what is asked to the other."""
    base.embed = Chosen(
        {
            ASKED: [0, 0, 1],
            "Alpha": [1],
            WITHOUT_NAME: [0, 1],
            "Gamma born in Delta": [0, 0.9],
            "Alpha met Beta": [0, 0.1],
            "Text of a.": [0, 0, 0.2],
            "Text of b.": [0, 0, 0.8],
        }
    )
    return await take_graph(
        base, {"a": [joins("Alpha", "met", "Beta")], "b": [joins("Gamma", "born in", "Delta")]}
    )


async def test_lightrag_takes_the_two_levels_in_turns(levels: KnowledgeBase) -> None:
    local = await found(levels, "lightrag-local")
    assert [entity.name for entity in local.entities] == ["Alpha"]  # the others are below 0.2
    assert [fact.text for fact in local.facts] == ["Alpha met Beta"]
    over = await found(levels, "lightrag-global")
    assert [fact.text for fact in over.facts] == ["Gamma born in Delta"]
    assert {entity.name for entity in over.entities} == {"Gamma", "Delta"}
    both = await found(levels, "lightrag")
    assert [fact.text for fact in both.facts] == ["Alpha met Beta", "Gamma born in Delta"]
    names = [entity.name for entity in both.entities]
    assert names[0] == "Alpha" and set(names[1:]) == {"Gamma", "Delta"}
    # b is nearer to the question than a, and in both levels' passages it comes first.
    assert [passage.doc for passage in both.chunks] == ["b", "a"]


def test_lightrag_keeps_to_its_budgets() -> None:
    held = numbers("lightrag")
    assert (held["Budget.entities"], held["Budget.facts"]) == ("6000", "8000")
    assert held["Budget.total"] == "30000"
    assert (held["NearEntities.top_k"], held["NearEntities.least"]) == ("40", "0.2")


async def test_lightrag_cuts_what_is_over_its_budget(base: KnowledgeBase) -> None:
    base.embed = Chosen({ASKED: [1], "Alpha": [1], WITHOUT_NAME: [1]})
    long = " ".join(["word"] * 1500)  # about 2,000 tokens as prompts are counted
    facts = [joins("Alpha", f"{long} {n}", f"Beta {n}") for n in range(40)]
    await take_graph(base, {"a": facts})
    got = await found(base, "lightrag-local")
    # A fact counts with at most 300 tokens, as much as a prompt shows of it.
    assert 20 <= len(got.facts) < 40


# -- PathRAG


async def test_pathrag_ranks_paths_by_reliability(base: KnowledgeBase) -> None:
    base.embed = Chosen({})
    await take_graph(
        base,
        {
            "a": [joins("Ada", "met", "Bob")],
            "b": [joins("Ada", "met", "Cid"), joins("Cid", "saw", "Dora")],
        },
    )
    got = await found(base, "pathrag", "What joins Ada, Bob and Dora?")
    scores = [path.score for path in got.paths]
    assert scores == sorted(scores, reverse=True) and len(scores) > 1
    # Every pair is a pair of seeds here; a path of one edge loses nothing on its way.
    assert scores[0] == pytest.approx(1.0)


# -- HippoRAG 2


async def test_hipporag2_in_a_triangle(base: KnowledgeBase) -> None:
    base.embed = Chosen({})
    await take_graph(base, {"a": [joins("Ada", "met", "Bob")]})
    got = await found(base, "hipporag2", "Whom did Ada meet?")
    # Both ends begin with the same weight; the one passage is nearest and farthest: none.
    # e = ½·½ + ½(e/2 + p/2), p = ½(e/2 + e/2) = e/2, 2e + p = 1: e = 0.4, p = 0.2.
    assert got.chunks[0].score == pytest.approx(0.2, abs=1e-4)
    assert [entity.score for entity in got.entities] == pytest.approx([0.4, 0.4], abs=1e-4)
    held = numbers("hipporag2")
    assert (held["Ppr.damping"], held["Ppr.passage"]) == ("0.5", "0.05")
    assert (held["Ppr.synonym"], held["NearFacts.top_k"]) == ("0.8", "5")


# -- Graph-R1


async def test_graph_r1_fuses_by_reciprocal_rank(base: KnowledgeBase) -> None:
    base.embed = Chosen(
        {
            ASKED: [0, 1],
            **{name: [0.9] for name in ("Alpha", "Beta", "Aleph", "Alif", "Alfa")},
            **{name: [-0.9] for name in ("Xi", "Psi")},
            "Alpha met Beta": [0, 0.8],
            "Aleph met Alif": [0, 0.7],
            "Alif met Alfa": [0, 0.6],
            "Xi met Psi": [0, 0.9],
        }
    )
    await take_graph(
        base,
        {
            "a": [joins("Alpha", "met", "Beta"), joins("Aleph", "met", "Alif")],
            "b": [joins("Alif", "met", "Alfa"), joins("Xi", "met", "Psi")],
        },
    )
    got = await found(base, "graph-r1")
    assert {fact.text: fact.score for fact in got.facts} == pytest.approx(
        {
            "Alpha met Beta": 1 / 1 + 1 / 2,
            "Xi met Psi": 1 / 1,  # no entity of the question: absent there
            "Aleph met Alif": 1 / 2 + 1 / 3,
            "Alif met Alfa": 1 / 3 + 1 / 4,
        }
    )
    assert [fact.text for fact in got.facts][:2] == ["Alpha met Beta", "Xi met Psi"]


# -- ROGRAG


async def test_an_exact_relation_is_found_however_far_its_vector(levels: KnowledgeBase) -> None:
    said = json.dumps({"names": ["Nobody"], "topics": ["Born In"]})
    models = Models(ModelSettings(model="m"), levels.store)
    models.chats = dict.fromkeys(ROLES, ScriptedChat(lambda _: said))
    levels.models = models
    got = await found(levels, "rograg-exact")
    assert [fact.text for fact in got.facts] == ["Gamma born in Delta"]
    assert [passage.doc for passage in got.chunks] == ["b"]


# -- reranking


class ByLength:
    """Finds short texts best."""

    name = "by length"

    async def __call__(self, question: str, texts: Sequence[str], /) -> np.ndarray:
        return np.array([-len(text) for text in texts], np.float32)


async def test_ids_and_texts_stay_paired_after_reranking(valley: KnowledgeBase) -> None:
    valley.rerank = ByLength()
    texts = {one.names[0]: one for one in VALLEY}
    got = (await valley.search("a town on the coast", recipe="hybrid-rerank")).evidence
    assert len(got.chunks) == len(VALLEY)
    for passage in got.chunks:
        source = texts[passage.doc]
        assert passage.text in source.text and passage.title == source.title
        assert -passage.score == len(f"{passage.title}\n{passage.text}")
    scores = [passage.score for passage in got.chunks]
    assert scores == sorted(scores, reverse=True)
