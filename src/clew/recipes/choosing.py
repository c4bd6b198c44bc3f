"""Chooses the default recipe by what the knowledge base contains."""

import numpy as np

from clew.ingest.graphs.again import IMPORTED_GRAPHS
from clew.store.protocol import Store
from clew.view import View

GRAPH_RECIPE = "lego-12"
"""The best recipe on a graph of those that need no model (docs/lego.md)."""
GRAPH_RECIPE_NOTE = (
    f"by {GRAPH_RECIPE}, as all there is here is an imported graph and no model is set "
    "(--recipe takes another)"
)
_MIN_RELATION_SHARE = 0.95  # of the facts
_MEMO_KEY = "only an imported graph"


async def is_only_graph(view: View, store: Store) -> bool:
    """Tell whether everything here was imported as a graph.

    Its passages are lists of triples: there is no text to read, so the sentence-weighted walk does
    not apply.
    """
    if _MEMO_KEY not in view.memo:
        view.memo[_MEMO_KEY] = _has_relations(view) and await _is_all_imported(store)
    return bool(view.memo[_MEMO_KEY])


def _has_relations(view: View) -> bool:
    count = int(np.count_nonzero(view.relations >= 0))
    return count > 0 and count >= _MIN_RELATION_SHARE * view.count("fact")


async def _is_all_imported(store: Store) -> bool:
    """Tell whether every document is a part of a graph file."""
    files = {name.rpartition("#")[0] for name in await store.sources()}
    return files == set(await store.get(IMPORTED_GRAPHS, sorted(files)))
