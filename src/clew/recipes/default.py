"""The default recipe `clew`, those of its kind, and when another one takes its place."""

import numpy as np

from clew.index.view import View
from clew.ingest.document_names import GRAPHS_KIND
from clew.retrieve.blend import Blended
from clew.retrieve.linking.link_names import LinkNames
from clew.retrieve.lookup import Lexical
from clew.retrieve.rank import fuse_chunks
from clew.retrieve.sections import BestSentence, RankSections, WholeSections
from clew.retrieve.spread import Spread
from clew.retrieve.step import Chain, Fork
from clew.retrieve.tidy import TidyQuestion
from clew.retrieve.walk import Walk
from clew.store.protocol import Store

CLEW = Chain(
    "clew",
    (TidyQuestion(Chain("", (LinkNames(), Blended(Walk(missing=0.5)), Spread()))),),
    about="links the question's names, walks between passages by the best fitting sentences, and "
    "mixes in plain relevance as far as names do not lead on",
    source="measured here (docs/recipes.md)",
)
CLEW_BEAM = Chain(
    "clew-beam",
    (TidyQuestion(Chain("", (LinkNames(), Blended(Walk(missing=0.5, beam=0.1)), Spread()))),),
    about="as `clew`, and a beam of hypotheses: paths of passages, each scored as a whole; for "
    "questions of three and four hops",
    source="measured here (docs/decisions/0016-retrieval-that-holds.md)",
)
SMALL_TO_BIG = Chain(
    "small-to-big",
    (
        Fork((BestSentence(top_k=100), Lexical(top_k=100, content_only=True)), join=fuse_chunks),
        RankSections(section=0.2, page=0.1),
        WholeSections(first=5, around=1),
    ),
    about="passages by their best sentence and by words, ranked with what their section and page "
    "say, and given with the passages before and after",
    source="measured here (docs/decisions/0016-retrieval-that-holds.md)",
)
GRAPH_RECIPE = "lego-12"
"""The best recipe on a graph of those that need no model (docs/lego.md)."""
GRAPH_RECIPE_NOTE = (
    f"found with {GRAPH_RECIPE}, because the knowledge base holds only an imported graph and no "
    "model is configured; choose another recipe with --recipe"
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
    files = {name.rpartition("#")[0] for name in await store.sources()}
    return files == set(await store.get(GRAPHS_KIND, sorted(files)))
