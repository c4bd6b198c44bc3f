"""Search over shards ranks as search on one machine."""

import pytest

from clew.cluster.shards import SHARDED_RECIPES, open_local_shards
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from conftest import document, stream

QUESTIONS = (
    "Where was the designer of Marrow Bridge born?",
    "Who described the mosses of the Grey Coast?",
    "town town town",
    "a word that is nowhere: zzyzx",
)


@pytest.mark.parametrize("count", [1, 2, 5])
async def test_shards_rank_as_one_machine(valley: KnowledgeBase, count: int) -> None:
    await valley.take(stream([document(f"n{n}", f"Hamlet {n} lies by a town.") for n in range(40)]))
    sharded = await open_local_shards(valley, count)
    for recipe in SHARDED_RECIPES:
        for question in QUESTIONS:
            whole = await valley.search(question, recipe=recipe)
            parts = await sharded.search(question, recipe=recipe)
            assert [one.id for one in parts.evidence.chunks] == [
                one.id for one in whole.evidence.chunks
            ]
            assert [one.score for one in parts.evidence.chunks] == pytest.approx(
                [one.score for one in whole.evidence.chunks], rel=1e-5
            )


async def test_a_recipe_that_walks_says_that_it_needs_the_whole(valley: KnowledgeBase) -> None:
    sharded = await open_local_shards(valley, 2)
    with pytest.raises(ConfigError, match="needs the whole graph"):
        await sharded.search("Who?", recipe="hipporag2")


async def test_shards_of_an_older_generation_are_refused(valley: KnowledgeBase) -> None:
    sharded = await open_local_shards(valley, 2)
    await valley.remove(["moss"])
    with pytest.raises(ConfigError, match="older generation"):
        await sharded.search("Who?")
