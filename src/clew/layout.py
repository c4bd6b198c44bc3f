"""What a recipe shows to the model: kinds of evidence in order, each with its token budget."""

from dataclasses import dataclass, replace
from typing import Literal

EvidenceKind = Literal["entities", "facts", "paths", "communities", "passages"]
Modality = Literal["text", "graph", "all"]
"""Which kinds are shown: passages only, everything but passages, or all of them."""
EvidenceOrder = Literal["found", "question", "linked", "linked-first"]
"""As the method ranks, by similarity to the question, or what is linked to what the question names:
that alone, or before the rest."""

ASSUMED_WINDOW = 8192
"""Tokens of context assumed for a model whose window is neither set nor reported."""
DEFAULT_TOKENS = 3200
"""Evidence of one prompt: with instructions and question at most 4,000 tokens."""
PART_TOKENS = 1600
"""Evidence for one sub-question."""
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
    order: EvidenceOrder = "found"
    """How facts and paths are ordered."""
    fresh: bool = False
    """Leave out what a passage on the page says already."""
    least: int = 0
    """How many items are shown with `fresh` all the same, if there are that many."""
    grouped: bool = False
    """Write the chosen facts of one passage as one line, in the order of its text."""
    bare: bool = False
    """Also show entities that have neither a description nor attributes."""


@dataclass(frozen=True)
class Layout:
    """The sections of an evidence page and its total token budget."""

    sections: tuple[Section, ...] = (Section("passages", most=5),)
    total: int = DEFAULT_TOKENS
    part: int = PART_TOKENS
    """Total for one sub-question of an agent."""

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
        """Return the layout scaled down, all budgets alike, so that the page fits `tokens`."""
        tokens = max(tokens, MIN_TOKENS)
        if self.total <= tokens:
            return self
        share = tokens / self.total
        sections = tuple(
            s if s.tokens is None else replace(s, tokens=int(s.tokens * share))
            for s in self.sections
        )
        return replace(self, sections=sections, total=tokens, part=min(self.part, tokens))

    def for_part(self) -> "Layout":
        """Return the layout of one sub-question's page."""
        return self.fit(min(self.part, self.total))


_DEFAULT_PASSAGES = 5
_TEXT = (Section("passages", most=_DEFAULT_PASSAGES),)
_GRAPH = (Section("entities", 800), Section("facts", 1600), Section("paths"))
PASSAGES = Layout()
"""Passages alone: the layout of recipes that retrieve text."""
FACTS = Layout((Section("entities", 600, most=10), Section("facts", most=15)))
"""Entities and facts alone: the relational channel of GraphSearch."""
