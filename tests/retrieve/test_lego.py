"""The fifteen instances and their modules over a small graph, without a model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from film_graph import best, open_films, take_films

from clew.adapters import HopClassifier, Tuning
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.recipes.describe import tabulate_steps
from clew.recipes.lego import LEGO_RECIPES
from clew.recipes.registry import RECIPES
from clew.retrieve.graph_cache import get_entity_communities, get_forest
from clew.retrieve.linking.link_entities import LinkEntities
from clew.retrieve.paths.beam import BeamPaths
from clew.retrieve.paths.ranked import RankedPaths, StructuralPaths
from clew.retrieve.step import Step
from clew.retrieve.subgraph.extract import (
    AdaptiveSubgraph,
    EgoSubgraph,
    IndexSubgraph,
    PprSubgraph,
    WalkedSubgraph,
)
from clew.retrieve.subgraph.partition import PartitionSubgraph
from clew.retrieve.subgraph.prune import Prune
from clew.types import Found
from conftest import OpenFilled, one_in_three

NAMES = [recipe.name for recipe in LEGO_RECIPES]
TABLE_1 = [f"lego-{n}" for n in range(1, 16)]
OPTIONS = [
    *(f"lego-14-{name}" for name in ("triple", "dynamic", "llms-r", "llms-es")),
    *("lego-15-eems-pf", "lego-15-eems-s"),
    *(f"lego-13-{name}" for name in ("eems-r", "m-llms", "llms-e")),
]
SCORERS = [f"lego-{n}-cross-encoder" for n in (2, 6, 10, 12, 14)]
EXTRACTIONS = [f"lego-{name}" for name in "ego walk adaptive partition index".split()]


@pytest.fixture
async def films(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_films(open_filled)


async def after(base: KnowledgeBase, question: str, *steps: Step) -> Found:
    async with base.store.snapshot() as now:
        found, ctx = Found(), await base.context(now, question)
        for step in steps:
            found = await step(ctx, found)
        return found


def test_table_1_is_the_recipes() -> None:
    assert NAMES == ["lego", *TABLE_1, *EXTRACTIONS, *OPTIONS, *SCORERS, "grag-m"]
    wanted = {
        "max_ent": {"1000"},
        "width": {"8"},
        "max_hop": {"4", "3"},
        "keep": {"64"},
        "top_k": {"32", "100", "1000"},
    }
    for name in TABLE_1:
        for row in tabulate_steps(RECIPES[name]):
            assert row["value"] in wanted.get(row["parameter"], {row["value"]})
            assert row["source"]


@pytest.mark.parametrize("name", EXTRACTIONS)
def test_other_extractions_find_paths_as_lego_12_and_name_their_sources(name: str) -> None:
    assert RECIPES[name].steps[2:] == RECIPES["lego-12"].steps[2:]
    extraction = type(RECIPES[name].steps[1]).__name__
    rows = [row for row in tabulate_steps(RECIPES[name]) if row["step"] == extraction]
    assert rows and all(row["source"] != RECIPES[name].source for row in rows)


BARE = [name for name in NAMES if not name.endswith(("lego-partition", "cross-encoder"))]


@pytest.mark.parametrize("recipe", one_in_three(BARE))
async def test_every_instance_finds_what_one_relation_leads_to(
    films: KnowledgeBase, recipe: str
) -> None:
    found = await films.search("who directed Grey Coast", recipe=recipe)
    ends = {path.entities[-1] for path in found.evidence.paths}
    assert {"Anton Reeve"} <= ends and found.evidence.entities[0].by == "answer"


async def test_structure_alone_orders_by_length_whatever_is_asked(films: KnowledgeBase) -> None:
    asked = [f"{words} Grey Coast" for words in ("who directed", "the release year of")]
    found = [(await films.search(question, recipe="lego-1")).evidence for question in asked]
    assert found[0].paths == found[1].paths
    lengths = [len(path.facts) for path in found[0].paths]
    assert lengths == sorted(lengths)


async def test_a_partition_holds_only_its_community(films: KnowledgeBase) -> None:
    await films.builder.make_tree_manager().build(["leiden"])
    question = "who directed Grey Coast"
    whole = await after(films, question, LinkEntities(), PprSubgraph())
    part = await after(films, question, LinkEntities(), PartitionSubgraph())
    assert {hit.at for hit in part.facts} < {hit.at for hit in whole.facts}
    async with films.store.snapshot() as now:
        ctx = await films.context(now, question)
        forest = get_forest(ctx)
        community = int(get_entity_communities(ctx, "leiden")[part.entities[0].at])
        while forest.parent[community] >= 0:
            community = int(forest.parent[community])
        inside = set(forest.members(community)[0].tolist())
        members = ctx.view.links("fact_entity")
        assert all(set(members.row(hit.at).tolist()) <= inside for hit in part.facts)
    assert (await films.search(question, recipe="lego-partition")).evidence.paths


@pytest.mark.parametrize("recipe", ["lego-2", "lego-6", "lego-12", "lego-14"])
async def test_the_embedder_ranks_what_the_question_asks_first(
    films: KnowledgeBase, recipe: str
) -> None:
    assert (await best(films, "Grey Coast release year", recipe))[0] == "1988"


@pytest.mark.parametrize(
    "extract",
    [
        PprSubgraph(),
        PprSubgraph(exact=True),
        EgoSubgraph(hops=1),
        WalkedSubgraph(walks=64),
        AdaptiveSubgraph(),
        AdaptiveSubgraph(target=0.5),
        IndexSubgraph(top_k=8),
    ],
    ids=lambda step: repr(step)[:40],
)
async def test_every_extraction_leaves_the_facts_near_the_name(
    films: KnowledgeBase, extract: Step
) -> None:
    found = await after(films, "who directed Grey Coast", LinkEntities(), extract)
    again = await after(films, "who directed Grey Coast", LinkEntities(), extract)
    assert found.facts and found.facts == again.facts
    paths = await after(
        films, "who directed Grey Coast", LinkEntities(), extract, StructuralPaths(max_hop=1)
    )
    assert paths.paths


async def test_an_ego_graph_holds_only_what_is_within_its_hops(films: KnowledgeBase) -> None:
    near = await after(films, "who is Peter Vaal", LinkEntities(), EgoSubgraph(hops=1))
    wide = await after(films, "who is Peter Vaal", LinkEntities(), EgoSubgraph(hops=3))
    assert len(near.facts) == 2 < len(wide.facts)


@pytest.mark.parametrize("what", ["nodes", "edges", "triples"])
async def test_pruning_keeps_what_fits(films: KnowledgeBase, what: str) -> None:
    question = "who directed Grey Coast"
    whole = await after(films, question, LinkEntities(), PprSubgraph())
    kept = await after(
        films,
        question,
        LinkEntities(),
        PprSubgraph(),
        Prune(what, keep=12 if what == "nodes" else 1),  # type: ignore[arg-type]
    )
    assert 0 < len(kept.facts) < len(whole.facts)
    if what == "edges":
        async with films.store.snapshot() as now:
            ctx = await films.context(now, question)
            labels = {int(ctx.view.relations[hit.at]) for hit in kept.facts}
        assert len(labels) == 1  # all facts of the one relation, parallel ones and all


async def test_adaptive_recall_follows_the_hops_and_the_stakes(films: KnowledgeBase) -> None:
    async def share(step: AdaptiveSubgraph, hops: int) -> float:
        async with films.store.snapshot() as now:
            ctx = await films.context(now, "who directed Grey Coast")
            bias = np.eye(4, dtype=np.float32)[hops - 1]
            always = HopClassifier(np.zeros((4, len(await ctx.vector())), np.float32), bias)
            ctx.view.memo["tuning"] = Tuning(hops=always)
            return await step.target_share(ctx, await LinkEntities()(ctx, Found()))

    plain, harder = await share(AdaptiveSubgraph(), 1), await share(AdaptiveSubgraph(), 3)
    critical = await share(AdaptiveSubgraph(stakes="critical"), 1)
    assert 0.5 <= plain < critical <= 0.75 and plain < harder <= 0.75
    assert await share(AdaptiveSubgraph(target=0.9), 1) == 0.9


async def test_partitions_need_a_tree_and_say_so(films: KnowledgeBase) -> None:
    with pytest.raises(ConfigError, match="tree"):
        await after(films, "who directed Grey Coast", LinkEntities(), PartitionSubgraph())


@pytest.mark.parametrize("which", ["shortest", "simple"])
async def test_structural_paths_are_simple_and_short_first(
    films: KnowledgeBase, which: str
) -> None:
    step = StructuralPaths(which, max_hop=3)  # type: ignore[arg-type]
    found = await after(films, "who directed Grey Coast", LinkEntities(), step)
    lengths = [len(path.facts) for path in found.paths]
    assert lengths == sorted(lengths) and max(lengths) == 3
    assert all(len(set(path.entities)) == len(path.entities) for path in found.paths)


@pytest.mark.parametrize("scoring", ["path", "triple", "steps"])
@pytest.mark.parametrize("pruning", ["fixed", "dynamic"])
async def test_the_beam_in_all_its_variants(
    films: KnowledgeBase, scoring: str, pruning: str
) -> None:
    step = BeamPaths(scoring=scoring, pruning=pruning)  # type: ignore[arg-type]
    found = await after(films, "who directed Grey Coast", LinkEntities(), PprSubgraph(), step)
    assert found.paths and len(found.paths) <= 32


async def test_modules_work_over_a_base_built_from_text(valley: KnowledgeBase) -> None:
    question = "Where was the designer of Marrow Bridge born?"
    await valley.builder.make_tree_manager().build(["leiden"])
    for recipe in (*BARE, "lego-partition"):
        results = await valley.search(question, recipe=recipe)
        assert results.evidence.paths, recipe
        assert {p.doc for p in results.evidence.chunks} & {"bridge", "ilse"}, recipe
    # Prepared subgraph or none, sentences stand for relations.
    found = await after(valley, question, LinkEntities(), RankedPaths(max_hop=2))
    assert all(len(path.facts) <= 2 for path in found.paths)


async def test_an_empty_base_says_that_nothing_is_known(base: KnowledgeBase) -> None:
    with pytest.raises(Exception, match="names nothing in this knowledge base"):
        await base.search("who directed Grey Coast", recipe="lego-12")


async def test_the_same_question_gives_the_same_paths(films: KnowledgeBase) -> None:
    question = "which films share the director of Grey Coast"
    first = await films.search(question, recipe="lego-14")
    films.forget_view()
    second = await films.search(question, recipe="lego-14")
    assert first.evidence.paths == second.evidence.paths


async def test_parallel_facts_both_reach_evidence(base: KnowledgeBase, tmp_path: Path) -> None:
    rows = "A Film|directed_by|Ann Lee\nA Film|written_by|Ann Lee\nA Film|has_genre|Drama\n"
    await take_films(base, tmp_path, rows)
    found = await base.search("who made A Film", recipe="lego-1")
    texts = {fact for path in found.evidence.paths for fact in path.facts}
    assert {"A Film directed by Ann Lee", "A Film written by Ann Lee"} <= texts


def test_steps_print_as_they_are_written() -> None:
    step = replace(PprSubgraph(), max_ent=10)
    assert repr(step).startswith("PprSubgraph(max_ent=10") and step == PprSubgraph(max_ent=10)
    assert np.isfinite(step.damping)
