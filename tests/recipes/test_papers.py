"""Every retriever of the papers over one knowledge base, through the front door."""

import pytest

from clew.engine import KnowledgeBase
from clew.recipes.default import CLEW
from clew.recipes.describe import DEFAULT_NOTES, OURS, describe_recipe_needs, tabulate_steps
from clew.recipes.papers import (
    BM25,
    DUAL_LEVEL_RECIPES,
    GRAPH_R1,
    GRAPH_R1_RELEASED,
    HIPPORAG_RECIPES,
    HYBRID,
    NAIVE,
    PATH_RECIPES,
)
from clew.recipes.propositions import PROPOSITION_RECIPES
from clew.recipes.registry import RECIPES, resolve_recipe, tabulate_recipe
from clew.retrieve.step import Chain

PAPERS = (
    *(*DUAL_LEVEL_RECIPES, *HIPPORAG_RECIPES, GRAPH_R1, GRAPH_R1_RELEASED, *PATH_RECIPES),
    *PROPOSITION_RECIPES,
)
ALL = [recipe.name for recipe in (CLEW, NAIVE, BM25, HYBRID, *PAPERS)]
ASKED = "Who designed Marrow Bridge over the Tarn?"


async def test_every_recipe_finds_the_passage(valley: KnowledgeBase) -> None:
    await valley.builder.make_tree_manager().build(["dual"])
    for name in ALL:
        results = await valley.search(ASKED, recipe=name, k=3)
        found = [passage.doc for passage in results.evidence.chunks]
        # What is asked without the name, alone, does not lead there by words that are hashed.
        assert "bridge" in found[:2] or name == "lightrag-global", name


@pytest.mark.parametrize("recipe", PAPERS, ids=lambda recipe: recipe.name)
def test_every_number_names_its_source(recipe: Chain) -> None:
    rows = tabulate_steps(recipe)
    assert rows
    for row in rows:
        assert row["source"], row
        # A number that is the recipe's own has a note of its own, not only the paper's name.
        if row["value"].lstrip("-").replace(".", "").isdigit():
            assert row["source"] != recipe.source, row
    # And no note is about something that is not there.
    family = [tabulate_steps(other) for other in PAPERS if other.source == recipe.source]
    known = {f"{row['step']}.{row['parameter']}" for some in family for row in some}
    assert {key for key, _ in recipe.notes} <= known | ({"chunk"} if recipe.chunk else set())


def test_a_number_that_no_paper_gives_is_marked_as_ours() -> None:
    for name, recipe in RECIPES.items():
        for row in tabulate_steps(recipe):
            number = row["value"].lstrip("-").replace(".", "", 1).isdigit()
            key = f"{row['step']}.{row['parameter']}"
            if number and name != "bm25" and not recipe.source.startswith("measured here"):
                assert key in dict(recipe.notes) or key in DEFAULT_NOTES or row["source"] == OURS
    rows = tabulate_recipe("graphsearch")
    sources = {row["parameter"]: row["source"] for row in rows if row["step"] == "GraphSearch"}
    assert sources["top_k"].startswith("GraphSearch paper")
    released = {row["parameter"]: row["source"] for row in tabulate_recipe("graphsearch-released")}
    assert released["max_reflections"].endswith("authors' code")
    degree = {
        f"{r['step']}.{r['parameter']}": r["source"] for r in tabulate_steps(GRAPH_R1_RELEASED)
    }
    assert degree["FactsOf.order"] == "Graph-R1 authors' code: by degree"
    assert degree["FactsOf.top_k"].startswith("ours")


@pytest.mark.parametrize(
    ("name", "size", "overlap"),
    [
        ("graph-r1", 1200, 50),
        ("graph-r1-released", 1200, 100),
        ("rograg", 768, 32),
        ("rograg-exact", 768, 32),
        ("graphsearch", 400, 0),
        ("graphsearch-none+lightrag", 400, 0),
        ("lightrag-mix", 1200, 100),
    ],
)
def test_a_recipe_has_the_chunks_of_its_paper(name: str, size: int, overlap: int) -> None:
    chunk = resolve_recipe(name).chunk
    assert chunk is not None and (chunk.size, chunk.overlap) == (size, overlap)
    assert resolve_recipe("react+naive").chunk is None


def test_presets_differ_where_paper_and_code_do() -> None:
    paper, released = RECIPES["graph-r1"], RECIPES["graph-r1-released"]
    values = [
        {(row["step"], row["parameter"]): row["value"] for row in tabulate_steps(recipe)}
        for recipe in (paper, released)
    ]
    assert values[0]["Keep", "facts"] == "5" and values[1]["Keep", "facts"] == "10"
    assert values[0]["FactsOf", "order"] == "'similar'"
    assert values[1]["FactsOf", "order"] == "'degree'"


def test_a_recipe_says_what_it_needs() -> None:
    assert describe_recipe_needs(BM25) == "nothing"
    assert describe_recipe_needs(NAIVE) == "an embedder"
    assert "a model, if any" in describe_recipe_needs(RECIPES["lightrag"])
    assert "clew tree --grow --by dual`), if grown" in describe_recipe_needs(RECIPES["youtu"])
    assert "[rerank]" in describe_recipe_needs(RECIPES["hybrid-rerank"])
