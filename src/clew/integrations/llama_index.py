"""A LlamaIndex retriever: `ClewRetriever(clew.open("kb"), recipe="clew", k=5)`."""

from clew.integrations.passages import (
    Searcher,
    describe_passage,
    find_passages,
    find_passages_async,
    naming_extra,
)
from clew.types import Passage

with naming_extra("llama-index"):
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode


class ClewRetriever(BaseRetriever):
    """Retrieves passages of a knowledge base by a recipe, as scored nodes."""

    def __init__(self, kb: Searcher, *, recipe: str | None = None, k: int = 10) -> None:
        super().__init__()
        self._kb, self._recipe, self._k = kb, recipe, k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = find_passages(self._kb, query_bundle.query_str, self._recipe, self._k)
        return [_to_node(one) for one in found]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = await find_passages_async(self._kb, query_bundle.query_str, self._recipe, self._k)
        return [_to_node(one) for one in found]


def _to_node(passage: Passage) -> NodeWithScore:
    node = TextNode(id_=passage.id, text=passage.text, metadata=describe_passage(passage))
    return NodeWithScore(node=node, score=passage.score)
