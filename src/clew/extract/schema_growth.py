"""Schema growth: models propose types, fixed rules admit them, every change can be reverted.

All functions are pure, and the result depends on the set of proposals, not on their order.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import fsum
from typing import Any

from clew.errors import ConfigError
from clew.extract.schema import (
    MAX_TYPE_CHARS,
    TABLES,
    TYPE_KINDS,
    Schema,
    SchemaType,
    TypeKind,
    type_key,
)
from clew.store.merge import first_or_empty, rank_by_frequency

MIN_CONFIDENCE = 0.9  # Youtu-GraphRAG, eq. 3: mu
MIN_SUPPORT = 3
SAME_TYPE_COSINE = 0.85
MAX_TYPE_WORDS = 5
Similarity = Callable[[str, str], float]
TypeKey = tuple[TypeKind, str]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A type proposed for one chunk, with the model's confidence."""

    kind: TypeKind
    name: str
    confidence: float
    chunk: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class AdmittedType:
    """A proposed type with mean confidence and number of supporting chunks."""

    type: SchemaType
    confidence: float
    support: int


@dataclass(frozen=True, slots=True)
class RejectedType:
    """A proposed type that was rejected, and why."""

    type: SchemaType
    confidence: float
    support: int
    reason: str


@dataclass(frozen=True, slots=True)
class SchemaGrowth:
    """Result of one round of growth."""

    schema: Schema
    admitted: tuple[AdmittedType, ...] = ()
    rejected: tuple[RejectedType, ...] = ()


@dataclass(frozen=True)
class AdmissionRule:
    """Thresholds for admitting a proposed type."""

    min_confidence: float = MIN_CONFIDENCE
    min_support: int = MIN_SUPPORT
    same_type_cosine: float = SAME_TYPE_COSINE
    """Cosine from which two names count as the same type."""


DEFAULT_RULE = AdmissionRule()


def grow_schema(
    schema: Schema,
    proposals: Iterable[Proposal],
    rule: AdmissionRule = DEFAULT_RULE,
    similar: Similarity | None = None,
    barred: Iterable[SchemaType] = (),
) -> SchemaGrowth:
    """Admit types with enough confidence and support that are no duplicates or `barred`."""
    barred_keys = {(t.kind, type_key(t.name)) for t in barred}
    grown, admitted, refused = schema, [], []
    for candidate in _group_proposals(proposals):
        if grown.find(candidate.type.kind, candidate.type.name):
            continue  # already in the schema
        reason = _rejection_reason(candidate, rule, barred_keys) or _duplicate_reason(
            candidate, grown, rule, similar
        )
        if reason:
            refused.append(
                RejectedType(candidate.type, candidate.confidence, candidate.support, reason)
            )
        else:
            admitted.append(candidate)
            grown = grown.with_types([candidate.type])
    return SchemaGrowth(grown, tuple(admitted), tuple(refused))


def _group_proposals(proposals: Iterable[Proposal]) -> list[AdmittedType]:
    """Group proposals by type, best supported first, so that it wins over near duplicates."""
    by_key: dict[TypeKey, list[Proposal]] = defaultdict(list)
    for proposal in proposals:
        if proposal.kind in TYPE_KINDS and type_key(proposal.name):
            by_key[proposal.kind, type_key(proposal.name)].append(proposal)
    candidates = [_summarise_proposals(key, group) for key, group in by_key.items()]
    return sorted(candidates, key=lambda c: (-c.support, -c.confidence, c.type.kind, c.type.name))


def _summarise_proposals(key: TypeKey, proposals: Sequence[Proposal]) -> AdmittedType:
    # Each chunk counts once, at its maximum; the mean keeps one chunk from deciding for all.
    sure: dict[str, float] = {}
    for proposal in proposals:
        sure[proposal.chunk] = max(sure.get(proposal.chunk, 0.0), proposal.confidence)
    name = first_or_empty(
        rank_by_frequency(" ".join(proposal.name.split()) for proposal in proposals)
    )
    meaning = first_or_empty(rank_by_frequency(proposal.description for proposal in proposals))
    return AdmittedType(
        SchemaType(key[0], name, meaning), round(fsum(sure.values()) / len(sure), 6), len(sure)
    )


def _rejection_reason(candidate: AdmittedType, rule: AdmissionRule, barred: set[TypeKey]) -> str:
    """Why the candidate fails the rule, or ""."""
    name = candidate.type.name
    if (candidate.type.kind, type_key(name)) in barred:
        return "it was reverted before"
    if len(name) > MAX_TYPE_CHARS or len(name.split()) > MAX_TYPE_WORDS:
        return "its name is too long"
    if candidate.confidence < rule.min_confidence:
        return f"confidence {candidate.confidence:.2f} is below {rule.min_confidence:g}"
    if candidate.support < rule.min_support:
        return f"found in {candidate.support} chunks, below {rule.min_support}"
    return ""


def _duplicate_reason(
    candidate: AdmittedType, schema: Schema, rule: AdmissionRule, similar: Similarity | None
) -> str:
    """Which known type of its kind it duplicates, or ""."""
    if similar is None:
        return ""
    scored = [
        (similar(candidate.type.name, one.name), one.name)
        for one in schema.types_of(candidate.type.kind)
    ]
    similarity, name = max(scored, default=(0.0, ""))
    return (
        f"it is too similar to {name!r} ({similarity:.2f})"
        if similarity >= rule.same_type_cosine
        else ""
    )


# -- history


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One recorded change, by growth or by a user's edit."""

    number: int
    cause: str
    added: tuple[SchemaType, ...] = ()
    removed: tuple[SchemaType, ...] = ()
    why: tuple[str, ...] = ()
    """Support and confidence of each type added by growth."""
    reverted: bool = False


@dataclass(frozen=True)
class SchemaHistory:
    """A seed schema and every change since; `schema` is the result."""

    seed: Schema
    steps: tuple[SchemaChange, ...] = ()

    @property
    def schema(self) -> Schema:
        """The current schema: the seed with every change that was not reverted."""
        schema = self.seed
        for step in self.steps:
            if not step.reverted:
                schema = schema.without_types(step.removed).with_types(step.added)
        return schema

    def barred_types(self) -> tuple[SchemaType, ...]:
        """Types a user removed by revert or edit; growth does not add them again."""
        out = [one for step in self.steps if step.reverted for one in step.added]
        out += [one for step in self.steps if not step.reverted for one in step.removed]
        return tuple(one for one in out if not self.schema.find(one.kind, one.name))

    def to_json(self) -> dict[str, Any]:
        """Plain values for storage as JSON."""
        return {"seed": self.seed.to_json(), "steps": [asdict(step) for step in self.steps]}


def record_growth(
    history: SchemaHistory,
    proposals: Iterable[Proposal],
    rule: AdmissionRule = DEFAULT_RULE,
    similar: Similarity | None = None,
) -> tuple[SchemaHistory, SchemaGrowth]:
    """Grow the current schema and record the change, if any type was admitted."""
    growth = grow_schema(history.schema, proposals, rule, similar, history.barred_types())
    if not growth.admitted:
        return history, growth
    why = tuple(f"{one.support} chunks, confidence {one.confidence:.2f}" for one in growth.admitted)
    return _append_change(history, "growth", [one.type for one in growth.admitted], (), why), growth


def record_edit(history: SchemaHistory, schema: Schema) -> SchemaHistory:
    """Record a user's edit: the current schema becomes `schema`."""
    current = history.schema
    added = [one for one in schema.types if one not in current.types]
    removed = [one for one in current.types if one not in schema.types]
    return _append_change(history, "edit", added, removed) if added or removed else history


def revert_step(history: SchemaHistory, step: int) -> SchemaHistory:
    """Revert one change; later ones stay, and so does its record."""
    if not any(one.number == step for one in history.steps):
        known = ", ".join(str(one.number) for one in history.steps)
        reason = f"its steps are {known}" if known else "nothing was changed yet"
        raise ConfigError(f"the schema has no step {step}: {reason}.")
    return SchemaHistory(
        history.seed,
        tuple(replace(one, reverted=True) if one.number == step else one for one in history.steps),
    )


def parse_history(value: Mapping[str, Any]) -> SchemaHistory:
    """Parse what `to_json` wrote."""
    seed = Schema(
        tuple(
            SchemaType(kind, name, description)
            for kind, table in TABLES.items()
            for name, description in value["seed"][table].items()
        )
    )
    return SchemaHistory(seed, tuple(_parse_change(one) for one in value["steps"]))


def _parse_change(value: Mapping[str, Any]) -> SchemaChange:
    return SchemaChange(
        value["number"],
        value["cause"],
        tuple(SchemaType(**one) for one in value["added"]),
        tuple(SchemaType(**one) for one in value["removed"]),
        tuple(value["why"]),
        value["reverted"],
    )


def _append_change(
    history: SchemaHistory,
    cause: str,
    added: Sequence[SchemaType],
    removed: Sequence[SchemaType],
    why: tuple[str, ...] = (),
) -> SchemaHistory:
    number = 1 + max((step.number for step in history.steps), default=0)
    step = SchemaChange(number, cause, tuple(added), tuple(removed), why)
    return SchemaHistory(history.seed, (*history.steps, step))
