"""Recipes in groups: few names in menus, all names known, variants by parameter."""

import pytest

from clew.errors import ConfigError
from clew.recipes.agents import AGENTS
from clew.recipes.configure import read_change
from clew.recipes.registry import (
    BUILT_IN,
    BUILT_IN_NAMES,
    GROUPS,
    RECIPES,
    describe_recipes,
    find_variant,
    list_heads,
    resolve_recipe,
)


def test_menus_show_about_forty_names_and_every_other_is_a_variant_of_one() -> None:
    heads = list_heads(BUILT_IN)
    assert len(heads) == len(set(heads)) <= 40
    assert set(heads) == {name for names in GROUPS.values() for name in names}
    for name in BUILT_IN_NAMES:
        assert name in heads or find_variant(name) in heads, name


def test_every_row_says_its_group() -> None:
    rows = describe_recipes(BUILT_IN)
    assert {row["group"] for row in rows} == set(GROUPS)
    dynamic = next(row for row in rows if row["name"] == "lego-14-dynamic")
    assert (dynamic["group"], dynamic["variant_of"]) == ("papers", "lego")


@pytest.mark.parametrize("name", ["lego-7", "lightrag-mix", "youtu-10", "graphsearch-qd-cr"])
def test_old_names_still_work(name: str) -> None:
    assert resolve_recipe(name).retrieve.steps
    assert name in (RECIPES | AGENTS)


def test_a_parameter_is_found_by_its_field_alone() -> None:
    assert read_change(resolve_recipe("graphsearch"), "top_k=7") == ("GraphSearch.top_k", 7)
    assert read_change(resolve_recipe("lego"), "scorer=cross-encoder")[1] == "cross-encoder"
    assert read_change(resolve_recipe("hipporag2"), "Ppr.damping=0.8") == ("Ppr.damping", 0.8)
    for wrong in ("top_k", "=3", "topk=3"):
        with pytest.raises(ConfigError, match="--set"):
            read_change(resolve_recipe("graphsearch"), wrong)
