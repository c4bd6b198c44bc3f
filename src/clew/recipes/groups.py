"""Recipes in groups, for menus: some forty that differ in kind, each with its variants."""

from collections.abc import Mapping

GROUPS: Mapping[str, tuple[str, ...]] = {
    "house": ("clew", "small-to-big"),
    "baselines": ("naive", "bm25", "hybrid", "llm", "reader", "react", "ircot"),
    "agents": ("searcher", "graphsearch", "youtu", "graph-r1", "rograg"),
    "papers": (
        *("lightrag", "pathrag", "hypergraphrag", "hipporag", "hipporag2", "minirag", "proprag"),
        *("linearrag", "gfm-rag", "msgraphrag-local", "msgraphrag-global", "raptor", "e2graphrag"),
        *("rograg-dual", "lego", "grag-m", "g-retriever", "tog"),
    ),
}
"""The names that menus show. Others are variants of these, or the user's own."""
_GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}
_HEADS = {"keywords": "bm25", "own-facts": "graph-r1", "rograg-expanded": "rograg-dual"} | {
    f"rograg-{name}": "rograg-dual" for name in ("exact", "12k")
}
"""The heads of variants whose names do not begin with them."""


def find_head(name: str) -> str:
    """Return the recipe whose variant one is, itself where it is none: lego of lego-14-dynamic."""
    if name in _GROUP_OF:
        return name
    behind = [head for head in _GROUP_OF if name.startswith(f"{head}-")]
    return _HEADS.get(name) or max(behind, key=len, default=name)


def find_group(name: str) -> str:
    """Return the group of a recipe, or of what it is a variant of; `own` for the user's."""
    return _GROUP_OF.get(find_head(name), "own")
