"""A Haystack component: `ClewRetriever("kb", recipe="clew", k=5)` in a pipeline."""

from typing import Any

from clew.api import open as open_kb
from clew.integrations.passages import Searcher, describe_passage, find_passages, naming_extra
from clew.types import Passage

with naming_extra("haystack"):
    from haystack import Document, component, default_from_dict, default_to_dict


@component
class ClewRetriever:
    """Retrieves passages of a knowledge base by a recipe, as Haystack documents."""

    def __init__(
        self,
        folder: str = "kb",
        *,
        recipe: str | None = None,
        k: int = 10,
        kb: Searcher | None = None,
    ) -> None:
        self.folder, self.recipe, self.k = folder, recipe, k
        self._kb = kb

    def warm_up(self) -> None:
        """Open the knowledge base, unless one was given."""
        if self._kb is None:
            self._kb = open_kb(self.folder)

    def to_dict(self) -> dict[str, Any]:
        """Return how it was made, for a saved pipeline; a knowledge base that was given is not."""
        found: dict[str, Any] = default_to_dict(
            self, folder=self.folder, recipe=self.recipe, k=self.k
        )
        return found

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ClewRetriever":
        """Make it as it was saved."""
        made: ClewRetriever = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document])
    def run(self, query: str, k: int | None = None) -> dict[str, list[Document]]:
        """Retrieve the passages of a question."""
        self.warm_up()
        assert self._kb is not None
        found = find_passages(self._kb, query, self.recipe, k or self.k)
        return {"documents": [_to_document(one) for one in found]}


def _to_document(passage: Passage) -> Document:
    return Document(
        id=passage.id, content=passage.text, meta=describe_passage(passage), score=passage.score
    )
