"""Public Python API: `clew.open` and the synchronous `Kb` wrapper."""

from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from clew import sync
from clew.agents.ask import DEFAULT_OPTIONS, AskOptions
from clew.agents.base import Answer, Mode, Results
from clew.arguments import check_text_pairs
from clew.builder import ignore_progress
from clew.config import Settings, load_settings
from clew.engine import KnowledgeBase
from clew.errors import ClewError, InputError
from clew.extract.model_extractors import DocumentExtractor
from clew.ingest.build import AddResult
from clew.ingest.embedding import ProgressCallback
from clew.ingest.readers.links import leave_out_link_targets
from clew.ingest.readers.source import make_document
from clew.kb_address import parse_location
from clew.show import NameDetails
from clew.store.protocol import Counts
from clew.stores.opening import is_knowledge_base
from clew.types import Document


class Kb:
    """A knowledge base for synchronous callers and notebooks; `aio` is its async form."""

    def __init__(self, aio: KnowledgeBase | Settings) -> None:
        """Use an open knowledge base, or settings: what is not there is made by the first `add`."""
        self._opened = aio
        self._closed = False

    @property
    def aio(self) -> KnowledgeBase:
        """Its async form; made where there is none yet."""
        return self._open(create=True)

    def _open(self, *, create: bool = False) -> KnowledgeBase:
        """Return it opened; to read one that is not there is an error that says so."""
        if self._closed:
            raise ClewError("the knowledge base was closed; open it again with clew.open")
        if isinstance(self._opened, Settings):
            self._opened = sync.wait(KnowledgeBase.open(self._opened, create=create))
        return self._opened

    def add(
        self,
        paths: Sequence[Path | str] | Path | str,
        *,
        extractor: str | DocumentExtractor | None = None,
        retry: bool = False,
        labels: Sequence[str] = (),
        progress: ProgressCallback = ignore_progress,
        recipe: str | None = None,
    ) -> AddResult:
        """Read files and folders, and add what is new or changed, split as `recipe` wants it."""
        return sync.wait(
            self.aio.add(
                paths,
                extractor=extractor,
                retry=retry,
                labels=labels,
                progress=progress,
                recipe=recipe,
            )
        )

    def add_texts(
        self,
        texts: Iterable[tuple[str, str]],
        *,
        extractor: str | DocumentExtractor | None = None,
        retry: bool = False,
        progress: ProgressCallback = ignore_progress,
    ) -> AddResult:
        """Add texts given as (name, text) pairs."""
        documents = _iter_documents(check_text_pairs(texts))
        taken = self.aio.take(documents, extractor, retry=retry, progress=progress)
        return sync.wait(taken)

    def search(
        self,
        question: str,
        *,
        recipe: str | None = None,
        k: int = 10,
        entities: Sequence[str] = (),
        manner: AskOptions = DEFAULT_OPTIONS,
    ) -> Results:
        """Retrieve evidence for a question; needs no model."""
        return sync.wait(
            self._open().search(question, recipe=recipe, k=k, entities=entities, manner=manner)
        )

    def ask(  # noqa: PLR0913  (all by name, and most are left out)
        self,
        question: str,
        *,
        recipe: str | None = None,
        mode: Mode = "open",
        k: int | None = None,
        entities: Sequence[str] = (),
        confidence: float | None = None,
        manner: AskOptions = DEFAULT_OPTIONS,
    ) -> Answer:
        """Answer with citations; `manner` holds budgets, event listeners and the history.

        `confidence` is the least that an answer needs in `mode="reject"`.
        """
        manner = manner.require(confidence)
        asked = self._open().ask(
            question, recipe=recipe, mode=mode, k=k, entities=entities, manner=manner
        )
        return sync.wait(asked)

    def show(self, name: str) -> NameDetails:
        """Return the facts about an entity or document, with their sources, as `clew show`."""
        return sync.wait(self._open().show(name))

    def remove(self, names: Sequence[str] | str) -> Counts:
        """Remove documents by name."""
        return sync.wait(self._open().remove(names))

    def status(self) -> dict[str, Any]:
        """Return counts, embedder, size on disk and money spent."""
        return sync.wait(self._open().status())

    def close(self) -> None:
        """Close files and release locks; what is asked of it later is an error."""
        if not isinstance(self._opened, Settings) and not self._closed:
            sync.wait(self._opened.close())
        self._closed = True

    def __enter__(self) -> "Kb":
        """Use as a context manager."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close at the end."""
        self.close()


def open(path: Path | str = "kb", *, settings: Settings | None = None) -> Kb:
    """Open a knowledge base; settings come from `clew.toml` and the environment.

    Where there is none, adding makes one, and asking is an error.
    """
    resolved = (settings or load_settings()).model_copy(update={"kb": parse_location(path)})
    if not is_knowledge_base(resolved):
        return Kb(resolved)
    return Kb(sync.wait(KnowledgeBase.open(resolved, create=True)))


async def _iter_documents(texts: Iterable[tuple[str, str]]) -> AsyncIterator[Document]:
    for number, item in enumerate(texts, start=1):
        # A string of two characters would unpack like a pair.
        pair = tuple(item) if isinstance(item, tuple | list) else ()
        if len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise InputError(f"text {number} is not a pair of strings; pass (name, text)")
        name, text = pair
        if name.lower().endswith((".md", ".markdown")):
            text = leave_out_link_targets(text)
        yield make_document(text, "", name, {})
