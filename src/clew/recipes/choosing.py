"""The recipe that answers where none is named: what fits the knowledge base as it is."""

import numpy as np

from clew.ingest.graphs.again import KNOWN
from clew.store.protocol import Store
from clew.view import View

ON_GRAPHS = "lego-12"
"""Of the recipes that need no model the best one on a graph (docs/lego.md)."""
WHY = (
    f"by {ON_GRAPHS}, as all there is here is an imported graph and no model is set "
    "(--recipe takes another)"
)
_NEARLY_ALL = 0.95  # of the facts
_MEMO = "only an imported graph"


async def only_a_graph(view: View, store: Store) -> bool:
    """Whether everything here was imported as a graph.

    Its facts lead from name to name and its passages are lists of them: there is no text to read,
    and a walk weighed by sentences has none to weigh.
    """
    if _MEMO not in view.memo:
        view.memo[_MEMO] = _has_relations(view) and await _all_imported(store)
    return bool(view.memo[_MEMO])


def _has_relations(view: View) -> bool:
    related = int(np.count_nonzero(view.relations >= 0))
    return related > 0 and related >= _NEARLY_ALL * view.count("fact")


async def _all_imported(store: Store) -> bool:
    """Whether every document is a part of a graph file."""
    files = {name.rpartition("#")[0] for name in await store.sources()}
    return files == set(await store.recall(KNOWN, sorted(files)))
