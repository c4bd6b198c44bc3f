"""Named methods, as values."""

from clew.errors import ConfigError
from clew.recipes.basic import BM25, HYBRID, NAIVE
from clew.recipes.house import CLEW
from clew.retrieve.step import Chain

RECIPES: dict[str, Chain] = {recipe.name: recipe for recipe in (CLEW, NAIVE, BM25, HYBRID)}


def recipe_named(name: str) -> Chain:
    """Look a recipe up by name."""
    try:
        return RECIPES[name]
    except KeyError:
        raise ConfigError(f"no recipe {name!r}; have {', '.join(RECIPES)}") from None
