"""A LangChain retriever: `ClewRetriever(kb=clew.open("kb"), recipe="clew", k=5)`."""

from typing import Any

from clew.integrations.passages import (
    describe_passage,
    find_passages,
    find_passages_async,
    naming_extra,
)
from clew.types import Passage

with naming_extra("langchain"):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever


class ClewRetriever(BaseRetriever):
    """Retrieves passages of a knowledge base by a recipe, as LangChain documents."""

    kb: Any
    """What `clew.open` or `clew.connect` returned."""
    recipe: str | None = None
    k: int = 10

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        del run_manager  # for callbacks of nested runs, of which there are none
        return [_to_document(one) for one in find_passages(self.kb, query, self.recipe, self.k)]

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        del run_manager
        found = await find_passages_async(self.kb, query, self.recipe, self.k)
        return [_to_document(one) for one in found]


def _to_document(passage: Passage) -> Document:
    return Document(id=passage.id, page_content=passage.text, metadata=describe_passage(passage))
