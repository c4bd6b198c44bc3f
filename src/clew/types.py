"""Shared data types: documents, chunks, entities, facts, retrieval results and evidence.

One table of n-ary facts serves every method: a triple is a fact with a `head` and a `tail`,
a hyperedge is a fact with many members, and the entity–passage graph is the facts' support.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Kind = Literal["chunk", "entity", "fact", "relation", "community", "description", "attribute"]

SUBJECT = "subject"  # role: what the sentence's document is about, named or not
MEMBER = "member"  # role: mentioned in the fact's text
LITERAL_TYPES = ("date", "number", "section")  # entity types of literal values
HEAD = "head"
TAIL = "tail"


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its title; `id` is the hash of both, `names` are its sources."""

    id: str
    text: str
    title: str = ""
    names: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    page_starts: tuple[int, ...] = ()
    """Character offset at which each page begins; empty when the format has no pages."""
    origin: str = field(default="", compare=False, repr=False)
    """Where the text stands in the file it was read from, see `clew.text.origins`."""


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


@dataclass(frozen=True)
class Chunking:
    """How documents are split into chunks; size and overlap in tokens."""

    size: int = 400
    overlap: int = 0
    by: Literal["sentences", "tokens", "headings"] = "sentences"

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError("size must be at least 1")
        if self.overlap < 0:
            raise ValueError("overlap must not be negative")
        if self.overlap > self.size // 2:
            raise ValueError(f"overlap must be at most half of size, which is {self.size}")

    def __str__(self) -> str:
        """Describe it in words."""
        overlap = f", overlap {self.overlap:,}" if self.overlap else ""
        return f"{self.size:,} tokens{overlap}, by {self.by}"


@dataclass(frozen=True, slots=True)
class Support:
    """Where an element is stated: a chunk and a character span within its document."""

    chunk: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity, merged from all its mentions."""

    id: str
    name: str
    type: str = ""
    description: str = ""
    aliases: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    support: int = 0


@dataclass(frozen=True, slots=True)
class EntityLabel:
    """What an entity is called."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Participant:
    """An entity and its role in a fact."""

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
class FactText:
    """What a fact says, without those that take part in it."""

    id: str
    text: str
    relation: str = ""
    keywords: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class RawEntity:
    """An entity as extracted from one chunk; spans are document offsets."""

    name: str
    type: str = ""
    description: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    about: float = 0.0
    """How far the chunk is about this entity, 0 to 1; 1 for what its title names."""
    aliases: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawFact:
    """A fact as extracted from one chunk; members are (entity name, role)."""

    text: str
    members: tuple[tuple[str, str], ...]
    relation: str = ""
    keywords: tuple[str, ...] = ()
    description: str = ""
    weight: float = 1.0
    span: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that an extractor returned for one chunk, unmerged."""

    entities: tuple[RawEntity, ...] = ()
    facts: tuple[RawFact, ...] = ()
    failed: str = ""
    """Why extraction failed, in one sentence; empty on success."""
    exact: bool = False
    """Names are nodes of an imported graph: only identical names are the same entity."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Model calls, tokens and money."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_calls: int = 0
    money: float = 0.0
    cached_prompt_tokens: int = field(default=0, compare=False)
    cached_completion_tokens: int = field(default=0, compare=False)
    """Tokens that cached replies originally used: methods are compared by them."""

    @property
    def all_tokens(self) -> int:
        """Tokens of all calls, as if none had been cached."""
        cached = self.cached_prompt_tokens + self.cached_completion_tokens
        return self.prompt_tokens + self.completion_tokens + cached

    def __add__(self, other: "Usage") -> "Usage":
        """Sum of two usages."""
        names = (f.name for f in fields(self))
        return Usage(*(getattr(self, name) + getattr(other, name) for name in names))

    def __sub__(self, other: "Usage") -> "Usage":
        """Usage since an earlier total."""
        names = (f.name for f in fields(self))
        return Usage(*(getattr(self, name) - getattr(other, name) for name in names))


@dataclass(frozen=True, slots=True)
class Hit:
    """One retrieved element: its position in the view, its score and the step that scored it."""

    at: int
    score: float
    by: str


@dataclass(frozen=True, slots=True)
class Path:
    """A path through the graph: `facts[i]` connects `entities[i]` and `entities[i+1]`."""

    entities: tuple[int, ...]
    facts: tuple[int, ...]
    score: float = 0.0
    by: str = ""
    asked: float = -1.0
    """How probable the query scorer finds it that the question asks for this; -1 if not scored."""
    absent: float = -1.0
    """How probable it finds that it asks for one that the graph lacks; -1 if not scored."""
    meant: int = 0
    """Where only some ends of its relation path are meant: how many, told or not."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a recipe has retrieved so far, best first; each step returns a new one."""

    chunks: tuple[Hit, ...] = ()
    entities: tuple[Hit, ...] = ()
    facts: tuple[Hit, ...] = ()
    paths: tuple[Path, ...] = ()
    communities: tuple[Hit, ...] = ()
    rest: str = ""
    """The question without the entity names that were linked."""
    specific: str = ""
    """The question without those of these names that are common."""
    names: tuple[str, ...] = ()
    """Low-level keywords: entity names in the question."""
    namesakes: tuple[tuple[int, ...], ...] = ()
    """For each name in the question that may mean several entities: which, best first."""
    topics: tuple[str, ...] = ()
    """High-level keywords: topics of the question."""

    def sizes(self) -> str:
        """Number of elements of each kind, for the trace."""
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
    heading: str = ""
    """The sections in which it begins, from the outermost one: `A > B`."""


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity as evidence; `sources` are passages that mention it, if it has a description."""

    id: str
    name: str
    type: str
    score: float
    by: str = ""
    description: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    sources: tuple[Passage, ...] = field(default=(), metadata={"json": False}, repr=False)


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact as evidence, with one chunk that states it."""

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
    """The document's text at that span."""
    keywords: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """A path as evidence: entity names, and the text of the facts between them."""

    entities: tuple[str, ...]
    facts: tuple[str, ...]
    score: float
    by: str = ""
    steps: tuple[Statement, ...] = ()
    """The facts themselves, each with the span that states it."""

    def __str__(self) -> str:
        """The path on one line."""
        steps = zip(self.facts, self.entities[1:], strict=False)
        return "".join([*self.entities[:1], *(f" ─[{fact}]→ {entity}" for fact, entity in steps)])


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote and its span in the document."""

    doc: str
    chunk: str
    start: int
    end: int
    quote: str
    heading: str = ""
    """The sections and the defined term that hold the quote: `A > B > term`."""
    page: int | None = None
    line: int | None = None
    """The first line, from 1, in the file itself; None where that has no lines, or is not known."""
    end_line: int | None = None
    file_start: int | None = None
    """The span of characters in the file itself, where it has the quote word for word."""
    file_end: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A community as evidence: its name, summary and citations."""

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
class Finding:
    """What a tool computed or read, as text; `by` names the tool, `sources` what it rests on."""

    text: str
    by: str
    sources: tuple[Passage, ...] = ()
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a recipe retrieved, as text, best first."""

    chunks: tuple[Passage, ...] = ()
    entities: tuple[NamedEntity, ...] = ()
    facts: tuple[Statement, ...] = ()
    paths: tuple[Route, ...] = ()
    communities: tuple[Report, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def all_facts(self) -> tuple[Statement, ...]:
        """The facts, alone and on paths, each once."""
        on_paths = (step for path in self.paths for step in path.steps)
        return tuple({fact.id: fact for fact in (*self.facts, *on_paths)}.values())
