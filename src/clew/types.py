"""The nouns every room shares.

One table of n-ary facts carries every method: a triple is a fact with a `head` and a `tail`,
a hyperedge is a fact with many members, and the entity–passage graph is the facts' support.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Kind = Literal["chunk", "entity", "fact", "relation", "community"]

SUBJECT = "subject"  # role: what the sentence's document is about, named or not
MEMBER = "member"  # role: mentioned in the fact's text
LITERALS = ("date", "number")  # types of entities that are values, not things
HEAD = "head"
TAIL = "tail"


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its title; `id` is the hash of both, `names` are where it came from."""

    id: str
    text: str
    title: str = ""
    names: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    page_starts: tuple[int, ...] = ()
    """Character offset at which each page begins; empty when the format has no pages."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: `text == document.text[start:end]`, on page `page` if pages are known."""

    id: str
    document: str
    start: int
    end: int
    text: str
    title: str = ""
    heading: str = ""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Support:
    """Where an element is said: a chunk and a character span within its document."""

    chunk: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that documents speak of, merged from all its mentions."""

    id: str
    name: str
    type: str = ""
    description: str = ""
    aliases: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    support: int = 0


@dataclass(frozen=True, slots=True)
class Participant:
    """An entity's place in a fact."""

    entity: str
    role: str = MEMBER


@dataclass(frozen=True, slots=True)
class Fact:
    """An n-ary statement: a text, an optional relation and the entities that take part."""

    id: str
    text: str
    participants: tuple[Participant, ...]
    relation: str = ""
    keywords: tuple[str, ...] = ()
    description: str = ""
    weight: float = 1.0
    support: int = 0


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """What an extractor says about one entity in one chunk; spans are document offsets."""

    name: str
    type: str = ""
    description: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    about: float = 0.0
    """How far the chunk is about this entity, 0 to 1; 1 for what its title names."""
    aliases: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FoundFact:
    """What an extractor says about one fact in one chunk; members are (entity name, role)."""

    text: str
    members: tuple[tuple[str, str], ...]
    relation: str = ""
    keywords: tuple[str, ...] = ()
    description: str = ""
    weight: float = 1.0
    span: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that an extractor returned for one chunk, kept as it was said."""

    entities: tuple[FoundEntity, ...] = ()
    facts: tuple[FoundFact, ...] = ()
    failed: str = ""
    """Why nothing could be extracted, in one sentence; empty when it went well."""
    exact: bool = False
    """Names are nodes of the user's own graph: only the very same name is the same thing."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls cost."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_calls: int = 0
    money: float = 0.0
    cached_prompt_tokens: int = field(default=0, compare=False)
    cached_completion_tokens: int = field(default=0, compare=False)
    """What remembered replies cost when they were paid for: methods are compared by it."""

    def __sub__(self, other: "Usage") -> "Usage":
        """What came on top of an earlier bill."""
        parts = (f.name for f in fields(self))
        return Usage(*(getattr(self, name) - getattr(other, name) for name in parts))

    def __add__(self, other: "Usage") -> "Usage":
        """Add two bills."""
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_calls + other.cached_calls,
            self.money + other.money,
            self.cached_prompt_tokens + other.cached_prompt_tokens,
            self.cached_completion_tokens + other.cached_completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """One element (its position in the view), how good it is, and which step said so."""

    at: int
    score: float
    by: str


@dataclass(frozen=True, slots=True)
class Path:
    """A walk through the graph: `entities[i]` and `entities[i+1]` meet in `facts[i]`."""

    entities: tuple[int, ...]
    facts: tuple[int, ...]
    score: float = 0.0
    by: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What a recipe has gathered so far, best first; a step returns a new one."""

    chunks: tuple[Hit, ...] = ()
    entities: tuple[Hit, ...] = ()
    facts: tuple[Hit, ...] = ()
    paths: tuple[Path, ...] = ()
    communities: tuple[Hit, ...] = ()
    rest: str = ""
    """What the question still asks once the names known here are taken out of it."""
    names: tuple[str, ...] = ()
    """What the question names, in words: low-level keywords."""
    topics: tuple[str, ...] = ()
    """What it asks about them, in words: high-level keywords."""

    def sizes(self) -> str:
        """Say how much of each kind there is, for the trace."""
        kinds = ("chunks", "entities", "facts", "paths", "communities")
        return " ".join(f"{kind}={len(getattr(self, kind))}" for kind in kinds)


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as evidence: `doc` is the name its document was added under."""

    id: str
    doc: str
    title: str
    score: float
    text: str
    start: int
    end: int
    page: int | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity as evidence."""

    id: str
    name: str
    type: str
    score: float
    by: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact as evidence, with one place that says it."""

    id: str
    text: str
    relation: str
    entities: tuple[str, ...]
    score: float
    doc: str = ""
    chunk: str = ""
    start: int = 0
    end: int = 0
    by: str = ""
    title: str = ""
    quote: str = ""
    """The document's own words at that place."""


@dataclass(frozen=True, slots=True)
class Route:
    """A path as evidence: names, and between each two the text that joins them."""

    entities: tuple[str, ...]
    facts: tuple[str, ...]
    score: float
    by: str = ""

    def __str__(self) -> str:
        """Draw it on one line."""
        drawn = self.entities[0] if self.entities else ""
        for fact, entity in zip(self.facts, self.entities[1:], strict=False):
            drawn += f" ─[{fact}]→ {entity}"
        return drawn


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote and the span of the document it stands at."""

    doc: str
    chunk: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class Report:
    """A community as evidence: what it is called, what it says, and where that is said."""

    id: str
    name: str
    level: int
    summary: str
    score: float
    tree: str = ""
    size: int = 0
    keywords: tuple[str, ...] = ()
    citations: tuple[Citation, ...] = ()
    by: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a recipe found, in words, best first."""

    chunks: tuple[Passage, ...] = ()
    entities: tuple[NamedEntity, ...] = ()
    facts: tuple[Statement, ...] = ()
    paths: tuple[Route, ...] = ()
    communities: tuple[Report, ...] = ()
