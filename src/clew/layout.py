"""What a recipe shows to the model: kinds of evidence in order, each with its token budget."""

from dataclasses import dataclass, replace
from typing import Literal

EvidenceKind = Literal["entities", "facts", "paths", "communities", "passages", "findings"]
Modality = Literal["text", "graph", "all"]
"""Which kinds are shown: passages only, everything but passages, or all of them."""

ASSUMED_WINDOW = 8192
"""Tokens of context assumed for a model whose window is neither set nor reported."""
MIN_TOKENS = 64
"""Evidence shown however small the window is."""


@dataclass(frozen=True)
class Section:
    """One kind of evidence; without `tokens` it gets what the sections before it leave."""

    kind: EvidenceKind
    tokens: int | None = None
    most: int | None = None
    """Maximum number of items; for passages, how many are retrieved unless the caller says."""
    best_last: bool = False
    """Put the best item last: what stands next to the question is read best (PathRAG)."""
    scores: bool = False
    """Write each item's score beside it (Graph-R1)."""
    bare: bool = False
    """Also show entities that have neither a description nor attributes."""


@dataclass(frozen=True)
class Layout:
    """The sections of an evidence page; without `total` it may fill what the window leaves."""

    sections: tuple[Section, ...] = (Section("passages", most=5),)
    total: int | None = None

    @property
    def kinds(self) -> tuple[EvidenceKind, ...]:
        """The kinds shown, in order."""
        return tuple(section.kind for section in self.sections)

    @property
    def max_passages(self) -> int:
        """How many passages a retrieval keeps for this page."""
        counts = [s.most for s in self.sections if s.kind == "passages" and s.most is not None]
        return max(counts, default=_DEFAULT_PASSAGES)

    def select(self, modality: Modality) -> "Layout":
        """Return the layout with only passages, or only the other kinds, where it has them."""
        if modality == "all":
            return self
        kept = tuple(s for s in self.sections if (s.kind == "passages") == (modality == "text"))
        if kept:
            # A lone kind may use the whole page.
            kept = tuple(replace(s, tokens=None) for s in kept) if len(kept) == 1 else kept
            return replace(self, sections=kept)
        return replace(self, sections=_TEXT if modality == "text" else _GRAPH)

    def fit(self, tokens: int) -> "Layout":
        """Return the layout with a total of at most `tokens`, its other budgets scaled with it."""
        tokens = max(tokens, MIN_TOKENS)
        asked = self.total or sum(section.tokens or 0 for section in self.sections)
        if self.total is not None and self.total <= tokens:
            return self
        share = min(1.0, tokens / asked) if asked else 1.0
        sections = tuple(
            s if s.tokens is None else replace(s, tokens=int(s.tokens * share))
            for s in self.sections
        )
        return replace(self, sections=sections, total=tokens)


_DEFAULT_PASSAGES = 5
_TEXT = (Section("passages", most=_DEFAULT_PASSAGES),)
_GRAPH = (Section("entities", 800), Section("facts", 1600), Section("paths"))
PASSAGES = Layout()
"""Passages alone: the layout of recipes that retrieve text."""
FACTS = Layout((Section("entities", 600, most=10), Section("facts", most=15)))
"""Entities and facts alone: the relational channel of GraphSearch."""
