"""Schema growth: models propose types, fixed rules admit them, every change can be reverted.

All functions are pure, and the result depends on the set of proposals, not on their order.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import fsum
from typing import Any

from clew.errors import ConfigError
from clew.extract.schema_file import (
    KINDS,
    LONGEST_TYPE,
    TABLES,
    Schema,
    SchemaType,
    TypeKind,
    type_key,
)
from clew.store.merge import first, most_said

MIN_CONFIDENCE = 0.9  # Youtu-GraphRAG, eq. 3: mu
MIN_SUPPORT = 3
NEAR = 0.85
MOST_WORDS = 5

Similar = Callable[[str, str], float]
Key = tuple[TypeKind, str]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A type proposed for one chunk, with the model's confidence."""

    kind: TypeKind
    name: str
    confidence: float
    chunk: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A proposed type with mean confidence and number of supporting chunks."""

    type: SchemaType
    confidence: float
    support: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A proposed type that was rejected, and why."""

    type: SchemaType
    confidence: float
    support: int
    reason: str


@dataclass(frozen=True, slots=True)
class Growth:
    """Result of one round of growth."""

    schema: Schema
    admitted: tuple[Admitted, ...] = ()
    refused: tuple[Refused, ...] = ()


@dataclass(frozen=True)
class Rule:
    """Thresholds for admitting a proposed type."""

    min_confidence: float = MIN_CONFIDENCE
    min_support: int = MIN_SUPPORT
    near: float = NEAR
    """Cosine from which two names count as the same type."""


RULE = Rule()


def grow(
    schema: Schema,
    proposals: Iterable[Proposal],
    rule: Rule = RULE,
    similar: Similar | None = None,
    barred: Iterable[SchemaType] = (),
) -> Growth:
    """Admit types with enough confidence and support that are no duplicates or `barred`."""
    barred_keys = {(t.kind, type_key(t.name)) for t in barred}
    grown, admitted, refused = schema, [], []
    for candidate in _cases(proposals):
        if grown.named(candidate.type.kind, candidate.type.name):
            continue  # already in the schema
        reason = _against(candidate, rule, barred_keys) or _double(candidate, grown, rule, similar)
        if reason:
            refused.append(Refused(candidate.type, candidate.confidence, candidate.support, reason))
        else:
            admitted.append(candidate)
            grown = grown.having([candidate.type])
    return Growth(grown, tuple(admitted), tuple(refused))


def _cases(proposals: Iterable[Proposal]) -> list[Admitted]:
    """Group proposals by type, best supported first, so that it wins over near duplicates."""
    by_key: dict[Key, list[Proposal]] = defaultdict(list)
    for proposal in proposals:
        if proposal.kind in KINDS and type_key(proposal.name):
            by_key[proposal.kind, type_key(proposal.name)].append(proposal)
    candidates = [_case(key, group) for key, group in by_key.items()]
    return sorted(candidates, key=lambda c: (-c.support, -c.confidence, c.type.kind, c.type.name))


def _case(key: Key, proposals: Sequence[Proposal]) -> Admitted:
    # Each chunk counts once, at its maximum; the mean keeps one chunk from deciding for all.
    sure: dict[str, float] = {}
    for proposal in proposals:
        sure[proposal.chunk] = max(sure.get(proposal.chunk, 0.0), proposal.confidence)
    name = first(most_said(" ".join(proposal.name.split()) for proposal in proposals))
    meaning = first(most_said(proposal.description for proposal in proposals))
    return Admitted(
        SchemaType(key[0], name, meaning), round(fsum(sure.values()) / len(sure), 6), len(sure)
    )


def _against(candidate: Admitted, rule: Rule, barred: set[Key]) -> str:
    """Why the candidate fails the rule, or ""."""
    name = candidate.type.name
    if (candidate.type.kind, type_key(name)) in barred:
        return "it was taken back before"
    if len(name) > LONGEST_TYPE or len(name.split()) > MOST_WORDS:
        return "it is no short name"
    if candidate.confidence < rule.min_confidence:
        return f"confidence {candidate.confidence:.2f} is below {rule.min_confidence:g}"
    if candidate.support < rule.min_support:
        return f"seen in {candidate.support} of the {rule.min_support} chunks it takes"
    return ""


def _double(case: Admitted, schema: Schema, rule: Rule, similar: Similar | None) -> str:
    """Which known type of its kind it duplicates, or ""."""
    if similar is None:
        return ""
    scored = [(similar(case.type.name, one.name), one.name) for one in schema.of(case.type.kind)]
    similarity, name = max(scored, default=(0.0, ""))
    return f"it is too like {name!r} ({similarity:.2f})" if similarity >= rule.near else ""


# -- history


@dataclass(frozen=True, slots=True)
class Step:
    """One recorded change, by growth or by a user's edit."""

    number: int
    cause: str
    added: tuple[SchemaType, ...] = ()
    removed: tuple[SchemaType, ...] = ()
    why: tuple[str, ...] = ()
    """Support and confidence of each type added by growth."""
    reverted: bool = False


@dataclass(frozen=True)
class History:
    """A seed schema and every change since; `schema` is the result."""

    seed: Schema
    steps: tuple[Step, ...] = field(default=())

    @property
    def schema(self) -> Schema:
        """The current schema: the seed with every change that was not reverted."""
        schema = self.seed
        for step in self.steps:
            if not step.reverted:
                schema = schema.lacking(step.removed).having(step.added)
        return schema

    def barred(self) -> tuple[SchemaType, ...]:
        """Types a user removed by revert or edit; growth does not add them again."""
        out = [one for step in self.steps if step.reverted for one in step.added]
        out += [one for step in self.steps if not step.reverted for one in step.removed]
        return tuple(one for one in out if not self.schema.named(one.kind, one.name))

    def as_json(self) -> dict[str, Any]:
        """Plain values for storage as JSON."""
        return {"seed": self.seed.as_json(), "steps": [asdict(step) for step in self.steps]}


def grown(
    history: History,
    proposals: Iterable[Proposal],
    rule: Rule = RULE,
    similar: Similar | None = None,
) -> tuple[History, Growth]:
    """Grow the current schema and record the change, if any type was admitted."""
    growth = grow(history.schema, proposals, rule, similar, history.barred())
    if not growth.admitted:
        return history, growth
    why = tuple(f"{one.support} chunks, confidence {one.confidence:.2f}" for one in growth.admitted)
    return _with(history, "growth", [one.type for one in growth.admitted], (), why), growth


def edited(history: History, schema: Schema) -> History:
    """Record a user's edit: the current schema becomes `schema`."""
    current = history.schema
    added = [one for one in schema.types if one not in current.types]
    removed = [one for one in current.types if one not in schema.types]
    return _with(history, "edit", added, removed) if added or removed else history


def revert(history: History, step: int) -> History:
    """Revert one change; later ones stay, and so does its record."""
    if not any(one.number == step for one in history.steps):
        known = ", ".join(str(one.number) for one in history.steps) or "none"
        raise ConfigError(f"the schema has no step {step}: the steps are {known}.")
    return History(
        history.seed,
        tuple(replace(one, reverted=True) if one.number == step else one for one in history.steps),
    )


def history_from(value: Mapping[str, Any]) -> History:
    """Parse what `to_json` wrote."""
    seed = Schema(
        tuple(
            SchemaType(kind, name, told)
            for kind, table in TABLES.items()
            for name, told in value["seed"][table].items()
        )
    )
    return History(seed, tuple(_step(one) for one in value["steps"]))


def _step(value: Mapping[str, Any]) -> Step:
    return Step(
        value["number"],
        value["cause"],
        tuple(SchemaType(**one) for one in value["added"]),
        tuple(SchemaType(**one) for one in value["removed"]),
        tuple(value["why"]),
        value["reverted"],
    )


def _with(
    history: History,
    cause: str,
    added: Sequence[SchemaType],
    removed: Sequence[SchemaType],
    why: tuple[str, ...] = (),
) -> History:
    number = 1 + max((step.number for step in history.steps), default=0)
    step = Step(number, cause, tuple(added), tuple(removed), why)
    return History(history.seed, (*history.steps, step))
