"""Chooses the default recipe by what the knowledge base contains."""

import numpy as np

from clew.ingest.graphs.again import KNOWN
from clew.store.protocol import Store
from clew.view import View

ON_GRAPHS = "lego-12"
"""The best recipe on a graph of those that need no model (docs/lego.md)."""
WHY = (
    f"by {ON_GRAPHS}, as all there is here is an imported graph and no model is set "
    "(--recipe takes another)"
)
_NEARLY_ALL = 0.95  # of the facts
_MEMO = "only an imported graph"


async def only_a_graph(view: View, store: Store) -> bool:
    """Tell whether everything here was imported as a graph.

    Its passages are lists of triples: there is no text to read, so the sentence-weighted walk does
    not apply.
    """
    if _MEMO not in view.memo:
        view.memo[_MEMO] = _has_relations(view) and await _all_imported(store)
    return bool(view.memo[_MEMO])


def _has_relations(view: View) -> bool:
    count = int(np.count_nonzero(view.relations >= 0))
    return count > 0 and count >= _NEARLY_ALL * view.count("fact")


async def _all_imported(store: Store) -> bool:
    """Tell whether every document is a part of a graph file."""
    files = {name.rpartition("#")[0] for name in await store.sources()}
    return files == set(await store.recall(KNOWN, sorted(files)))
