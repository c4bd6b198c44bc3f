"""Relation paths on graphs of several kinds, and who scores them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from film_graph import best, open_films, take_films

from clew.config import ModelSettings
from clew.engine import KnowledgeBase
from clew.llm.embed import EmbedRole, Vectors
from clew.models import Models
from clew.recipes.registry import RECIPES
from clew.retrieve.linking.link_entities import LinkEntities
from clew.retrieve.paths.beam import BeamPaths
from clew.retrieve.paths.ranked import RankedPaths
from clew.retrieve.paths.relation_paths import (
    KeepAllPaths,
    prepare_search,
    search_relation_paths,
)
from clew.retrieve.subgraph.partition import PartitionSubgraph
from clew.text.names import head_type, read_relation
from clew.types import Found
from conftest import OpenFilled

FAMILY = """\
Alda Stein|/people/person/mother|Bela Stein
Alda Stein|/people/person/spouse|Carl Horn
Bela Stein|/people/person/mother|Dora Kamm
Bela Stein|/people/person/gender|female
Bela Stein|/people/person/profession|painter
Carl Horn|/people/person/mother|Edda Horn
Carl Horn|/people/person/spouse|Alda Stein
Carl Horn|/people/person/gender|male
Dora Kamm|/people/person/profession|lawyer
Edda Horn|/people/person/profession|miller
Signal|/music/recording/versions|Signal
painter|/people/profession/people|Bela Stein
"""


async def fill_family(base: KnowledgeBase) -> None:
    await take_films(base, Path(base.settings.kb).parent, FAMILY)


@pytest.fixture
async def family(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_films(open_filled, fill_family)


COUPLE = """\
Ida Brun|people.person.spouse_s|Jon Brun
Ida Brun|people.person.profession|baker
Jon Brun|people.person.profession|sailor
Jon Brun|people.person.gender|male
Jon Brun|people.person.employer_s|Tern Line
Tern Line|organization.organization.headquarters|Skagen
Skagen|location.location.country|Denmark
Denmark|location.country.currency_used|krone
Denmark|location.country.head_of_state|Mette Falk
"""


async def test_plain_cosine_takes_no_step_twice_and_the_stored_direction(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    pairs = [("Ada Lind", "Ole Lind"), ("Eva Moe", "Per Moe"), ("Ida Lie", "Ida Brun")]
    others = "".join(
        f"{one}|people.person.spouse_s|{other}\n{one}|people.person.gender|female\n"
        f"{one}|people.person.profession|baker\n{other}|people.person.gender|male\n"
        for one, other in pairs
    )
    many = await take_films(base, tmp_path, COUPLE + others)
    question = "What is the profession of the spouse of Ida Brun?"
    assert (await best(many, question, "lego-12"))[0] == "sailor"


async def test_a_way_back_by_the_same_relation_leads_to_others(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    films = await take_films(base, tmp_path)
    async with films.store.snapshot() as now:
        ctx = await films.context(now, "which films share the director of Grey Coast")
        search = prepare_search(ctx, await LinkEntities()(ctx, Found()))
        paths = await search_relation_paths(search, 2, KeepAllPaths(search.scorer))
        ends = {end for at in range(len(paths.codes)) for end in paths.end_entities(at).tolist()}
        found = await now.entities([int(ctx.view.keys("entity")[end]) for end in ends])
    names = {one.name for one in found.values()}
    assert "Night Ferry" in names and "Grey Coast" not in names


@pytest.mark.parametrize(
    ("name", "short", "head"),
    [
        ("/people/person/place_of_birth", "place of birth", "person"),
        ("people.person.place_of_birth", "place of birth", "person"),
        ("__people__person__place_of_birth", "place of birth", "person"),
        ("/people/person/spouse_s", "spouse", "person"),
        ("owner/operator", "owner operator", ""),
        ("speed_m_s", "speed m s", ""),
        ("starred_actors", "starred actors", ""),
        ("is the mother of", "is the mother of", ""),
        ("http://example.org/ontology/birthPlace", "birth place", ""),
        ("...", "...", ""),
    ],
)
def test_the_last_segment_names_a_relation(name: str, short: str, head: str) -> None:
    assert (read_relation(name), head_type(name)) == (short, head)


async def test_words_of_relations_are_no_names_in_lower_case(family: KnowledgeBase) -> None:
    rows = "profession|/people/person/gender|none\nZed|/people/person/profession|baker\n"
    file = family.settings.kb.parent / "more.txt"
    file.write_text(rows, encoding="utf-8")
    await family.import_graph(file)
    assert (await best(family, "what is the profession of zed", "lego-12"))[0] == "baker"


async def test_a_graph_of_one_relation_answers(base: KnowledgeBase, tmp_path: Path) -> None:
    one = await take_films(base, tmp_path, "A Rock|near|B Hill\nB Hill|near|C Lake\n")
    assert (await best(one, "what is near A Rock", "lego-12"))[0] == "B Hill"


@pytest.mark.parametrize("name", [f"lego-{n}" for n in range(1, 16)])
def test_rows_of_table_1_have_no_options(name: str) -> None:
    for step in RECIPES[name].steps:
        if isinstance(step, RankedPaths):
            assert (step.rerank, step.rounds, step.scorer) == (False, 1, "cosine")
        if isinstance(step, BeamPaths):
            assert not (step.supplement or step.refine or step.early_stop or step.prefilter)
            assert (step.scoring, step.pruning) == ("path", "fixed")


class Prefers:
    """A reranker that likes the texts with one word."""

    name = "prefers"

    def __init__(self, word: str) -> None:
        self.word, self.asked = word, ""

    async def __call__(self, question: str, texts: Sequence[str], /) -> np.ndarray:
        self.asked = question
        return np.array([4.0 * (text == self.word) for text in texts], np.float32)


async def test_a_cross_encoder_scores_texts_of_paths(family: KnowledgeBase) -> None:
    family.rerank = Prefers("profession of mother")
    found = await best(family, "what about Alda Stein?", "lego-12-cross-encoder")
    assert found[0] == "painter" and "alda" not in family.rerank.asked


class Says:
    """A language model as an embedder: one text means the question, the others nothing."""

    name, dim = "says", 2

    def __init__(self, text: str) -> None:
        self.text = text

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        near = [text in (self.text, "what about ?") for text in texts]
        return np.array([[3.0, 0.0] if one else [0.0, 3.0] for one in near], np.float32)


async def test_embeddings_of_a_language_model_rank_paths(family: KnowledgeBase) -> None:
    models = Models(ModelSettings(model="m"), family.store)
    models.embedders["plan"] = Says("gender of spouse")
    async with family.store.snapshot() as now:
        ctx = replace(await family.context(now, "what about Alda Stein?"), models=models)
        found = Found()
        for step in RECIPES["lego-13-llms-e"].steps:
            found = await step(ctx, found)
        keys = ctx.view.keys("entity")
        key = int(keys[found.entities[0].at])
        assert (await now.entities([key]))[key].name == "male"


async def test_a_partition_looks_at_no_other_part(family: KnowledgeBase) -> None:
    await family.builder.make_tree_manager().build(["leiden"])
    async with family.store.snapshot() as now:
        ctx = await family.context(now, "the gender of Alda Stein's mother")
        found = await PartitionSubgraph()(ctx, await LinkEntities()(ctx, Found()))
        assert found.facts and "lego ground" not in ctx.view.memo
