"""Entity pairs: two names belong together if few facts are between them."""

from dataclasses import replace
from typing import Any, cast

import pytest
from plain_graph import after, docs_of, names_of, says, take_graph

from clew.context import Context
from clew.engine import KnowledgeBase
from clew.retrieve.communities.summary_tree import EntityPairs
from clew.types import Found, Hit


class FindNothing:
    """The fallback for questions without a pair: finds nothing."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        return replace(found, chunks=())


@pytest.mark.parametrize(("hops", "docs"), [(4, ["both"]), (2, ["both"]), (1, [])])
async def test_a_passage_with_both_names_is_found_within_the_hops(
    base: KnowledgeBase, hops: int, docs: list[str]
) -> None:
    await take_graph(
        base,
        {
            "first": [says("Alpha met Beta.", "Alpha", "Beta")],
            "second": [says("Beta met Gamma.", "Beta", "Gamma")],
            "both": [says("Alpha rests.", "Alpha"), says("Gamma rests.", "Gamma")],
            "far": [says("Delta rests.", "Delta")],
        },
    )
    names = await names_of(base, range(4))
    given = Found(entities=tuple(Hit(names.index(n), 1.0, "given") for n in ("Alpha", "Gamma")))
    step = EntityPairs(hops=hops, otherwise=cast(Any, FindNothing()))
    got = await after(base, "?", step, found=given)
    assert await docs_of(base, got) == docs
